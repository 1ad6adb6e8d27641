//! Creates a database for each case, and accesses it without the store.

use std::io::Write as _;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use nuncio_domain::config::{Connection, Project, Sender};
use nuncio_domain::id::{Id, uuid_v7};
use nuncio_domain::message::NodeId;
use nuncio_domain::page::PageRequest;
use nuncio_domain::{Channel, ConnectionId, Redacted, SenderId, TenantId, Timestamp};
use nuncio_store::{MessageFilter, Position, Store, Tx};
use nuncio_store_sql::{Target, open};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::rows::{postgres_rows, sqlite_rows};

/// Start of all cases.
pub(crate) const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// A node that is alive in all cases.
pub(crate) const NODE: NodeId = NodeId(1);

/// Makes the server record the store's statements.
const RECORDED: &str = "?options=-c%20pg_stat_statements.track%3Dtop";
const PREFIX: &str = "nuncio_contract_";
static DATABASES: AtomicUsize = AtomicUsize::new(0);
static FINISHED: AtomicUsize = AtomicUsize::new(0);
static TEMPLATE: tokio::sync::OnceCell<String> = tokio::sync::OnceCell::const_new();

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

#[derive(Debug)]
enum Place {
    /// Deleted when dropped.
    Sqlite {
        _dir: tempfile::TempDir,
    },
    Postgres(String),
}

/// An environment with what messages need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    pub(crate) tenant: TenantId,
    pub(crate) epoch: i64,
    pub(crate) sender: SenderId,
    pub(crate) connection: ConnectionId,
}

#[derive(Debug)]
pub(crate) struct Harness {
    pub(crate) backend: Backend,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) target: Target,
    /// The environment that cases use.
    pub(crate) world: World,
    /// The other environment of the same project.
    pub(crate) other: World,
    /// Whether to skip the checks after the case.
    broken: AtomicBool,
    clock: AtomicI64,
    place: Place,
}

pub(crate) type Case = for<'h> fn(&'h Harness) -> Pin<Box<dyn Future<Output = ()> + Send + 'h>>;

/// Runs a case on a new database.
pub(crate) fn run(backend: Backend, name: &str, case: Case) {
    if backend == Backend::Postgres && server().is_none() {
        return skip(name);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let harness = Arc::new(Harness::new(backend).await);
        let for_case = Arc::clone(&harness);
        let outcome = tokio::spawn(async move {
            case(&for_case).await;
            if !for_case.broken.load(Ordering::Relaxed) {
                let unguarded = for_case.read().await.count_unguarded_messages().await.unwrap();
                assert_eq!(unguarded, 0, "messages that nobody looks after are left");
                for tenant in [for_case.world.tenant, for_case.other.tenant] {
                    for_case.check_log(tenant).await;
                }
            }
            for_case.check_statements().await;
        })
        .await;
        harness.finish().await;
        if let Err(error) = outcome {
            resume_unwind(error.into_panic());
        }
    });
}

/// Returns the superuser URL of a PostgreSQL server.
pub(crate) fn server() -> Option<String> {
    std::env::var("NUNCIO_TEST_PG").ok().filter(|url| !url.is_empty())
}

/// Prints a notice that is not captured like other test output.
fn skip(name: &str) {
    let total = crate::CASES.len(); // all of them also run on PostgreSQL
    let skipped = FINISHED.fetch_add(1, Ordering::Relaxed) + 1;
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "SKIPPED {name}::postgres: NUNCIO_TEST_PG is not set");
    if skipped == total {
        let _ = writeln!(out, "SKIPPED all {total} PostgreSQL cases. Half of the contract is untested; set NUNCIO_TEST_PG.");
    }
}

pub(crate) fn database(name: &str) -> String {
    let url = server().unwrap();
    let (base, _) = url.rsplit_once('/').unwrap();
    format!("{base}/{name}")
}

/// Runs statements on the server, outside of test databases.
async fn admin(sql: String) {
    let mut conn = PgConnection::connect(&server().unwrap()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
}

pub(crate) async fn drop_database(name: &str) {
    admin(format!("DROP DATABASE {name} WITH (FORCE)")).await;
}

/// Drops databases of ended test processes, whose ids are in the names.
async fn sweep() {
    let mut conn = PgConnection::connect(&server().unwrap()).await.unwrap();
    let names: Vec<(String,)> = sqlx::query_as("SELECT CAST(datname AS TEXT) FROM pg_database").fetch_all(&mut conn).await.unwrap();
    for (name,) in names {
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let pid = rest.split('_').next().unwrap_or_default();
        if !std::path::Path::new("/proc").join(pid).exists() {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut conn).await.unwrap();
        }
    }
    conn.close().await.unwrap();
}

/// Returns a migrated database that others are copied from.
async fn template() -> &'static str {
    TEMPLATE
        .get_or_init(|| async {
            sweep().await;
            admin("CREATE EXTENSION IF NOT EXISTS pg_stat_statements".to_owned()).await;
            let name = format!("{PREFIX}{}_template", std::process::id());
            admin(format!("CREATE DATABASE {name}")).await;
            open(&Target::Postgres(Redacted::new(database(&name)))).await.unwrap().close().await;
            name
        })
        .await
}

/// Creates a migrated database.
pub(crate) async fn fresh_postgres() -> String {
    let template = template().await;
    let name = format!("{PREFIX}{}_{}", std::process::id(), DATABASES.fetch_add(1, Ordering::Relaxed));
    admin(format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
    name
}

impl Harness {
    async fn new(backend: Backend) -> Self {
        let (place, target) = match backend {
            Backend::Sqlite => {
                let dir = tempfile::tempdir().unwrap();
                let target = Target::Sqlite(dir.path().join("nuncio.db"));
                (Place::Sqlite { _dir: dir }, target)
            }
            Backend::Postgres => {
                let name = fresh_postgres().await;
                let target = Target::Postgres(Redacted::new(format!("{}{RECORDED}", database(&name))));
                (Place::Postgres(name), target)
            }
        };
        let store = open(&target).await.unwrap();
        let nothing = World {
            tenant: TenantId(0),
            epoch: 0,
            sender: SenderId::from_uuid(Default::default()),
            connection: ConnectionId::from_uuid(Default::default()),
        };
        let clock = AtomicI64::new(START.millis());
        let mut harness = Self { backend, store, target, world: nothing, other: nothing, broken: AtomicBool::new(false), clock, place };
        let mut tx = harness.begin().await;
        let project = tx.insert_project(harness.project("one"), START).await.unwrap();
        tx.insert_node(NODE, START).await.unwrap();
        tx.commit().await.unwrap();
        harness.world = harness.furnish(project.live).await;
        harness.other = harness.furnish(project.test).await;
        harness
    }

    pub(crate) fn project(&self, name: &str) -> Project {
        Project {
            id: self.id(),
            name: name.to_owned(),
            colour: None,
            team: self.id(),
            team_name: "the team".to_owned(),
            live: TenantId(0),
            test: TenantId(0),
        }
    }

    /// Adds a sender and a connection to an environment.
    pub(crate) async fn furnish(&self, tenant: TenantId) -> World {
        let sender = Sender { phone_number: "+34600000000".to_owned(), is_default: true, ..Sender::new(self.id(), "desk", START) };
        let connection = Connection {
            id: self.id(),
            sender: sender.id,
            channel: Channel::Sms,
            kind: "sim".to_owned(),
            settings: Default::default(),
            sealed: Redacted::new(vec![0, 255]),
            trusted: false,
            throttle: None,
            updated_at: START,
        };
        let mut tx = self.begin().await;
        tx.insert_sender(tenant, &sender, START).await.unwrap();
        tx.put_connection(tenant, &connection).await.unwrap();
        let epoch = tx.load_tenant(tenant).await.unwrap().unwrap().epoch;
        tx.commit().await.unwrap();
        World { tenant, epoch, sender: sender.id, connection: connection.id }
    }

    async fn finish(&self) {
        self.store.close().await;
        let Place::Postgres(name) = &self.place else { return };
        admin(format!("DROP DATABASE {name} WITH (FORCE)")).await;
        if FINISHED.fetch_add(1, Ordering::Relaxed) + 1 == crate::CASES.len() {
            admin(format!("DROP DATABASE {}", template().await)).await;
        }
    }

    /// Returns the next millisecond.
    pub(crate) fn tick(&self) -> Timestamp {
        Timestamp::from_millis(self.clock.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns a new id with a separate millisecond.
    pub(crate) fn id<T: Id>(&self) -> T {
        self.id_at(self.tick())
    }

    /// Returns a new id created at `at`.
    pub(crate) fn id_at<T: Id>(&self, at: Timestamp) -> T {
        let count = self.tick().millis().to_be_bytes();
        let mut random = [0; 10];
        random[2..].copy_from_slice(&count);
        T::from_uuid(uuid_v7(at, random))
    }

    pub(crate) async fn begin(&self) -> Box<dyn Tx> {
        self.store.begin().await.unwrap()
    }

    pub(crate) async fn read(&self) -> Box<dyn Tx> {
        self.store.read().await.unwrap()
    }

    /// Opens another store on the same database, like another process.
    pub(crate) async fn another(&self) -> Arc<dyn Store> {
        open(&self.target).await.unwrap()
    }

    /// Runs SQL without the store; returns the result as text.
    pub(crate) async fn sql(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        match &self.target {
            Target::Sqlite(path) => sqlite_rows(path, sql),
            Target::Postgres(url) => postgres_rows(url.expose(), sql).await,
        }
    }

    /// Returns the number that a query returns.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.sql(sql).await[0][0].as_ref().unwrap().parse().unwrap()
    }

    /// Inserts `count` copies of a row, each newer than the previous one and all newer than `after`. `with` names columns with other
    /// values, in which `{n}` is the number of the copy, from 1.
    pub(crate) async fn copy_row(&self, table: &str, id: impl Id, after: Timestamp, count: u32, with: &[(&str, &str)]) {
        let columns = match self.backend {
            Backend::Sqlite => format!("SELECT name FROM pragma_table_info('{table}')"),
            Backend::Postgres => format!("SELECT CAST(column_name AS TEXT) FROM information_schema.columns WHERE table_name = '{table}'"),
        };
        let columns: Vec<String> = self.sql(&columns).await.into_iter().flatten().flatten().collect();
        let millis = after.millis() + 1;
        let new_id = match self.backend {
            Backend::Sqlite => format!("unhex(printf('%012x7000%016x', {millis}, n.i))"),
            Backend::Postgres => format!("CAST(lpad(to_hex({millis}), 12, '0') || '7000' || lpad(to_hex(n.i), 16, '0') AS UUID)"),
        };
        let value = |column: &String| match with.iter().find(|(name, _)| name == column) {
            Some((_, value)) => value.replace("{n}", "n.i"),
            None if column == "id" => new_id.clone(),
            None => format!("t.{column}"),
        };
        let values: Vec<String> = columns.iter().map(value).collect();
        self.sql(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) INSERT INTO {table} ({}) SELECT {} \
             FROM {table} t CROSS JOIN n WHERE t.id = {}",
            columns.join(", "),
            values.join(", "),
            self.literal(id)
        ))
        .await;
    }

    /// Checks that log positions have no gaps, and that events of messages lead to the current states.
    async fn check_log(&self, tenant: TenantId) {
        let mut tx = self.read().await;
        let (mut at, mut last) = (Position::default(), 0);
        loop {
            let entries = tx.read_log(tenant, at, 1_000).await.unwrap();
            let Some(end) = entries.last() else { break };
            at = end.position;
            for entry in entries {
                assert!(entry.position.commit - last <= 1, "a gap in the log after {last}: {entry:?}");
                last = entry.position.commit;
            }
        }
        assert_eq!(tx.log_end(tenant).await.unwrap().commit, last, "the log ends at its head");
        let newest = tx.list_messages(tenant, &MessageFilter::default(), PageRequest::newest(100)).await.unwrap();
        drop(tx);
        for message in newest.items {
            self.events_in(tenant, message.id).await;
        }
    }

    /// Checks that a cluster would accept all statements of the store.
    async fn check_statements(&self) {
        let Place::Postgres(name) = &self.place else { return };
        let mut conn = PgConnection::connect(&server().unwrap()).await.unwrap();
        let statements: Vec<(String,)> =
            sqlx::query_as("SELECT query FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = $1")
                .bind(name)
                .fetch_all(&mut conn)
                .await
                .expect("the server records statements: shared_preload_libraries = pg_stat_statements");
        conn.close().await.unwrap();
        assert!(!statements.is_empty(), "statements are recorded");
        for (statement,) in statements {
            let faults = crate::cluster::faults(&statement);
            assert!(faults.is_empty(), "a cluster would refuse this: {faults:?}\n{statement}");
        }
    }

    /// Returns the maximum number of pages read by one execution of a statement that contains these words. `None` on SQLite.
    pub(crate) async fn pages_read(&self, words: &[&str]) -> Option<i64> {
        let Place::Postgres(name) = &self.place else { return None };
        let mut conn = PgConnection::connect(&server().unwrap()).await.unwrap();
        let sql = "SELECT MAX(shared_blks_hit / calls) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
                   WHERE d.datname = $1 AND query LIKE ALL ($2) AND query NOT LIKE '%INSERT%'";
        let (pages,) = sqlx::query_as(sql)
            .bind(name)
            .bind(words.iter().map(|word| format!("%{word}%")).collect::<Vec<_>>())
            .fetch_one(&mut conn)
            .await
            .expect("the server records statements");
        conn.close().await.unwrap();
        pages
    }

    /// Skips the checks: the case leaves inconsistent rows, or a log without its beginning.
    pub(crate) fn leaves_broken_rows(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    pub(crate) async fn rows_of(&self, table: &str) -> i64 {
        self.number(&format!("SELECT COUNT(*) FROM {table}")).await
    }

    /// Returns an id as an SQL literal.
    pub(crate) fn literal(&self, id: impl Id) -> String {
        match self.backend {
            Backend::Sqlite => format!("X'{}'", id.uuid().simple()),
            Backend::Postgres => format!("'{}'", id.uuid()),
        }
    }
}

/// Does something in one transaction.
macro_rules! in_tx {
    ($harness:expr, |$tx:ident| $act:expr) => {{
        let mut $tx = $harness.begin().await;
        let done = $act;
        $tx.commit().await.unwrap();
        done
    }};
}
pub(crate) use in_tx;
