//! The writer, a task with its own connection: everything that waits becomes one transaction.

use std::iter;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use nuncio_domain::Micros;
use nuncio_domain::lifecycle::{Applied, Step};
use nuncio_domain::message::Wait;
use nuncio_store::{Accepted, Result, StoreError, Transition, Transitioned};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

use super::batch_error::BatchError;
use super::message_batch::{self, DirectWrites, Session};
use crate::cache::Cache;
use crate::message_batch::{
    AcceptOp, AcceptOutcome, BATCH, Limits, Op, Prepared, Queue, STEP_WAIT, TransitionOp, answer, closed, fail, log_failure,
    may_be_one_item,
};

/// How often a batch that lost a deadlock is tried again.
const RETRIES: u32 = 5;
/// How long to wait before a lost server is asked again.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the server may take to open a session, to write a transaction, or to read one item back. It ends each statement after five
/// seconds, and all of them take milliseconds when it is well. Keepalives find a machine that vanished sooner; this also finds a server
/// that hangs, or that vanished behind a proxy which keeps the connection open.
const ANSWER: Duration = Duration::from_secs(30);
pub(super) const UNANSWERED: &str = "the PostgreSQL server does not answer";
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
        let connection = Connection {
            url: url.into(),
            session: None,
            lock: 0,
            unended: None,
            closing: closed,
            cache: Cache::default(),
            direct_writes: DirectWrites::default(),
        };
        let task = tokio::spawn(connection.run(Arc::clone(&shared)));
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
            add(&mut queue)?
        };
        self.shared.wake.notify_one();
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

/// What one transaction writes.
#[derive(Debug, Default)]
struct Work {
    accepts: Vec<AcceptOp>,
    transitions: Vec<TransitionOp>,
}

impl Work {
    fn len(&self) -> usize {
        self.accepts.len() + self.transitions.len()
    }

    fn answer(self, (outcomes, transitioned): Outcomes) {
        answer(self.accepts, outcomes, |prepared, outcome| outcome.answer(*prepared));
        answer(self.transitions, transitioned, |_, transitioned| transitioned);
    }

    fn fail(self, error: &StoreError) {
        log_failure(error, self.len());
        fail(self.accepts, error);
        fail(self.transitions, error);
    }

    /// The steps and the new messages, which start attempts that the results among the steps made room for; or the halves of what there is.
    fn halves(mut self) -> [Self; 2] {
        if !self.accepts.is_empty() && !self.transitions.is_empty() {
            let accepts = std::mem::take(&mut self.accepts);
            return [self, Self { accepts, ..Self::default() }];
        }
        let accepts = self.accepts.split_off(self.accepts.len() / 2);
        let transitions = self.transitions.split_off(self.transitions.len() / 2);
        [self, Self { accepts, transitions }]
    }
}

/// The outcomes of the items of a [`Work`].
type Outcomes = (Vec<AcceptOutcome>, Vec<Transitioned>);

/// An item whose outcome can be read from its rows.
trait ReadBack: Sized + Send + Sync {
    type Answer: Send;

    /// How long to wait for a lost database, to read the outcome of a commit.
    const PATIENCE: Duration;

    /// After a lost commit: the answer to an item, if it was written after all.
    fn read_back(session: &Session, op: &Op<Self, Self::Answer>) -> impl Future<Output = Result<Option<Self::Answer>>> + Send;
}

impl ReadBack for Box<Prepared> {
    type Answer = Accepted;

    /// Clients wait for it.
    const PATIENCE: Duration = Duration::from_secs(20);

    async fn read_back(session: &Session, op: &AcceptOp) -> Result<Option<Accepted>> {
        message_batch::find_accepted(session, &op.item).await
    }
}

impl ReadBack for Transition {
    type Answer = Transitioned;

    /// A start that was written but is believed not to be would leave its message without an owner.
    const PATIENCE: Duration = Duration::MAX;

    async fn read_back(session: &Session, op: &TransitionOp) -> Result<Option<Transitioned>> {
        // Facts and all decisions but a start can be applied once more: the second time finds them done. A start that was written
        // shows as ours, one fence further.
        let (Step::Start { node, fence, .. }, Some(id)) = (&op.item.step, op.item.id) else { return Ok(None) };
        let (node, fence) = (*node, *fence);
        let Some(message) = message_batch::load_message(session, op.item.tenant, id).await? else {
            return Ok(Some(Transitioned::Missing));
        };
        let ours = message.state.wait == (Wait::Owned { node }) && message.state.fence == fence + 1;
        Ok(ours.then(|| Transitioned::Found {
            id: message.id,
            applied: Applied::Yes,
            spent: Micros(0),
            state: Box::new(message.state.clone()),
            changes: Vec::new(),
            address: message.address,
            message: Some(Box::new(message)),
        }))
    }
}

#[derive(Debug)]
struct Connection {
    url: Box<str>,
    session: Option<Session>,
    /// The lock of the newest session.
    lock: i32,
    /// That of a session whose commit got no response, until it ended: the commit can still be under way.
    unended: Option<i32>,
    closing: watch::Receiver<bool>,
    cache: Cache,
    direct_writes: DirectWrites,
}

impl Connection {
    async fn run(mut self, shared: Arc<Shared>) {
        while let Some(work) = self.next(&shared).await {
            self.serve(work).await;
        }
    }

    /// What waits, up to a batch; `None` when the store is closed and nothing is left.
    async fn next(&self, shared: &Shared) -> Option<Work> {
        let mut until = None;
        loop {
            {
                let mut queue = shared.queue.lock();
                let closing = *self.closing.borrow();
                let waits = queue.has_only_few_steps() && !closing && until.is_none_or(|until| Instant::now() < until);
                if !queue.is_empty() && !waits {
                    let (accepts, transitions) = queue.take(LIMITS);
                    return Some(Work { accepts, transitions });
                }
                if closing {
                    return None;
                }
                if waits && until.is_none() {
                    until = Some(Instant::now() + STEP_WAIT);
                }
            }
            match until {
                Some(until) => drop(tokio::time::timeout_at(until.into(), shared.wake.notified()).await),
                None => shared.wake.notified().await,
            }
        }
    }

    /// Writes a batch and answers it. A batch that one item spoils is halved until that item is alone. Of a batch whose commit
    /// got no answer, what the rows do not show as written is run once more.
    async fn serve(&mut self, work: Work) {
        let (mut stack, mut lost) = (vec![work], 0);
        while let Some(work) = stack.pop() {
            match self.attempt(&work).await {
                Ok(outcomes) => work.answer(outcomes),
                Err(BatchError::Refused(error)) if may_be_one_item(&error) && work.len() > 1 => {
                    let [first, second] = work.halves();
                    stack.extend([second, first]);
                }
                Err(error) if lost < RETRIES && error.may_be_written(lost > 0) => {
                    tracing::warn!(?error, items = work.len(), "commit got no response; reading what was stored");
                    lost += 1;
                    let accepts = self.read_back(work.accepts).await;
                    let transitions = self.read_back(work.transitions).await;
                    stack.extend(Some(Work { accepts, transitions }).filter(|rest| rest.len() > 0));
                }
                // The transaction whose commit got no response may hold the locks, and may still commit.
                Err(BatchError::Refused(error @ (StoreError::Busy(_) | StoreError::Unavailable(_)))) if lost > 0 => {
                    work.fail(&StoreError::InDoubt(error.to_string()));
                }
                Err(BatchError::Refused(error)) => work.fail(&error),
                Err(BatchError::LostCommit(error)) => work.fail(&StoreError::InDoubt(error.to_string())),
            }
        }
    }

    async fn attempt(&mut self, work: &Work) -> Result<Outcomes, BatchError> {
        let mut tries = 0;
        loop {
            match self.once(work).await {
                Err(BatchError::Refused(StoreError::Busy(_))) if tries < RETRIES => tries += 1,
                // Another node made the address of a new recipient, which now is known, or took a step of the same message, which can
                // happen again. In a batch, a single item may be the reason.
                Err(BatchError::Refused(StoreError::Conflict(_))) if tries == 0 || (work.len() == 1 && tries < RETRIES) => tries += 1,
                // The server restarted or dropped an idle connection; nothing of this batch was committed.
                Err(BatchError::Refused(StoreError::Unavailable(_))) if tries == 0 => tries += 1,
                outcome => return outcome,
            }
        }
    }

    async fn once(&mut self, work: &Work) -> Result<Outcomes, BatchError> {
        let session = self.session().await?;
        let writing = message_batch::write(&session, &self.cache, &mut self.direct_writes, &work.accepts, &work.transitions);
        // A write that is cut short, by time or by a panic, may have sent its commit. It leaves nothing behind here: the cache learns of a
        // batch after its commit, and the session, whose state is unknown, is not kept. Without this task, all callers would wait forever.
        let outcome = match tokio::time::timeout(ANSWER, AssertUnwindSafe(writing).catch_unwind()).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(BatchError::LostCommit("writing the batch panicked".into())),
            Err(_) => Err(BatchError::LostCommit(UNANSWERED.into())),
        };
        match outcome {
            Err(BatchError::LostCommit(_)) => self.unended = Some(self.lock),
            Err(BatchError::Refused(StoreError::Unavailable(_))) => {}
            _ => self.session = Some(session),
        }
        outcome
    }

    /// The connection, opened if there is none.
    async fn session(&mut self) -> Result<Session> {
        match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => Ok(session),
            None => {
                let session = answered(message_batch::open(&self.url)).await?;
                self.lock = answered(session.take_lock()).await?;
                Ok(session)
            }
        }
    }

    /// The commit got no answer: it may or may not have happened. The rows show which, once the server is back. Answers the
    /// items that they show as written, and returns the others.
    async fn read_back<I>(&mut self, batch: Vec<Op<I, I::Answer>>) -> Vec<Op<I, I::Answer>>
    where
        I: ReadBack,
    {
        let (began, mut rest, mut batch) = (Instant::now(), Vec::new(), batch.into_iter());
        while let Some(op) = batch.next() {
            loop {
                match self.read_one(&op).await {
                    Ok(Some(written)) => drop(op.reply.send(Ok(written))),
                    Ok(None) => rest.push(op),
                    Err(StoreError::Busy(_) | StoreError::Unavailable(_)) if began.elapsed() < I::PATIENCE && !*self.closing.borrow() => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                    // The others would wait as long, and fail too.
                    Err(error @ (StoreError::Busy(_) | StoreError::Unavailable(_))) => {
                        fail(iter::once(op).chain(batch.by_ref()).collect(), &StoreError::InDoubt(error.to_string()));
                    }
                    Err(error) => fail(vec![op], &StoreError::InDoubt(error.to_string())),
                }
                break;
            }
        }
        rest
    }

    async fn read_one<I: ReadBack>(&mut self, op: &Op<I, I::Answer>) -> Result<Option<I::Answer>> {
        let session = self.session().await?;
        if let Some(lock) = self.unended {
            let ended = answered(session.wait_for_end(lock)).await;
            if ended.is_err() {
                self.session = Some(session); // to ask again
                return ended.map(|()| None);
            }
            self.unended = None;
        }
        let written = answered(I::read_back(&session, op)).await?;
        self.session = Some(session);
        Ok(written)
    }
}

/// Waits for the server, unless it does not answer.
pub(super) async fn answered<T>(asked: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::time::timeout(ANSWER, asked).await.unwrap_or_else(|_| Err(StoreError::Unavailable(UNANSWERED.to_owned())))
}
