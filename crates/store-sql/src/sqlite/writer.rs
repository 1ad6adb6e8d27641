//! The writer thread: everything that waits becomes one transaction.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_store::{Accepted, DeliveryLog, MetricRow, Result, StoreError, Transition, Transitioned};
use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::checkpoint::Checkpointer;
use super::message_batch::{self, Batch, Statements};
use super::pace::Pace;
use super::{end_if_sync_failed, rusqlite_error};
use crate::batch::{WAITING, answer, closed, full, may_be_one_item};
use crate::cache::Cache;
use crate::message_batch::{AcceptOp, AcceptOutcome, DeliveriesOp, MetricsOp, Op, Prepared, TransitionOp};

/// Up to so many new messages that callers wait for make a transaction short.
const FEW: usize = 8;

#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    accepts: VecDeque<AcceptOp>,
    /// Messages of broadcasts, which the others do not wait for.
    bulk: VecDeque<AcceptOp>,
    transitions: VecDeque<TransitionOp>,
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
    pub(super) fn start(path: &Path, file: Arc<File>, turn: Arc<tokio::sync::Mutex<()>>) -> Result<Self> {
        let conn = connect(path).map_err(rusqlite_error)?;
        let runtime = Handle::current();
        let checkpointer = Checkpointer::start(path, file).map_err(rusqlite_error)?;
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || run(&conn, checkpointer, &for_thread, &turn, &runtime))
            .map_err(|e| StoreError::Unavailable(e.to_string()))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    pub(super) async fn accept(&self, item: Box<Prepared>) -> Result<Accepted> {
        let bulk = item.is_bulk();
        self.enqueue(item, |queue| if bulk { &mut queue.bulk } else { &mut queue.accepts }).await
    }

    pub(super) async fn transition(&self, item: Transition) -> Result<Transitioned> {
        self.enqueue(item, |queue| &mut queue.transitions).await
    }

    pub(super) async fn add_metrics(&self, item: Vec<MetricRow>) -> Result<()> {
        self.enqueue(item, |queue| &mut queue.metrics).await
    }

    pub(super) async fn log_deliveries(&self, item: DeliveryLog) -> Result<bool> {
        self.enqueue(item, |queue| &mut queue.deliveries).await
    }

    async fn enqueue<I, O>(&self, item: I, lane: impl FnOnce(&mut Queue) -> &mut VecDeque<Op<I, O>>) -> Result<O> {
        let (reply, answer) = oneshot::channel();
        {
            let mut queue = self.shared.queue.lock();
            if queue.closed {
                return Err(closed());
            }
            let idle = std::mem::take(&mut queue.idle);
            let lane = lane(&mut queue);
            if lane.len() >= WAITING {
                return Err(full());
            }
            lane.push_back(Op { item, reply });
            drop(queue);
            if idle {
                self.shared.wake.notify_one();
            }
        }
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    pub(super) async fn stop(&self) {
        self.shared.queue.lock().closed = true;
        self.shared.wake.notify_one();
        let Some(thread) = self.thread.lock().take() else { return };
        let _ = tokio::task::spawn_blocking(move || thread.join()).await;
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.busy_timeout(Duration::from_secs(5))?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update(None, "cache_size", -16_384)?;
    Ok(conn)
}

fn run(conn: &Connection, mut checkpointer: Checkpointer, shared: &Shared, turn: &tokio::sync::Mutex<()>, runtime: &Handle) {
    let (cache, mut pace) = (Cache::default(), Pace::default());
    let mut sql = Statements::new(conn);
    while let Some(work) = next(shared, &pace) {
        let guard = turn.blocking_lock();
        work.run(conn, &mut sql, &cache, &mut pace, runtime);
        checkpointer.after_commit(conn);
        drop(guard);
    }
    checkpointer.stop();
}

/// What waits, up to a batch; `None` when the store is closed and nothing is left. Steps get half of it if as many wait.
fn next(shared: &Shared, pace: &Pace) -> Option<Work> {
    let mut queue = shared.queue.lock();
    while queue.is_empty() {
        if queue.closed {
            return None;
        }
        queue.idle = true;
        shared.wake.wait(&mut queue);
    }
    // A few that callers wait for are not held up by what no caller waits for.
    let few = !queue.accepts.is_empty() && queue.accepts.len() <= FEW;
    let most = if few { queue.accepts.len() + pace.short() } else { pace.items() };
    let new = queue.accepts.len() + queue.bulk.len();
    let transitions = queue.transitions.len().min(most - new.min(most / 2));
    // Bulk gets a little even when others would fill every batch.
    let room = most - transitions;
    let accepts = queue.accepts.len().min(room - queue.bulk.len().min(room / 8));
    let bulk = queue.bulk.len().min(room - accepts);
    let mut new: Vec<_> = queue.accepts.drain(..accepts).collect();
    new.extend(queue.bulk.drain(..bulk));
    Some(Work {
        accepts: new,
        transitions: queue.transitions.drain(..transitions).collect(),
        metrics: queue.metrics.pop_front().into_iter().collect(),
        deliveries: queue.deliveries.pop_front().into_iter().collect(),
    })
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.accepts.is_empty()
            && self.bulk.is_empty()
            && self.transitions.is_empty()
            && self.metrics.is_empty()
            && self.deliveries.is_empty()
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
            Err(error) => {
                tracing::error!(%error, "a batch was not written");
                answer(self.accepts, Err(crate::message_batch::copy_error(&error)));
                answer(self.transitions, Err(crate::message_batch::copy_error(&error)));
                answer(self.deliveries, Err(crate::message_batch::copy_error(&error)));
                answer(self.metrics, Err(error));
            }
        }
    }

    fn answer(self, (accepted, transitioned, logged): Answers) {
        answer(self.accepts, Ok(accepted));
        answer(self.transitions, Ok(transitioned));
        answer(self.deliveries, Ok(logged));
        let added = vec![(); self.metrics.len()];
        answer(self.metrics, Ok(added));
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

    fn write(&self, sql: &mut Statements<'_>, cache: &Cache, batch: &mut Batch) -> Result<Answers> {
        let accepted = message_batch::accept(sql, batch, &self.accepts)?;
        let transitioned = message_batch::transition(sql, batch, cache, &self.transitions)?;
        for op in &self.metrics {
            message_batch::add_metrics(sql, &op.item)?;
        }
        let logged = self.deliveries.iter().map(|op| message_batch::log_deliveries(sql, &op.item)).collect::<Result<_>>()?;
        batch.finish(sql, cache)?;
        Ok((accepted, transitioned, logged))
    }

    fn halves(mut self) -> [Self; 2] {
        if self.accepts.len() + self.transitions.len() < self.len() {
            let (metrics, deliveries) = (std::mem::take(&mut self.metrics), std::mem::take(&mut self.deliveries));
            if self.len() == 0 {
                return [Self { metrics, ..Self::default() }, Self { deliveries, ..Self::default() }];
            }
            return [self, Self { metrics, deliveries, ..Self::default() }];
        }
        let accepts = self.accepts.split_off(self.accepts.len() / 2);
        let transitions = self.transitions.split_off(self.transitions.len() / 2);
        // With one item of each kind, the halves are the kinds.
        if self.accepts.is_empty() && self.transitions.is_empty() {
            return [Self { accepts, ..Self::default() }, Self { transitions, ..Self::default() }];
        }
        [self, Self { accepts, transitions, ..Self::default() }]
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
        tracing::error!(%error, "a transaction could not be rolled back");
    }
}
