//! SQLite: one writer thread for the hot path, sqlx for everything else.
//!
//! There is one writer at a time, and both sides take turns by a fair lock of their own: waiting for SQLite's lock would be
//! polling, and would let a busy hot path starve everyone else.

mod checkpoint;
mod dialect;
mod message_batch;
mod pace;
mod private;
mod writer;

#[path = "../sql/mod.rs"]
mod sql;

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nuncio_store::{Accept, Accepted, DeliveryLog, MetricRow, Result, Store, StoreError, Transition, Transitioned, Tx};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, Sqlite, SqlitePool};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::message_batch::{accept_with_chunks, folded};
use crate::{SqlxResult as _, ended, migrations};
use checkpoint::Commits;
use sql::SqlTx;
use writer::Writer;

pub(crate) type Db = Sqlite;
pub(crate) type Conn = sqlx::SqliteConnection;

const READERS: u32 = 4;
/// How long to wait for a lock of the file that another process holds.
const BUSY: Duration = Duration::from_secs(5);
/// How long a reader can be used: the slow reads of one environment must not occupy all readers.
const READ: Duration = Duration::from_secs(10);
/// Steps of SQLite's virtual machine between two looks at the clock: a few milliseconds.
const STEPS: i32 = 100_000;
/// Rows of metrics in one transaction.
const METRICS: usize = 64;

/// The store on an SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    readers: SqlitePool,
    cold: SqlitePool,
    turn: Arc<Mutex<()>>,
    writer: Writer,
    /// See [`checkpoint::Checkpointer::start`]; dropped last.
    file: Arc<DatabaseFile>,
}

impl SqliteStore {
    /// Opens the file, making it if need be, and brings its schema up to date. The caller holds the folder's lock.
    pub async fn open(path: &Path) -> Result<Self> {
        private::keep(path)?;
        let cold = cold_pool(path).await?;
        migrations::sqlite(&cold).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(Duration::from_secs(5))
            // A connection to a file does not break. The time saved pays for setting the limit of a read.
            .test_before_acquire(false)
            .connect_with(options(path).read_only(true).pragma("query_only", "ON"))
            .await
            .store()?;
        let turn = Arc::new(Mutex::new(()));
        let file = Arc::new(DatabaseFile::open(path).map_err(|e| StoreError::Unavailable(e.to_string()))?);
        let writer = Writer::start(path, Arc::clone(&file), readers.clone(), Arc::clone(&turn))?;
        Ok(Self { readers, cold, turn, writer, file })
    }
}

/// The database file, held open.
#[derive(Debug)]
struct DatabaseFile {
    path: PathBuf,
    file: File,
    /// Its device and number.
    identity: (u64, u64),
}

impl DatabaseFile {
    fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let identity = identity(&file.metadata()?);
        Ok(Self { path: path.to_owned(), file, identity })
    }

    /// Fails if the file was replaced or deleted while it is open: its writes would be lost at the next start.
    fn check(&self) -> Result<()> {
        if std::fs::metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            return Ok(());
        }
        let path = self.path.display();
        Err(StoreError::Unavailable(format!("{path} was replaced or deleted while the server runs; restart the server")))
    }
}

fn identity(found: &std::fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        // What is deleted or changed is overwritten: the data of erased people must not remain in free space of the file.
        .pragma("secure_delete", "ON")
        .pragma("wal_autocheckpoint", "0")
        .pragma("cache_size", "-2048")
        .pragma("temp_store", "MEMORY")
}

async fn cold_pool(path: &Path) -> Result<SqlitePool> {
    SqlitePoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(10))
        // SQLite itself rolls back when the disk is full, and sqlx then counts a transaction that can never end.
        .before_acquire(|conn, _| Box::pin(async move { Ok(!conn.is_in_transaction()) }))
        .connect_with(options(path).create_if_missing(true))
        .await
        .store()
}

/// The connection of a transaction or a reader.
#[derive(Debug)]
enum Handle {
    // Fields drop in order: the transaction rolls back before the turn is given on.
    Write(sqlx::Transaction<'static, Db>, OwnedMutexGuard<()>, Arc<Commits>),
    Read(sqlx::pool::PoolConnection<Db>),
}

impl Handle {
    /// Takes the time limit off a reader, or puts it back. Writing has none.
    async fn limit_time(&mut self, limited: bool) -> sqlx::Result<()> {
        match self {
            Self::Read(conn) => limit_time(conn, limited.then_some(READ)).await,
            Self::Write(..) => Ok(()),
        }
    }

    /// Has the log emptied, which still has the pages of what was erased.
    fn empty_log(&self) {
        if let Self::Write(.., commits) = self {
            commits.truncate();
        }
    }
}

/// Interrupts the statements of a connection once this time has passed.
async fn limit_time(conn: &mut Conn, limit: Option<Duration>) -> sqlx::Result<()> {
    let (mut handle, begun) = (conn.lock_handle().await?, Instant::now());
    match limit {
        Some(limit) => handle.set_progress_handler(STEPS, move || begun.elapsed() < limit),
        None => handle.remove_progress_handler(),
    }
    Ok(())
}

impl SqlTx {
    pub(crate) fn conn(&mut self) -> &mut Conn {
        match &mut self.handle {
            Handle::Write(tx, ..) => tx,
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
            Handle::Write(tx, _turn, commits) => {
                let outcome = tx.commit().await;
                commits.committed();
                if let Err(sqlx::Error::Database(error)) = &outcome {
                    let code = error.code().and_then(|code| code.parse().ok());
                    end_if_sync_failed(code, error);
                }
                outcome.store()
            }
            Handle::Read(_) => Ok(()),
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn accept(&self, item: Accept) -> Result<Accepted> {
        accept_with_chunks(self, item, |prepared| self.writer.accept(prepared)).await
    }

    async fn transition(&self, item: Transition) -> Result<Transitioned> {
        self.writer.transition(item).await
    }

    async fn add_metrics(&self, deltas: Vec<MetricRow>) -> Result<()> {
        for part in folded(deltas).chunks(METRICS) {
            self.writer.add_metrics(part.to_vec()).await?;
        }
        Ok(())
    }

    async fn log_deliveries(&self, log: DeliveryLog) -> Result<bool> {
        self.writer.log_deliveries(log).await
    }

    async fn begin(&self) -> Result<Box<dyn Tx>> {
        self.file.check()?;
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let tx = self.cold.begin_with("BEGIN IMMEDIATE").await.store()?;
        Ok(Box::new(SqlTx::from(Handle::Write(tx, turn, Arc::clone(&self.writer.commits)))))
    }

    async fn read(&self) -> Result<Box<dyn Tx>> {
        let mut reader = self.readers.acquire().await.store()?;
        limit_time(&mut reader, Some(READ)).await.store()?;
        Ok(Box::new(SqlTx::from(Handle::Read(reader))))
    }

    async fn ping(&self) -> Result<()> {
        let tx = self.begin().await?;
        tx.commit().await
    }

    async fn close(&self) {
        self.writer.stop().await;
        self.readers.close().await;
        self.cold.close().await;
    }

    async fn advice(&self) -> Result<Vec<String>> {
        let mut advice = Vec::new();
        let mut reader = self.readers.acquire().await.store()?;
        limit_time(&mut reader, None).await.store()?;
        let (answer,): (String,) = sqlx::query_as("PRAGMA quick_check(1)").fetch_one(&mut *reader).await.store()?;
        if answer != "ok" {
            advice.push(format!("{}: the file is damaged ({answer}); restore it from a copy", self.file.path.display()));
        }
        let folder = self.file.path.parent().unwrap_or(&self.file.path);
        advice.extend(rustix::fs::statvfs(folder).ok().and_then(|disk| scarce(folder, disk.f_bavail.saturating_mul(disk.f_frsize))));
        Ok(advice)
    }
}

/// Free bytes of a disk below which the operator should know.
const SCARCE: u64 = 256_000_000;

fn scarce(folder: &Path, free: u64) -> Option<String> {
    let text = || format!("{}: the disk has {} MB free; messages are rejected when it is full", folder.display(), free / 1_000_000);
    (free < SCARCE).then(text)
}

/// After a failed sync it is unknown what is stored, and a second sync would claim success: the process ends so that nothing
/// unsynced is answered, and the next start finds out what is there. `code` is SQLite's extended one.
fn end_if_sync_failed(code: Option<i32>, error: &dyn std::fmt::Display) {
    if code == Some(rusqlite::ffi::SQLITE_IOERR_FSYNC) {
        end_process(error);
    }
}

fn end_process(error: &dyn std::fmt::Display) -> ! {
    tracing::error!(%error, "failed to sync the disk; exiting, and the next start reads what was stored");
    std::process::exit(70)
}

/// Whether a constraint was hit that no two rows may share; the others are faults of ours.
fn unique(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi;
    let code = error.sqlite_error().map(|e| e.extended_code);
    matches!(code, Some(ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY | ffi::SQLITE_CONSTRAINT_ROWID))
}

fn rusqlite_error(error: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode as Code;
    let Some(code) = error.sqlite_error_code() else { return StoreError::Other(Box::new(error)) };
    match code {
        Code::DatabaseBusy | Code::DatabaseLocked => StoreError::Busy(error.to_string()),
        Code::DiskFull | Code::ReadOnly | Code::CannotOpen | Code::SystemIoFailure => StoreError::Unavailable(error.to_string()),
        Code::ConstraintViolation if unique(&error) => StoreError::Conflict(Box::new(error)),
        Code::DatabaseCorrupt | Code::NotADatabase => StoreError::Corrupt { table: "the file", what: error.to_string() },
        _ => StoreError::Other(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_little_room_is_reported() {
        assert_eq!(scarce(Path::new("data"), 1 << 40), None);
        assert_eq!(scarce(Path::new("data"), 0).unwrap(), "data: the disk has 0 MB free; messages are rejected when it is full");
        assert!(scarce(Path::new("data"), 12_345_678).unwrap().contains(" 12 MB "));
    }

    const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";

    #[tokio::test]
    async fn a_read_that_takes_too_long_is_ended_and_its_reader_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db")).await.unwrap();
        let mut reader = store.readers.acquire().await.unwrap();
        limit_time(&mut reader, Some(Duration::ZERO)).await.unwrap();
        let ended = sqlx::query(ENDLESS).fetch_one(&mut *reader).await.store().unwrap_err();
        assert!(matches!(ended, StoreError::Busy(_)), "{ended:?}");
        drop(reader);
        for _ in 0..2 * READERS {
            store.read().await.unwrap().database_time().await.unwrap();
        }
        store.close().await;
    }
}
