//! Three writers, one for new messages, one for those of broadcasts, which the others do not wait for, and one for steps: each a task with
//! its own connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_domain::lifecycle::{Applied, Step, Wait};
use nuncio_store::{Accepted, Result, StoreError, Transition, Transitioned};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::message_batch::{self, Session};
use super::session::failed;
use crate::batch::{BATCH, WAITING, answer, closed, full, may_be_one_item};
use crate::cache::Cache;
use crate::message_batch::{AcceptOp, AcceptOutcome, Batched, Op, Prepared, TransitionOp};

/// How often a batch that lost a deadlock is tried again.
const RETRIES: u32 = 5;
/// How long to wait before a lost server is asked again.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct Writers {
    accepts: mpsc::Sender<AcceptOp>,
    bulk: mpsc::Sender<AcceptOp>,
    transitions: mpsc::Sender<TransitionOp>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
    closing: tokio::sync::watch::Sender<bool>,
}

impl Writers {
    pub(super) fn start(url: &str) -> Self {
        let (closing, closed) = tokio::sync::watch::channel(false);
        let (accepts, accepted) = mpsc::channel(WAITING);
        let (bulk, accepted_bulk) = mpsc::channel(WAITING);
        let (transitions, transitioned) = mpsc::channel(WAITING);
        let writer = Writer { url: url.into(), session: None, closing: closed, cache: Arc::default() };
        let tasks = vec![
            tokio::spawn(writer.sibling().run(accepted)),
            tokio::spawn(writer.sibling().run(accepted_bulk)),
            tokio::spawn(writer.run(transitioned)),
        ];
        Self { accepts, bulk, transitions, tasks: Mutex::new(tasks), closing }
    }

    pub(super) async fn accept(&self, item: Box<Prepared>) -> Result<Accepted> {
        enqueue(if item.is_bulk() { &self.bulk } else { &self.accepts }, item).await
    }

    pub(super) async fn transition(&self, item: Transition) -> Result<Transitioned> {
        enqueue(&self.transitions, item).await
    }

    pub(super) async fn stop(&self) {
        self.closing.send_replace(true);
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            let _ = task.await;
        }
    }
}

async fn enqueue<I, O>(lane: &mpsc::Sender<Op<I, O>>, item: I) -> Result<O> {
    let (reply, answer) = oneshot::channel();
    lane.try_send(Op { item, reply }).map_err(|e| match e {
        mpsc::error::TrySendError::Full(_) => full(),
        mpsc::error::TrySendError::Closed(_) => closed(),
    })?;
    answer.await.unwrap_or_else(|_| Err(closed()))
}

/// An item that a writer runs in batches.
trait BatchItem: Batched<Done: Send, Answer: Send> + Send + Sync {
    /// How long to wait for a lost database, to read the outcome of a commit.
    const PATIENCE: Duration;

    /// Runs a batch.
    fn run(
        session: &Session,
        cache: &Cache,
        batch: &[Op<Self, Self::Answer>],
    ) -> impl Future<Output = Result<Vec<Self::Done>, BatchError>> + Send;

    /// After a lost commit: the answer to an item, if it was written after all.
    fn read_back(session: &Session, op: &Op<Self, Self::Answer>) -> impl Future<Output = Result<Option<Self::Answer>>> + Send;
}

impl BatchItem for Box<Prepared> {
    /// Clients wait for it.
    const PATIENCE: Duration = Duration::from_secs(20);

    async fn run(session: &Session, cache: &Cache, batch: &[AcceptOp]) -> Result<Vec<AcceptOutcome>, BatchError> {
        message_batch::accept(session, cache, batch).await
    }

    async fn read_back(session: &Session, op: &AcceptOp) -> Result<Option<Accepted>> {
        message_batch::find_accepted(session, &op.item).await
    }
}

impl BatchItem for Transition {
    /// A start that was written but is believed not to be would leave its message without an owner.
    const PATIENCE: Duration = Duration::MAX;

    async fn run(session: &Session, cache: &Cache, batch: &[TransitionOp]) -> Result<Vec<Transitioned>, BatchError> {
        message_batch::transition(session, cache, batch).await
    }

    async fn read_back(session: &Session, op: &TransitionOp) -> Result<Option<Transitioned>> {
        // Facts and all decisions but a start can be applied once more: the second time finds them done. A start that was written
        // shows as ours, one fence further.
        let Step::Start { node, fence, .. } = op.item.step else { return Ok(None) };
        let Some(message) = message_batch::load_message(session, op.item.tenant, op.item.id).await? else {
            return Ok(Some(Transitioned::Missing));
        };
        let ours = message.state.wait == (Wait::Owned { node }) && message.state.fence == fence + 1;
        Ok(ours.then(|| Transitioned::Found {
            applied: Applied::Yes,
            state: Box::new(message.state.clone()),
            changes: Vec::new(),
            address: message.address,
            message: Some(Box::new(message)),
        }))
    }
}

/// Why a batch failed.
#[derive(Debug)]
pub(super) enum BatchError {
    /// It was not written.
    Refused(StoreError),
    /// It may have been written.
    LostCommit(tokio_postgres::Error),
}

impl From<StoreError> for BatchError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl BatchError {
    /// The error of a statement that was sent with the commit. A server that answers with an error has not committed.
    pub(super) fn of_commit(error: tokio_postgres::Error) -> Self {
        if error.as_db_error().is_some() { Self::Refused(failed(error)) } else { Self::LostCommit(error) }
    }

    /// A row that exists already, after a commit got no answer, is the row that it wrote after all.
    fn may_be_written(&self, lost: bool) -> bool {
        matches!(self, Self::LostCommit(_)) || lost && matches!(self, Self::Refused(StoreError::Conflict(_)))
    }
}

#[derive(Debug)]
struct Writer {
    url: Arc<str>,
    session: Option<Session>,
    closing: tokio::sync::watch::Receiver<bool>,
    cache: Arc<Cache>,
}

impl Writer {
    /// One more writer with its own connection.
    fn sibling(&self) -> Self {
        let Self { url, closing, cache, .. } = self;
        Self { url: Arc::clone(url), session: None, closing: closing.clone(), cache: Arc::clone(cache) }
    }

    async fn run<I>(mut self, mut queue: mpsc::Receiver<Op<I, I::Answer>>)
    where
        I: BatchItem,
    {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            tokio::select! {
                biased;
                taken = queue.recv_many(&mut batch, BATCH) => if taken == 0 { return },
                _ = self.closing.wait_for(|closing| *closing) => { queue.close(); continue }
            }
            self.serve(std::mem::take(&mut batch)).await;
        }
    }

    /// Runs a batch and answers it. A batch that one item spoils is halved until that item is alone. Of a batch whose commit
    /// got no answer, what the rows do not show as written is run once more.
    async fn serve<I>(&mut self, batch: Vec<Op<I, I::Answer>>)
    where
        I: BatchItem,
    {
        let (mut stack, mut lost) = (vec![batch], 0);
        while let Some(mut batch) = stack.pop() {
            match self.attempt(&batch).await {
                Ok(answers) => answer(batch, Ok(answers)),
                Err(BatchError::Refused(error)) if may_be_one_item(&error) && batch.len() > 1 => {
                    let rest = batch.split_off(batch.len() / 2);
                    stack.extend([rest, batch]);
                }
                Err(error) if lost < RETRIES && error.may_be_written(lost > 0) => {
                    tracing::warn!(?error, items = batch.len(), "a commit got no answer");
                    lost += 1;
                    let rest = self.read_back(batch).await;
                    stack.extend(Some(rest).filter(|rest| !rest.is_empty()));
                }
                Err(BatchError::Refused(error)) => fail(batch, error),
                Err(BatchError::LostCommit(error)) => fail(batch, StoreError::InDoubt(error.to_string())),
            }
        }
    }

    async fn attempt<I>(&mut self, batch: &[Op<I, I::Answer>]) -> Result<Vec<I::Done>, BatchError>
    where
        I: BatchItem,
    {
        let mut tries = 0;
        loop {
            match self.once(batch).await {
                Err(BatchError::Refused(StoreError::Busy(_))) if tries < RETRIES => tries += 1,
                // Another node made the address of a new recipient, which now is known.
                Err(BatchError::Refused(StoreError::Conflict(_))) if tries == 0 => tries += 1,
                // The server restarted or dropped an idle connection; nothing of this batch was committed.
                Err(BatchError::Refused(StoreError::Unavailable(_))) if tries == 0 => tries += 1,
                outcome => return outcome,
            }
        }
    }

    async fn once<I>(&mut self, batch: &[Op<I, I::Answer>]) -> Result<Vec<I::Done>, BatchError>
    where
        I: BatchItem,
    {
        let session = self.session().await?;
        let outcome = I::run(&session, &self.cache, batch).await;
        if !matches!(outcome, Err(BatchError::LostCommit(_) | BatchError::Refused(StoreError::Unavailable(_)))) {
            self.session = Some(session);
        }
        outcome
    }

    /// The connection, opened if there is none.
    async fn session(&mut self) -> Result<Session> {
        match self.session.take().filter(|session| !session.is_closed()) {
            Some(session) => Ok(session),
            None => message_batch::open(&self.url).await,
        }
    }

    /// The commit got no answer: it may or may not have happened. The rows show which, once the server is back. Answers the
    /// items that they show as written, and returns the others.
    async fn read_back<I>(&mut self, batch: Vec<Op<I, I::Answer>>) -> Vec<Op<I, I::Answer>>
    where
        I: BatchItem,
    {
        let (began, mut rest) = (Instant::now(), Vec::new());
        for op in batch {
            loop {
                match self.read_one(&op).await {
                    Ok(Some(written)) => drop(op.reply.send(Ok(written))),
                    Ok(None) => rest.push(op),
                    Err(StoreError::Busy(_) | StoreError::Unavailable(_)) if began.elapsed() < I::PATIENCE && !*self.closing.borrow() => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                    Err(error) => fail(vec![op], StoreError::InDoubt(error.to_string())),
                }
                break;
            }
        }
        rest
    }

    async fn read_one<I: BatchItem>(&mut self, op: &Op<I, I::Answer>) -> Result<Option<I::Answer>> {
        let session = self.session().await?;
        let written = I::read_back(&session, op).await?;
        self.session = Some(session);
        Ok(written)
    }
}

fn fail<I: Batched>(batch: Vec<Op<I, I::Answer>>, error: StoreError) {
    tracing::error!(%error, items = batch.len(), "a batch was not written");
    answer(batch, Err(error));
}
