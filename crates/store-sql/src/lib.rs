//! The store on SQLite and on PostgreSQL.
//!
//! Cold statements are written once, in `sql/`, and compiled for both drivers; whole statements that differ are constants named
//! alike in each backend's `dialect`. Each backend writes the hot operations in batches: what arrives while one
//! transaction runs forms the next one (group commit).

#![expect(clippy::duplicate_mod, reason = "the files in sql/ are compiled once per driver: that is how two databases share one text")]

mod agenda;
mod cache;
mod column;
mod copy;
mod event_log;
mod ledger_batch;
mod message_batch;
mod migrations;
mod postgres;
mod quota;
mod row;
mod sqlite;

use std::path::PathBuf;
use std::sync::Arc;

use nuncio_store::{Result, Store, StoreError};

pub use copy::{Copied, Progress, copy};
pub use postgres::{COPIED, DISTRIBUTED, PostgresStore, WRITER_SETTINGS, WRITER_STATEMENTS, check_url, distribute};
pub use sqlite::SqliteStore;

/// Which database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// The embedded one, in this file.
    Sqlite(PathBuf),
    /// A server, by `postgres://` URL.
    Postgres(nuncio_domain::Redacted<String>),
}

/// Opens the database and brings its schema up to date.
pub async fn open(target: &Target) -> Result<Arc<dyn Store>> {
    match target {
        Target::Sqlite(path) => Ok(Arc::new(SqliteStore::open(path).await?)),
        Target::Postgres(url) => Ok(Arc::new(PostgresStore::open(url.expose()).await?)),
    }
}

fn sqlx_error(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(e) if e.is_unique_violation() => StoreError::Conflict(Box::new(error)),
        sqlx::Error::Database(e) => {
            let passing = e.code().and_then(|code| passing(primary(&code), e.message()));
            passing.unwrap_or_else(|| StoreError::Other(Box::new(error)))
        }
        sqlx::Error::PoolTimedOut => StoreError::Busy("no connection became free in time".to_owned()),
        sqlx::Error::Io(_) | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => {
            StoreError::Unavailable(error.to_string())
        }
        sqlx::Error::ColumnDecode { index, .. } => StoreError::Corrupt { table: "?", what: format!("column {index}") },
        _ => StoreError::Other(Box::new(error)),
    }
}

/// The error of this code of a database, if the statement can succeed later.
fn passing(code: &str, message: &str) -> Option<StoreError> {
    match code {
        // PostgreSQL: deadlock, serialization, lock and statement time-outs. SQLite: busy, locked, interrupted.
        "40P01" | "40001" | "55P03" | "57014" | "5" | "6" | "9" => Some(StoreError::Busy(message.to_owned())),
        // PostgreSQL: shutting down, starting up, session ended because it was idle, read-only, no space, too many connections. SQLite:
        // read-only, I/O, full, cannot open.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25006" | "53100" | "53300" | "8" | "10" | "13" | "14" => {
            Some(StoreError::Unavailable(message.to_owned()))
        }
        _ => None,
    }
}

/// The code without what SQLite adds in its higher bits; codes of PostgreSQL have five characters and stay as they are.
fn primary(code: &str) -> &str {
    const PRIMARY: [&str; 7] = ["5", "6", "8", "9", "10", "13", "14"];
    let Some(number) = code.parse::<u32>().ok().filter(|_| code.len() < 5) else { return code };
    PRIMARY.into_iter().find(|primary| primary.parse() == Ok(number & 0xff)).unwrap_or(code)
}

/// A transaction that an error ends: its commit fails. PostgreSQL would answer that commit with a silent rollback, SQLite would
/// write the rest.
trait Ends {
    fn end(&mut self);
}

fn ended() -> StoreError {
    StoreError::Other("a statement of this transaction failed, so nothing of it was written".into())
}

/// `?` for driver errors, since neither type is ours.
trait SqlxResult<T>: Sized {
    fn store(self) -> Result<T>;

    /// The same within a transaction, which an error ends.
    fn abort_on_error(self, tx: &mut impl Ends) -> Result<T> {
        self.store().inspect_err(|_| tx.end())
    }
}

impl<T> SqlxResult<T> for std::result::Result<T, sqlx::Error> {
    fn store(self) -> Result<T> {
        self.map_err(sqlx_error)
    }
}
