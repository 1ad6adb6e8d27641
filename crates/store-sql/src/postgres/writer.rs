//! The writer, a task with its own connection: everything that waits becomes one transaction.
//!
//! The server should not be idle while an answer travels and the next batch is encoded: a transaction begins when the commit of the one
//! before is sent. At most two are under way.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use nuncio_store::{Accepted, Result, Transition, Transitioned};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

use super::connection::{Connection, Unwritten, Work};
use super::message_batch::Place;
use crate::batch::{BATCH, closed};
use crate::message_batch::Prepared;
use crate::queue::{Limits, Queue};

/// So many items must wait for a transaction to begin while another is under way: a small one costs as much as a large one.
const AHEAD: usize = 32;
/// Constant: a commit is sent together with the last statements, so what either took is not known. While messages of broadcasts wait, a
/// transaction of 256 takes so long that a one-time password waits for it (ADR 16).
const LIMITS: Limits = Limits { items: BATCH, bulk: 112, short: 32 };

#[derive(Debug)]
pub(super) struct Writer {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
    closing: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Notify,
}

impl Writer {
    pub(super) fn start(url: &str) -> Self {
        let (closing, closed) = watch::channel(false);
        let shared = Arc::new(Shared::default());
        let connection = Arc::new(Connection::new(url, closed.clone()));
        let pipeline = Pipeline { connection, shared: Arc::clone(&shared), closing: closed, flights: VecDeque::new() };
        let task = tokio::spawn(pipeline.run());
        Self { shared, task: Mutex::new(Some(task)), closing }
    }

    pub(super) async fn accept(&self, item: Box<Prepared>) -> Result<Accepted> {
        self.enqueue(|queue| queue.accept(item)).await
    }

    pub(super) async fn transition(&self, item: Transition) -> Result<Transitioned> {
        self.enqueue(|queue| queue.transition(item)).await
    }

    async fn enqueue<O>(&self, add: impl FnOnce(&mut Queue) -> Result<oneshot::Receiver<Result<O>>>) -> Result<O> {
        let answer = {
            let mut queue = self.shared.queue.lock();
            if *self.closing.borrow() {
                return Err(closed());
            }
            let answer = add(&mut queue)?;
            // It looks at the queue itself when a transaction has ended.
            if queue.len() == 1 || queue.len() == AHEAD {
                self.shared.wake.notify_one();
            }
            answer
        };
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    pub(super) async fn stop(&self) {
        // Under the lock of the queue, so that nothing is added to it afterwards.
        let queue = self.shared.queue.lock();
        self.closing.send_replace(true);
        drop(queue);
        self.shared.wake.notify_one();
        let task = self.task.lock().take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

/// The transactions under way, the oldest first.
struct Pipeline {
    connection: Arc<Connection>,
    shared: Arc<Shared>,
    closing: watch::Receiver<bool>,
    flights: VecDeque<Flight>,
}

/// A transaction under way.
struct Flight {
    future: Pin<Box<dyn Future<Output = Option<Unwritten>> + Send>>,
    /// Resolves when its commit is sent.
    left: oneshot::Receiver<()>,
    has_left: bool,
    /// For the transaction that follows.
    committed: Option<oneshot::Receiver<()>>,
    /// What was not written, once it has ended.
    ended: Option<Option<Unwritten>>,
}

impl Pipeline {
    async fn run(mut self) {
        loop {
            self.land().await;
            let may_begin = self.flights.iter().all(|flight| flight.has_left) && self.flights.len() < 2;
            if may_begin && let Some(work) = self.take() {
                self.launch(work);
                continue;
            }
            if self.flights.is_empty() && *self.closing.borrow() {
                return;
            }
            let shared = Arc::clone(&self.shared);
            tokio::select! {
                () = self.progress(), if !self.flights.is_empty() => {}
                () = shared.wake.notified(), if may_begin => {}
            }
        }
    }

    /// What waits, up to a batch; `None` if too little waits.
    fn take(&self) -> Option<Work> {
        let mut queue = self.shared.queue.lock();
        let least = if self.flights.is_empty() { 1 } else { AHEAD };
        (queue.len() >= least).then(|| queue.take(LIMITS)).map(Work::from)
    }

    fn launch(&mut self, work: Work) {
        let (leave, left) = oneshot::channel();
        let (commit, committed) = oneshot::channel();
        let before = self.flights.back_mut().and_then(|flight| flight.committed.take());
        let connection = Arc::clone(&self.connection);
        let future = Box::pin(async move { connection.write(work, Place::new(before, leave), commit).await });
        self.flights.push_back(Flight { future, left, has_left: false, committed: Some(committed), ended: None });
    }

    /// Waits until a transaction has ended or sent its commit.
    async fn progress(&mut self) {
        poll_fn(|cx| {
            let mut under_way = self.flights.iter_mut().filter(|flight| flight.ended.is_none());
            if under_way.any(|flight| flight.poll(cx)) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Removes transactions that have ended. If one was not written, it and the one after it are repeated, in order and alone.
    async fn land(&mut self) {
        while let Some(ended) = self.flights.front_mut().and_then(|flight| flight.ended.take()) {
            self.flights.pop_front();
            let Some(unwritten) = ended else { continue };
            while self.flights.iter().any(|flight| flight.ended.is_none()) {
                self.progress().await;
            }
            let later: Vec<Unwritten> = self.flights.drain(..).filter_map(|flight| flight.ended.flatten()).collect();
            for unwritten in [unwritten].into_iter().chain(later) {
                self.connection.repeat(unwritten).await;
            }
        }
    }
}

impl Flight {
    /// Whether it has ended or sent its commit since it was last polled.
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        if let Poll::Ready(unwritten) = self.future.as_mut().poll(cx) {
            self.ended = Some(unwritten);
            return true;
        }
        let leaves = !self.has_left && self.left.try_recv().is_ok();
        self.has_left |= leaves;
        leaves
    }
}
