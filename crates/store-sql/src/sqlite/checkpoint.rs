//! Moving the write-ahead log into the database file without stalling the writer.
//!
//! Passive checkpoints run on a connection and thread of their own, copy most frames and sync what they copied. Only when few are left
//! does the writer itself restart the log, which otherwise would grow without bound. SQLite syncs the database file then, and the writer
//! would wait for all that was copied since the last time: that is why the thread syncs, and goes on until hardly anything is left.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;

use super::{end_if_sync_failed, end_process};

/// Commits between two calls for a checkpoint. Fewer copy the same pages more often; more make each one a burst that is felt.
const EVERY: u64 = 48;
/// Passes of a checkpoint before the writer restarts the log with whatever is left.
const PASSES: u32 = 8;
/// Frames in the log that call for a checkpoint.
const START: i64 = 1_000;
/// Frames written during a pass that the writer can copy itself in about a millisecond.
const FEW: i64 = 80;

#[derive(Debug, Default)]
pub(super) struct Checkpointer {
    shared: Arc<Shared>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    wanted: Mutex<bool>,
    wake: Condvar,
    stop: AtomicBool,
    restart: AtomicBool,
    commits: AtomicU64,
}

impl Checkpointer {
    /// `file` is the database file. It must stay open as long as any connection: closing it would end their locks.
    pub(super) fn start(path: &Path, file: Arc<File>) -> rusqlite::Result<Self> {
        let conn = Connection::open(path)?;
        conn.busy_timeout(Duration::from_secs(1))?;
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("sqlite-checkpoint".into()).spawn(move || run(&conn, &file, &for_thread)).ok();
        Ok(Self { shared, thread })
    }

    /// Told after each commit of the writer, with its connection: asks for a passive checkpoint now and then, and restarts the
    /// log when that has become cheap.
    pub(super) fn after_commit(&self, writer: &Connection) {
        let commits = self.shared.commits.fetch_add(1, Ordering::Relaxed);
        if self.shared.restart.swap(false, Ordering::AcqRel) {
            let _ = checkpoint(writer, "PRAGMA wal_checkpoint(RESTART)");
        } else if commits.is_multiple_of(EVERY) {
            *self.shared.wanted.lock() = true;
            self.shared.wake.notify_one();
        }
    }

    pub(super) fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        *self.shared.wanted.lock() = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(conn: &Connection, file: &File, shared: &Shared) {
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
        if catch_up(conn, file) {
            shared.restart.store(true, Ordering::Release);
        }
    }
}

/// Copies and syncs until little is left for the writer to do; whether it should restart the log then.
///
/// Each pass is shorter than the one before, since less was written meanwhile. A log that is small, or that a reader still needs, stays.
fn catch_up(conn: &Connection, file: &File) -> bool {
    let (mut seen, mut all) = (0, false);
    for _ in 0..PASSES {
        // A checkpoint that finds the log busy does nothing; the next commits ask again.
        let Ok((log, copied)) = checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)") else { return false };
        if let Err(error) = file.sync_data() {
            end_process(&error);
        }
        all = copied == log;
        if log < START {
            return false;
        }
        if all && log - seen < FEW {
            return true;
        }
        seen = log;
    }
    all
}

/// Runs one checkpoint; returns the frames in the log and those copied so far.
///
/// SQLite syncs the database file only when all frames are copied. A sync that fails takes with it what earlier, partial checkpoints
/// copied, and SQLite would not copy that again: only a new start does.
fn checkpoint(conn: &Connection, pragma: &'static str) -> rusqlite::Result<(i64, i64)> {
    conn.query_row(pragma, [], |row| Ok((row.get(1)?, row.get(2)?)))
        .inspect_err(|error| end_if_sync_failed(error.sqlite_error().map(|e| e.extended_code), error))
}
