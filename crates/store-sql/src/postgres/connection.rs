//! The writer's connection: writes batches, and finds out what became of those whose commit got no answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nuncio_domain::Micros;
use nuncio_domain::lifecycle::{Applied, Step};
use nuncio_domain::message::Wait;
use nuncio_store::{Accepted, Result, StoreError, Transition, Transitioned};
use tokio::sync::{oneshot, watch};

use super::batch_error::BatchError;
use super::message_batch::{self, DirectWrites, Place, Session};
use crate::batch::{answer, may_be_one_item};
use crate::cache::Cache;
use crate::message_batch::{AcceptOp, AcceptOutcome, Batched, Op, Prepared, TransitionOp, copy_error};

/// How often a batch that lost a deadlock is tried again.
const RETRIES: u32 = 5;
/// How long to wait before a lost server is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// What one transaction writes.
#[derive(Debug, Default)]
pub(super) struct Work {
    accepts: Vec<AcceptOp>,
    transitions: Vec<TransitionOp>,
}

impl From<(Vec<AcceptOp>, Vec<TransitionOp>)> for Work {
    fn from((accepts, transitions): (Vec<AcceptOp>, Vec<TransitionOp>)) -> Self {
        Self { accepts, transitions }
    }
}

impl Work {
    fn len(&self) -> usize {
        self.accepts.len() + self.transitions.len()
    }

    fn answer(self, (accepted, transitioned): Outcomes) {
        answer(self.accepts, Ok(accepted));
        answer(self.transitions, Ok(transitioned));
    }

    fn fail(self, error: StoreError) {
        tracing::error!(%error, items = self.len(), "failed to write a batch");
        answer(self.accepts, Err(copy_error(&error)));
        answer(self.transitions, Err(error));
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
trait ReadBack: Batched<Answer: Send> + Send + Sync {
    /// How long to wait for a lost database, to read the outcome of a commit.
    const PATIENCE: Duration;

    /// After a lost commit: the answer to an item, if it was written after all.
    fn read_back(session: &Session, op: &Op<Self, Self::Answer>) -> impl Future<Output = Result<Option<Self::Answer>>> + Send;
}

impl ReadBack for Box<Prepared> {
    /// Clients wait for it.
    const PATIENCE: Duration = Duration::from_secs(20);

    async fn read_back(session: &Session, op: &AcceptOp) -> Result<Option<Accepted>> {
        message_batch::find_accepted(session, &op.item).await
    }
}

impl ReadBack for Transition {
    /// A start that was written but is believed not to be would leave its message without an owner.
    const PATIENCE: Duration = Duration::MAX;

    async fn read_back(session: &Session, op: &TransitionOp) -> Result<Option<Transitioned>> {
        // Facts and all decisions but a start can be applied once more: the second time finds them done. A start that was written
        // shows as ours, one fence further.
        let Step::Start { node, fence, .. } = op.item.step else { return Ok(None) };
        let Some(message) = message_batch::load_message(session, op.item.tenant, op.item.id).await? else {
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

/// The writer's connection, with what the last transactions told of the database.
#[derive(Debug)]
pub(super) struct Connection {
    url: Box<str>,
    session: tokio::sync::Mutex<Option<Arc<Session>>>,
    closing: watch::Receiver<bool>,
    cache: Cache,
    direct_writes: DirectWrites,
}

/// A batch that was not written, and why.
pub(super) type Unwritten = (Work, BatchError);

impl Connection {
    pub(super) fn new(url: &str, closing: watch::Receiver<bool>) -> Self {
        Self {
            url: url.into(),
            session: tokio::sync::Mutex::default(),
            closing,
            cache: Cache::default(),
            direct_writes: DirectWrites::default(),
        }
    }

    /// Writes a batch in one transaction, and answers it; returns it if it could not be written.
    pub(super) async fn write(&self, work: Work, mut place: Place, committed: oneshot::Sender<()>) -> Option<Unwritten> {
        match self.once(&work, &mut place).await {
            Ok(outcomes) => {
                let _ = committed.send(()); // no transaction follows
                work.answer(outcomes);
                None
            }
            Err(error) => Some((work, error)),
        }
    }

    /// Writes a batch that could not be written, with no other transaction under way, and answers it. A batch that one item spoils is
    /// halved until that item is alone. Of a batch whose commit got no answer, what the rows do not show as written is run once more.
    pub(super) async fn repeat(&self, (work, error): Unwritten) {
        let (mut stack, mut lost, mut first) = (vec![work], 0, Some(error).filter(|error| !may_pass(error)));
        while let Some(work) = stack.pop() {
            let outcome = match first.take() {
                Some(error) => Err(error),
                None => self.attempt(&work).await,
            };
            match outcome {
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
                Err(BatchError::Refused(error)) => work.fail(error),
                Err(BatchError::LostCommit(error)) => work.fail(StoreError::InDoubt(error.to_string())),
            }
        }
    }

    async fn attempt(&self, work: &Work) -> Result<Outcomes, BatchError> {
        let mut tries = 0;
        loop {
            match self.once(work, &mut Place::default()).await {
                Err(BatchError::Refused(StoreError::Busy(_))) if tries < RETRIES => tries += 1,
                // Another node made the address of a new recipient, which now is known.
                Err(BatchError::Refused(StoreError::Conflict(_))) if tries == 0 => tries += 1,
                // The server restarted or dropped an idle connection; nothing of this batch was committed.
                Err(BatchError::Refused(StoreError::Unavailable(_))) if tries == 0 => tries += 1,
                outcome => return outcome,
            }
        }
    }

    async fn once(&self, work: &Work, place: &mut Place) -> Result<Outcomes, BatchError> {
        let session = self.session().await?;
        let outcome = message_batch::write(&session, &self.cache, &self.direct_writes, place, (&work.accepts, &work.transitions)).await;
        if matches!(outcome, Err(BatchError::LostCommit(_) | BatchError::Refused(StoreError::Unavailable(_)))) {
            self.forget(&session).await;
        }
        outcome
    }

    /// The session, opened if there is none.
    async fn session(&self) -> Result<Arc<Session>> {
        let mut session = self.session.lock().await;
        match session.as_ref().filter(|session| !session.is_closed()) {
            Some(session) => Ok(Arc::clone(session)),
            None => Ok(Arc::clone(session.insert(Arc::new(message_batch::open(&self.url).await?)))),
        }
    }

    /// Opens another session next time.
    async fn forget(&self, lost: &Arc<Session>) {
        self.session.lock().await.take_if(|session| Arc::ptr_eq(session, lost));
    }

    /// The commit got no answer: it may or may not have happened. The rows show which, once the server is back. Answers the
    /// items that they show as written, and returns the others.
    async fn read_back<I>(&self, batch: Vec<Op<I, I::Answer>>) -> Vec<Op<I, I::Answer>>
    where
        I: ReadBack,
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
                    Err(error) => answer(vec![op], Err(StoreError::InDoubt(error.to_string()))),
                }
                break;
            }
        }
        rest
    }

    async fn read_one<I: ReadBack>(&self, op: &Op<I, I::Answer>) -> Result<Option<I::Answer>> {
        let session = self.session().await?;
        let written = I::read_back(&session, op).await;
        if written.is_err() {
            self.forget(&session).await;
        }
        written
    }
}

/// Whether a batch that failed may be written if it is simply repeated: it lost a deadlock, another node made the address of a new
/// recipient, or the server restarted or dropped an idle connection.
fn may_pass(error: &BatchError) -> bool {
    matches!(error, BatchError::Refused(StoreError::Busy(_) | StoreError::Conflict(_) | StoreError::Unavailable(_)))
}
