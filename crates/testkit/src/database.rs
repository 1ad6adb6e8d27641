//! Creates a database for each test.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use nuncio_domain::Redacted;
use nuncio_store_sql::Target;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, Executor as _, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// Environment variable with the superuser URL of a PostgreSQL test server.
const SERVER: &str = "NUNCIO_TEST_PG";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    Sqlite,
    Postgres,
}

impl Backend {
    /// Returns the available backends. Prints a notice if PostgreSQL is not available.
    pub fn all() -> Vec<Self> {
        if std::env::var(SERVER).is_ok() {
            return vec![Self::Sqlite, Self::Postgres];
        }
        eprintln!("SKIPPED on PostgreSQL: {SERVER} is not set");
        vec![Self::Sqlite]
    }
}

/// A database that is deleted when dropped.
#[derive(Debug)]
pub enum Database {
    /// A file in a temporary folder.
    Sqlite(TempDir),
    /// A database on the test server.
    Postgres {
        /// URL of the server's maintenance database.
        server: String,
        /// Name of the database.
        name: String,
    },
}

/// A connection that blocks writers.
#[derive(Debug)]
pub enum Held {
    /// The only writer of the file.
    Sqlite(SqliteConnection),
    /// Holds a lock on the table of messages.
    Postgres(PgConnection),
}

impl Held {
    /// Unblocks the writers.
    pub async fn release(self) {
        match self {
            Self::Sqlite(conn) => conn.close().await.expect("the file closes"),
            Self::Postgres(conn) => conn.close().await.expect("the connection closes"),
        }
    }
}

const SQLITE_COLUMNS: &str = "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table' \
     AND m.name NOT LIKE 'sqlite%' ORDER BY m.name";
const POSTGRES_TABLES: &str = "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1";

const STATEMENTS: &str = "SELECT s.query, CAST(SUM(s.calls) AS BIGINT) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid \
     WHERE d.datname = $1 GROUP BY s.query";

static NUMBER: AtomicU32 = AtomicU32::new(0);

impl Database {
    /// Creates an empty database.
    pub async fn make(backend: Backend) -> Self {
        if backend == Backend::Sqlite {
            return Self::Sqlite(TempDir::with_prefix("nuncio-test-").expect("a temporary folder"));
        }
        let server = std::env::var(SERVER).expect("the URL of a PostgreSQL server");
        let name = format!("nuncio_app_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        execute(&server, format!("CREATE DATABASE {name}")).await;
        Self::Postgres { server, name }
    }

    /// Returns the target to open the store with.
    pub fn target(&self) -> Target {
        match self {
            Self::Sqlite(folder) => Target::Sqlite(folder.path().join("nuncio.db")),
            Self::Postgres { .. } => Target::Postgres(Redacted::new(self.url())),
        }
    }

    /// Returns the URL of the database; empty for SQLite.
    pub fn url(&self) -> String {
        match self {
            Self::Sqlite(_) => String::new(),
            Self::Postgres { server, name } => {
                let base = server.rsplit_once('/').map_or(server.as_str(), |(base, _)| base);
                format!("{base}/{name}")
            }
        }
    }

    /// Returns the tables that contain a text, in any column.
    pub async fn holders(&self, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        match self {
            Self::Sqlite(folder) => {
                let mut conn = SqliteConnection::connect(&folder.path().join("nuncio.db").to_string_lossy()).await.expect("the database");
                let columns: Vec<(String, String)> = sqlx::query_as(SQLITE_COLUMNS).fetch_all(&mut conn).await.expect("the schema");
                for (table, column) in columns {
                    let query = format!("SELECT COUNT(*) FROM {table} WHERE instr(CAST(\"{column}\" AS BLOB), CAST($1 AS BLOB)) > 0");
                    let query = sqlx::query_as::<_, (i64,)>(sqlx::AssertSqlSafe(query)).bind(text);
                    if query.fetch_one(&mut conn).await.expect("a look").0 > 0 {
                        found.push(table);
                    }
                }
            }
            Self::Postgres { .. } => {
                let mut conn = PgConnection::connect(&self.url()).await.expect("the database");
                let tables: Vec<(String,)> = sqlx::query_as(POSTGRES_TABLES).fetch_all(&mut conn).await.expect("the schema");
                for (table,) in tables {
                    // Bytes are searched in hexadecimal, like hashes and ids: a short run of digits matches by chance.
                    let query = format!(
                        "SELECT COUNT(*) FROM {table} t WHERE position($1 IN CAST(t AS TEXT)) > 0 \
                         OR length($1) > 3 AND position(encode(convert_to($1, 'UTF8'), 'hex') IN CAST(t AS TEXT)) > 0"
                    );
                    let query = sqlx::query_as::<_, (i64,)>(sqlx::AssertSqlSafe(query)).bind(text);
                    if query.fetch_one(&mut conn).await.expect("a look").0 > 0 {
                        found.push(table);
                    }
                }
            }
        }
        if self.log_holds(text).await {
            found.push("log".to_owned());
            found.sort_unstable();
        }
        found.dedup();
        found
    }

    /// Returns whether the event log, whose rows are compressed, contains a text.
    async fn log_holds(&self, text: &str) -> bool {
        const ROWS: &str = "SELECT entries FROM log";
        let rows: Vec<(Vec<u8>,)> = match self {
            Self::Sqlite(folder) => {
                let mut conn = SqliteConnection::connect(&folder.path().join("nuncio.db").to_string_lossy()).await.expect("the database");
                sqlx::query_as(ROWS).fetch_all(&mut conn).await.expect("the log")
            }
            Self::Postgres { .. } => {
                let mut conn = PgConnection::connect(&self.url()).await.expect("the database");
                sqlx::query_as(ROWS).fetch_all(&mut conn).await.expect("the log")
            }
        };
        rows.iter().any(|(entries,)| {
            let entries = lz4_flex::decompress_size_prepended(entries).expect("a row of the log");
            String::from_utf8(entries).expect("JSON").contains(text)
        })
    }

    /// Runs a statement, bypassing the store.
    pub async fn execute(&self, statement: &str) {
        let Self::Sqlite(folder) = self else { return execute(&self.url(), statement.to_owned()).await };
        let options = SqliteConnectOptions::new().filename(folder.path().join("nuncio.db")).busy_timeout(Duration::from_secs(5));
        let mut conn = SqliteConnection::connect_with(&options).await.expect("the file opens");
        conn.execute(sqlx::AssertSqlSafe(statement.to_owned())).await.expect("the statement runs");
        conn.close().await.expect("the file closes");
    }

    /// Counts the server's statements on connections opened from now on.
    pub async fn count_statements(&self) {
        let Self::Postgres { server, name } = self else { panic!("only PostgreSQL counts statements") };
        // Tests that create the extension concurrently would conflict.
        execute(server, "SELECT pg_advisory_lock(7); CREATE EXTENSION IF NOT EXISTS pg_stat_statements".to_owned()).await;
        execute(server, format!("ALTER DATABASE {name} SET pg_stat_statements.track = 'top'")).await;
    }

    /// Returns the counted statements, with the number of executions.
    pub async fn statements(&self) -> BTreeMap<String, i64> {
        let Self::Postgres { server, name } = self else { panic!("only PostgreSQL counts statements") };
        let mut conn = PgConnection::connect(server).await.expect("the PostgreSQL server of the tests answers");
        let rows: Vec<(String, i64)> = sqlx::query_as(STATEMENTS).bind(name).fetch_all(&mut conn).await.expect("the statements");
        rows.into_iter().collect()
    }

    /// Blocks all writers of messages until [`Held::release`]. The store gives up after a second.
    pub async fn hold_messages(&self) -> Held {
        if let Self::Sqlite(folder) = self {
            let mut conn = SqliteConnection::connect(&folder.path().join("nuncio.db").to_string_lossy()).await.expect("the file opens");
            conn.execute("BEGIN IMMEDIATE").await.expect("the only writer");
            return Held::Sqlite(conn);
        }
        let mut conn = PgConnection::connect(&self.url()).await.expect("the database");
        conn.execute("BEGIN; LOCK TABLE messages IN SHARE MODE").await.expect("the lock");
        Held::Postgres(conn)
    }

    /// Returns the folder of a SQLite database.
    pub fn folder(&self) -> Option<&Path> {
        if let Self::Sqlite(folder) = self { Some(folder.path()) } else { None }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let Self::Postgres { server, name } = self else { return };
        let (server, name) = (server.clone(), name.clone());
        // In a separate runtime: the test's may be shutting down.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(execute(&server, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")));
        });
        let _ = dropping.join();
    }
}

async fn execute(server: &str, statement: String) {
    let mut conn = PgConnection::connect(server).await.expect("the PostgreSQL server of the tests answers");
    conn.execute(sqlx::AssertSqlSafe(statement)).await.expect("the statement runs");
}
