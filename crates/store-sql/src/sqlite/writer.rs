//! The writer thread: everything that waits becomes one transaction.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use nuncio_store::{Accepted, DeliveryLog, MetricRow, Result, StoreError, Transition, Transitioned};
use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use sqlx::SqlitePool;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::checkpoint::{Checkpointer, Commits, Others};
use super::message_batch::{self, Batch, Statements};
use super::pace::Pace;
use super::{BUSY, DatabaseFile, end_if_sync_failed, rusqlite_error};
use crate::cache::Cache;
use crate::message_batch::{
    AcceptOp, AcceptOutcome, DeliveriesOp, MetricsOp, Prepared, Queue, STEP_WAIT, TransitionOp, answer, closed, fail, log_failure,
    may_be_one_item, push,
};

#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// Told of commits outside the writer.
    pub(super) commits: Arc<Commits>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: Queue,
    metrics: VecDeque<MetricsOp>,
    deliveries: VecDeque<DeliveriesOp>,
    closed: bool,
    /// The writer is asleep and must be woken.
    idle: bool,
}

/// What one transaction carries.
#[derive(Debug, Default)]
struct Work {
    accepts: Vec<AcceptOp>,
    transitions: Vec<TransitionOp>,
    /// At most one, so that metrics make no transaction much longer.
    metrics: Vec<MetricsOp>,
    /// The same for deliveries.
    deliveries: Vec<DeliveriesOp>,
}

impl Writer {
    pub(super) fn start(path: &Path, file: Arc<DatabaseFile>, readers: SqlitePool, turn: Arc<tokio::sync::Mutex<()>>) -> Result<Self> {
        let conn = connect(path).map_err(rusqlite_error)?;
        let runtime = Handle::current();
        let others = Others { readers, turn: Arc::clone(&turn), runtime: runtime.clone() };
        let checkpointer = Checkpointer::start(path, Arc::clone(&file), others).map_err(rusqlite_error)?;
        let commits = checkpointer.commits();
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || run(&conn, &file, checkpointer, &for_thread, &turn, &runtime))
            .map_err(|e| StoreError::Unavailable(e.to_string()))?;
        Ok(Self { shared, commits, thread: Mutex::new(Some(thread)) })
    }

    pub(super) async fn accept(&self, item: Box<Prepared>) -> Result<Accepted> {
        self.enqueue(|waiting| waiting.messages.accept(item)).await
    }

    pub(super) async fn transition(&self, item: Transition) -> Result<Transitioned> {
        self.enqueue(|waiting| waiting.messages.transition(item)).await
    }

    pub(super) async fn add_metrics(&self, item: Vec<MetricRow>) -> Result<()> {
        self.enqueue(|waiting| push(&mut waiting.metrics, item, |op| op)).await
    }

    pub(super) async fn log_deliveries(&self, item: DeliveryLog) -> Result<bool> {
        self.enqueue(|waiting| push(&mut waiting.deliveries, item, |op| op)).await
    }

    async fn enqueue<O>(&self, add: impl FnOnce(&mut Waiting) -> Result<oneshot::Receiver<Result<O>>>) -> Result<O> {
        let answer = {
            let mut waiting = self.shared.waiting.lock();
            if waiting.closed {
                return Err(closed());
            }
            let answer = add(&mut waiting)?;
            let idle = std::mem::take(&mut waiting.idle);
            drop(waiting);
            if idle {
                self.shared.wake.notify_one();
            }
            answer
        };
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    pub(super) async fn stop(&self) {
        self.shared.waiting.lock().closed = true;
        self.shared.wake.notify_one();
        let Some(thread) = self.thread.lock().take() else { return };
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(BUSY)?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "secure_delete", "ON")?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    // In KiB. After a commit that split a page, SQLite scans the whole cache.
    conn.pragma_update(None, "cache_size", -8_192)?;
    Ok(conn)
}

fn run(
    conn: &Connection,
    file: &DatabaseFile,
    mut checkpointer: Checkpointer,
    shared: &Shared,
    turn: &tokio::sync::Mutex<()>,
    runtime: &Handle,
) {
    let (cache, mut pace) = (Cache::default(), Pace::default());
    let mut sql = Statements::new(conn);
    while let Some(work) = next(shared, &pace) {
        if let Err(error) = file.check() {
            work.fail(&error);
            continue;
        }
        let guard = turn.blocking_lock();
        work.run(conn, &mut sql, &cache, &mut pace, runtime);
        checkpointer.after_commit(conn);
        drop(guard);
    }
    checkpointer.stop();
}

/// What waits, up to a batch; `None` when the store is closed and nothing is left.
fn next(shared: &Shared, pace: &Pace) -> Option<Work> {
    let mut waiting = shared.waiting.lock();
    while waiting.is_empty() {
        if waiting.closed {
            return None;
        }
        waiting.idle = true;
        shared.wake.wait(&mut waiting);
    }
    let until = Instant::now() + STEP_WAIT;
    while waiting.messages.has_only_few_steps() && !waiting.closed {
        waiting.idle = true;
        if shared.wake.wait_until(&mut waiting, until).timed_out() {
            break;
        }
    }
    waiting.idle = false;
    let (accepts, transitions) = waiting.messages.take(pace.limits());
    Some(Work {
        accepts,
        transitions,
        metrics: waiting.metrics.pop_front().into_iter().collect(),
        deliveries: waiting.deliveries.pop_front().into_iter().collect(),
    })
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.metrics.is_empty() && self.deliveries.is_empty()
    }
}

/// What the items of a [`Work`] are answered.
type Answers = (Vec<AcceptOutcome>, Vec<Transitioned>, Vec<bool>);

impl Work {
    fn len(&self) -> usize {
        self.accepts.len() + self.transitions.len() + self.metrics.len() + self.deliveries.len()
    }

    fn run(self, conn: &Connection, sql: &mut Statements<'_>, cache: &Cache, pace: &mut Pace, runtime: &Handle) {
        let outcome = self.attempt(conn, sql, cache, pace);
        match outcome {
            Err(error) if may_be_one_item(&error) && self.len() > 1 => {
                for half in self.halves() {
                    half.run(conn, sql, cache, pace, runtime);
                }
            }
            // From a task: waking many others costs less from inside the runtime, and the writer goes on meanwhile.
            Ok(answers) => drop(runtime.spawn(async move { self.answer(answers) })),
            Err(error) => self.fail(&error),
        }
    }

    fn fail(self, error: &StoreError) {
        log_failure(error, self.len());
        fail(self.accepts, error);
        fail(self.transitions, error);
        fail(self.deliveries, error);
        fail(self.metrics, error);
    }

    fn answer(self, (outcomes, transitioned, logged): Answers) {
        answer(self.accepts, outcomes, |prepared, outcome| outcome.answer(*prepared));
        answer(self.transitions, transitioned, |_, transitioned| transitioned);
        answer(self.deliveries, logged, |_, fence_holds| fence_holds);
        let added = vec![(); self.metrics.len()];
        answer(self.metrics, added, |_, ()| ());
    }

    fn attempt(&self, conn: &Connection, sql: &mut Statements<'_>, cache: &Cache, pace: &mut Pace) -> Result<Answers> {
        let begun = Instant::now();
        conn.execute_batch("BEGIN IMMEDIATE").map_err(rusqlite_error)?;
        let mut batch = Batch::default();
        let mut outcome = self.write(sql, cache, &mut batch);
        if batch.stale {
            rollback(conn);
            conn.execute_batch("BEGIN IMMEDIATE").map_err(rusqlite_error)?;
            cache.clear();
            batch = Batch::default();
            outcome = self.write(sql, cache, &mut batch);
        }
        match outcome {
            Ok(answers) => {
                let written = Instant::now();
                commit(conn)?;
                pace.learn(self.len(), written - begun, written.elapsed());
                batch.committed(cache);
                Ok(answers)
            }
            Err(error) => {
                rollback(conn);
                Err(error)
            }
        }
    }

    /// A panic fails the batch like an error of one of its items: without this thread, all callers would wait forever. The cache keeps
    /// nothing of it, since it learns of a batch after the commit.
    fn write(&self, sql: &mut Statements<'_>, cache: &Cache, batch: &mut Batch) -> Result<Answers> {
        let written = catch_unwind(AssertUnwindSafe(|| self.try_write(sql, cache, batch)));
        written.unwrap_or_else(|_| Err(StoreError::Other("writing the batch panicked".into())))
    }

    fn try_write(&self, sql: &mut Statements<'_>, cache: &Cache, batch: &mut Batch) -> Result<Answers> {
        let outcomes = message_batch::accept(sql, batch, &self.accepts)?;
        let transitioned = message_batch::transition(sql, batch, cache, &self.transitions)?;
        for op in &self.metrics {
            message_batch::add_metrics(sql, &op.item)?;
        }
        let logged = self.deliveries.iter().map(|op| message_batch::log_deliveries(sql, &op.item)).collect::<Result<_>>()?;
        batch.finish(sql, cache)?;
        Ok((outcomes, transitioned, logged))
    }

    /// The first kind of item and the others, or the halves of that kind. Steps come before new messages, which start attempts that the
    /// results among the steps made room for.
    fn halves(mut self) -> [Self; 2] {
        let mut first = Self { transitions: std::mem::take(&mut self.transitions), ..Self::default() };
        if first.len() == 0 {
            first.accepts = std::mem::take(&mut self.accepts);
        }
        if first.len() == 0 {
            first.metrics = std::mem::take(&mut self.metrics);
        }
        if self.len() > 0 {
            return [first, self];
        }
        let accepts = first.accepts.split_off(first.accepts.len() / 2);
        let transitions = first.transitions.split_off(first.transitions.len() / 2);
        [first, Self { accepts, transitions, ..Self::default() }]
    }
}

fn commit(conn: &Connection) -> Result<()> {
    let Err(error) = conn.execute_batch("COMMIT") else { return Ok(()) };
    end_if_sync_failed(error.sqlite_error().map(|e| e.extended_code), &error);
    rollback(conn);
    Err(rusqlite_error(error))
}

fn rollback(conn: &Connection) {
    if !conn.is_autocommit()
        && let Err(error) = conn.execute_batch("ROLLBACK")
    {
        tracing::error!(%error, "failed to roll back a transaction");
    }
}
