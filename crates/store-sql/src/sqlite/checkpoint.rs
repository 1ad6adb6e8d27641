//! Moving the write-ahead log into the database file without stalling the writer.
//!
//! Passive checkpoints run on a connection and thread of their own, copy most frames and sync what they copied. Only when few are left
//! does the writer itself restart the log, which otherwise would grow without bound. SQLite syncs the database file then, and the writer
//! would wait for all that was copied since the last time: that is why the thread syncs, and goes on until hardly anything is left.
//!
//! A log restarts only while nobody reads from it, and the writer does not wait for that. If somebody always reads, the log grows, until the
//! thread keeps new reads back for a moment.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use sqlx::SqlitePool;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::{BUSY, DatabaseFile, READERS, end_if_sync_failed, end_process};

/// Commits between two calls for a checkpoint. Fewer copy the same pages more often; more make each one a burst that is felt.
const EVERY: u64 = 48;
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";
/// Restarts the log, too, and makes its file empty: a log that only restarts keeps old pages behind its new end.
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";
/// Passes of a checkpoint before the writer restarts the log with whatever is left.
const PASSES: u32 = 8;
/// Frames in the log that call for a checkpoint.
const START: i64 = 1_000;
/// Frames written during a pass that the writer can copy itself in about a millisecond.
const FEW: i64 = 80;
/// Frames in a log (64 MB) that reads are kept back for, so that it can restart.
const LARGE: i64 = 16_384;
/// How long to wait for reads to end, and then for the turn to write. Reads that come meanwhile wait as long.
const PATIENCE: Duration = Duration::from_secs(1);
const TURN: Duration = Duration::from_millis(100);
/// How long reads are not kept back again after one of them took longer than that.
const REST: Duration = Duration::from_secs(15);

#[derive(Debug, Default)]
pub(super) struct Checkpointer {
    shared: Arc<Commits>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Everybody else who uses the file in this process.
#[derive(Debug)]
pub(super) struct Others {
    pub(super) readers: SqlitePool,
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    pub(super) runtime: Handle,
}

/// What those who commit tell the checkpoint thread.
#[derive(Debug, Default)]
pub(super) struct Commits {
    wanted: Mutex<bool>,
    wake: Condvar,
    stop: AtomicBool,
    restart: AtomicBool,
    /// The log has personal data that was erased.
    truncate: AtomicBool,
    number: AtomicU64,
}

impl Checkpointer {
    /// `file` is the database file. It must stay open as long as any connection: closing it would end their locks.
    pub(super) fn start(path: &Path, file: Arc<DatabaseFile>, others: Others) -> rusqlite::Result<Self> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(Duration::ZERO)?;
        let shared = Arc::new(Commits::default());
        let for_thread = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("sqlite-checkpoint".into()).spawn(move || run(&conn, &file, &for_thread, &others)).ok();
        Ok(Self { shared, thread })
    }

    /// For transactions outside the writer.
    pub(super) fn commits(&self) -> Arc<Commits> {
        Arc::clone(&self.shared)
    }

    /// Told after each commit of the writer, with its connection. Restarts the log when that has become cheap.
    pub(super) fn after_commit(&self, writer: &Connection) {
        self.shared.committed();
        if self.shared.restart.swap(false, Ordering::AcqRel) {
            // SQLite would wait for reads to end, and a busy server has always some.
            let _ = writer.busy_timeout(Duration::ZERO);
            let _ = self.shared.restart_log(writer);
            let _ = writer.busy_timeout(BUSY);
        }
    }

    pub(super) fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.want();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Commits {
    /// Told after each commit: asks for a passive checkpoint now and then. A log that is all copied is restarted by the next write.
    pub(super) fn committed(&self) {
        if self.number.fetch_add(1, Ordering::Relaxed).is_multiple_of(EVERY) {
            self.want();
        }
    }

    /// Asks for an empty log, since it has personal data that was erased. The next commits see to it.
    pub(super) fn truncate(&self) {
        self.truncate.store(true, Ordering::Release);
    }

    fn want(&self) {
        *self.wanted.lock() = true;
        self.wake.notify_one();
    }

    fn restart_log(&self, conn: &Connection) -> rusqlite::Result<()> {
        if !self.truncate.load(Ordering::Acquire) {
            return checkpoint(conn, RESTART).map(drop);
        }
        if checkpoint(conn, TRUNCATE)? == (0, 0) {
            self.truncate.store(false, Ordering::Release);
        }
        Ok(())
    }
}

fn run(conn: &Connection, file: &DatabaseFile, shared: &Commits, others: &Others) {
    let mut rest_until = Instant::now();
    loop {
        let mut wanted = shared.wanted.lock();
        while !*wanted {
            shared.wake.wait(&mut wanted);
        }
        *wanted = false;
        drop(wanted);
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        let Ok(left) = catch_up(conn, file) else { continue };
        if left.is_little || left.log < START && shared.truncate.load(Ordering::Acquire) {
            let is_writer_idle = shared.restart.swap(true, Ordering::AcqRel);
            if is_writer_idle && restart(conn, shared, others) {
                shared.restart.store(false, Ordering::Release);
            }
        } else if left.log >= LARGE && Instant::now() >= rest_until && !restart_alone(conn, file, shared, others) {
            rest_until = Instant::now() + REST;
        }
    }
}

/// What passive checkpoints left.
struct Left {
    /// Frames in the log.
    log: i64,
    /// Whether the log should be restarted, and whoever does it has little to copy.
    is_little: bool,
}

/// Copies and syncs until little is left to do. An error is a log that is busy; the next commits ask again.
///
/// Each pass is shorter than the one before, since less was written meanwhile. A log that is small, or that a reader still needs, stays.
fn catch_up(conn: &Connection, file: &DatabaseFile) -> rusqlite::Result<Left> {
    let (mut seen, mut all) = (0, false);
    for _ in 0..PASSES {
        let (log, copied) = checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)")?;
        if let Err(error) = file.file.sync_data() {
            end_process(&error);
        }
        all = copied == log;
        if log < START || (all && log - seen < FEW) {
            return Ok(Left { log, is_little: log >= START });
        }
        seen = log;
    }
    Ok(Left { log: seen, is_little: all })
}

/// Restarts the log while nobody else uses the file. Returns `false` if a read takes too long.
fn restart_alone(conn: &Connection, file: &DatabaseFile, shared: &Commits, others: &Others) -> bool {
    // Connections go back to their pool by a task, also those that are dropped here. Without a runtime to run it, the process would end.
    let _runtime = others.runtime.enter();
    let readers = async {
        let mut held = Vec::new();
        for _ in 0..READERS {
            held.push(others.readers.acquire().await.ok()?);
        }
        Some(held)
    };
    let Ok(Some(_readers)) = others.runtime.block_on(async { timeout(PATIENCE, readers).await }) else { return false };
    // What the reads kept from being copied, while the writer goes on.
    let Ok(_) = catch_up(conn, file) else { return false };
    restart(conn, shared, others)
}

/// Restarts the log unless it is being read. Returns `false` if a read or another transaction takes too long.
fn restart(conn: &Connection, shared: &Commits, others: &Others) -> bool {
    // Whoever has the turn may wait for a reader that was kept back.
    let Ok(_turn) = others.runtime.block_on(async { timeout(TURN, others.turn.lock()).await }) else { return false };
    shared.restart_log(conn).is_ok()
}

/// Runs one checkpoint; returns the frames in the log and those copied so far.
///
/// SQLite syncs the database file only when all frames are copied. A sync that fails takes with it what earlier, partial checkpoints
/// copied, and SQLite would not copy that again: only a new start does.
fn checkpoint(conn: &Connection, pragma: &'static str) -> rusqlite::Result<(i64, i64)> {
    conn.query_row(pragma, [], |row| Ok((row.get(1)?, row.get(2)?)))
        .inspect_err(|error| end_if_sync_failed(error.sqlite_error().map(|e| e.extended_code), error))
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
