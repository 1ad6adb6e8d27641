//! PostgreSQL: a connection for the writer of message batches, a pool for everything else.

mod batch_error;
mod delivery_log;
mod dialect;
mod distribute;
mod message_batch;
mod records;
mod session;
mod tls;
mod url;
mod writer;

#[path = "../sql/mod.rs"]
mod sql;

use std::time::Duration;

use async_trait::async_trait;
use nuncio_store::{Accept, Accepted, DeliveryLog, MetricRow, Result, Store, StoreError, Transition, Transitioned, Tx};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, PgPool, Postgres};

pub use distribute::{COPIED, DISTRIBUTED, distribute};
pub use message_batch::TEXTS as WRITER_STATEMENTS;
pub use session::SETTINGS as WRITER_SETTINGS;
pub use url::check_url;

use crate::message_batch::{accept_with_chunks, folded};
use crate::{SqlxResult as _, ended, migrations, sqlx_error};
use sql::SqlTx;
use url::Database;
use writer::{Writer, answered};

pub(crate) type Db = Postgres;
pub(crate) type Conn = sqlx::PgConnection;

const POOL: u32 = 10;
/// Rows of metrics in one statement.
const METRICS: usize = 512;

/// The store on a PostgreSQL server.
#[derive(Debug)]
pub struct PostgresStore {
    pool: PgPool,
    writer: Writer,
}

impl PostgresStore {
    /// Connects and brings the schema up to date. Refuses a server that does not keep what it confirms, and a URL that is not enough for
    /// the writer: the pool also knows `PGPASSWORD` and `~/.pgpass`.
    pub async fn open(url: &str) -> Result<Self> {
        let (options, pool) = connect(url).await?;
        session::connect(url).await.map_err(|error| match error {
            StoreError::Unavailable(why) => {
                StoreError::Unavailable(format!("{why}; the database URL itself must hold host, user and password"))
            }
            error => error,
        })?;
        refuse_unsafe(&pool).await?;
        migrate(&options).await?;
        Ok(Self { pool, writer: Writer::start(url) })
    }
}

/// Brings the schema up to date, on a connection without time limits: a large table takes its time, and so does another node that is at it.
pub(crate) async fn migrate(options: &PgConnectOptions) -> Result<()> {
    let unlimited = ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"].map(|limit| (limit, "0"));
    // The schema is one long statement, which the log would show as a slow one.
    let options = options.clone().options(unlimited).disable_statement_logging();
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.map_err(sqlx_error)?;
    migrations::postgres(&pool).await?;
    pool.close().await;
    Ok(())
}

fn database(url: &str) -> Result<Database> {
    url::parse(url).map_err(|problem| StoreError::Unavailable(format!("the database URL {problem}")))
}

pub(crate) async fn connect(url: &str) -> Result<(PgConnectOptions, PgPool)> {
    let options = database(url)?.pool;
    // Neither a paused node nor a lost connection may block others with a lock that it holds.
    let options = options.application_name("nuncio").options([
        ("synchronous_commit", "on"),
        // A plan that is kept was made for tables as small as they were then.
        ("plan_cache_mode", "force_custom_plan"),
        // Rows are found by key, and read in its order. Before there are statistics, the planner would rather read a table as a whole;
        // or it expects so much work that compiling the statement, which takes a second, seems to pay.
        ("enable_seqscan", "off"),
        ("enable_bitmapscan", "off"),
        ("enable_hashjoin", "off"),
        ("enable_mergejoin", "off"),
        ("jit", "off"),
        ("client_min_messages", "warning"),
        ("lock_timeout", "1s"),
        ("statement_timeout", "5s"),
        ("idle_in_transaction_session_timeout", "2s"),
        ("tcp_keepalives_idle", "5"),
        ("tcp_keepalives_interval", "2"),
        ("tcp_keepalives_count", "3"),
    ]);
    let pool =
        PgPoolOptions::new().max_connections(POOL).acquire_timeout(Duration::from_secs(5)).connect_with(options.clone()).await.map_err(
            |error| match error {
                sqlx::Error::PoolTimedOut => unanswered(&options),
                error => sqlx_error(error),
            },
        )?;
    Ok((options, pool))
}

fn unanswered(options: &PgConnectOptions) -> StoreError {
    let (host, port) = (options.get_host(), options.get_port());
    StoreError::Unavailable(format!("the PostgreSQL server at {host}:{port} does not answer; check that it runs, and the database URL"))
}

/// A 202 promises that the message is stored: a server that confirms before it syncs cannot be used.
pub(crate) async fn refuse_unsafe(pool: &PgPool) -> Result<()> {
    for setting in ["fsync", "full_page_writes"] {
        let (value,): (String,) = sqlx::query_as("SELECT current_setting($1)").bind(setting).fetch_one(pool).await.store()?;
        if value != "on" {
            return Err(StoreError::Unavailable(format!(
                "the PostgreSQL server runs with {setting} = {value}: it would lose accepted messages; set it to on"
            )));
        }
    }
    Ok(())
}

/// The connection of a transaction or a reader.
#[derive(Debug)]
enum Handle {
    Write(sqlx::Transaction<'static, Db>),
    Read(sqlx::pool::PoolConnection<Db>),
}

impl Handle {
    /// Takes the time limit of statements off this connection, or puts it back.
    async fn limit_time(&mut self, limited: bool) -> sqlx::Result<()> {
        let set = if limited { "RESET statement_timeout" } else { "SET statement_timeout = 0" };
        let conn: &mut Conn = match self {
            Self::Write(tx) => tx,
            Self::Read(conn) => {
                // If the request is cancelled before the limit is restored, the connection must not return to the pool.
                conn.close_on_drop();
                conn
            }
        };
        sqlx::raw_sql(set).execute(conn).await.map(drop)
    }

    /// The server looks after its log itself.
    #[expect(clippy::unused_self, reason = "as on SQLite")]
    fn empty_log(&self) {}
}

impl SqlTx {
    pub(crate) fn conn(&mut self) -> &mut Conn {
        match &mut self.handle {
            Handle::Write(tx) => tx,
            Handle::Read(conn) => conn,
        }
    }
}

#[async_trait]
impl Tx for SqlTx {
    async fn commit(mut self: Box<Self>) -> Result<()> {
        if !self.failed {
            self.flush().await?;
        }
        match self.handle {
            Handle::Write(..) if self.failed => Err(ended()),
            Handle::Write(tx) => match dialect::in_time(tx.commit()).await {
                Err(error @ sqlx::Error::Io(_)) => Err(StoreError::InDoubt(error.to_string())),
                outcome => outcome.store(),
            },
            Handle::Read(_) => Ok(()),
        }
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn accept(&self, item: Accept) -> Result<Accepted> {
        accept_with_chunks(self, item, |prepared| self.writer.accept(prepared)).await
    }

    async fn transition(&self, item: Transition) -> Result<Transitioned> {
        self.writer.transition(item).await
    }

    async fn add_metrics(&self, deltas: Vec<MetricRow>) -> Result<()> {
        for part in folded(deltas).chunks(METRICS) {
            answered(delivery_log::add_metrics(&self.pool, part)).await?;
        }
        Ok(())
    }

    async fn log_deliveries(&self, log: DeliveryLog) -> Result<bool> {
        answered(delivery_log::log_deliveries(&self.pool, &log)).await
    }

    async fn begin(&self) -> Result<Box<dyn Tx>> {
        Ok(Box::new(SqlTx::from(Handle::Write(dialect::in_time(self.pool.begin()).await.store()?))))
    }

    async fn read(&self) -> Result<Box<dyn Tx>> {
        Ok(Box::new(SqlTx::from(Handle::Read(self.pool.acquire().await.store()?))))
    }

    async fn ping(&self) -> Result<()> {
        let asked = sqlx::query_as("SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on'").fetch_one(&self.pool);
        match dialect::in_time(asked).await.store()? {
            (true, _) => Err(StoreError::Unavailable("the PostgreSQL server is a standby and takes no writes".to_owned())),
            (false, true) => Err(StoreError::Unavailable("the database is set to read only and takes no writes".to_owned())),
            (false, false) => Ok(()),
        }
    }

    async fn close(&self) {
        self.writer.stop().await;
        self.pool.close().await;
    }

    async fn advice(&self) -> Result<Vec<String>> {
        let mut advice = Vec::new();
        if let Err(StoreError::Unavailable(unsafe_setting)) = refuse_unsafe(&self.pool).await {
            advice.push(unsafe_setting);
        }
        let (replicas, standbys): (i64, String) = sqlx::query_as(
            r"
                SELECT CAST(COUNT(*) AS BIGINT), current_setting('synchronous_standby_names')
                FROM pg_stat_replication",
        )
        .fetch_one(&self.pool)
        .await
        .store()?;
        if replicas > 0 && standbys.is_empty() {
            advice.push("replicas are attached, but none is synchronous: an accepted message can be lost in a failover; set synchronous_standby_names".to_owned());
        }
        Ok(advice)
    }
}
