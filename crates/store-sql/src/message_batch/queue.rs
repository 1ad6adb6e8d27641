//! Queues new messages and steps, selects those of the next transaction, and answers them.

use std::collections::{HashMap, VecDeque};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use nuncio_domain::lifecycle::Step;
use nuncio_domain::{ConnectionId, LogLimit};
use nuncio_store::{Accepted, DeliveryLog, MetricRow, Result, StoreError, Transition, Transitioned};
use tokio::sync::oneshot;

use super::Prepared;

/// Maximum number of items in one transaction.
pub(crate) const BATCH: usize = 256;
/// Maximum number of items of a kind that wait for a writer; further callers get [`StoreError::Busy`].
const WAITING: usize = 16_384;
/// Up to so many new messages that callers wait for make a transaction short.
const FEW: usize = 8;
/// How long a few steps wait for a new message to share their transaction. Otherwise a client that sends one message after another would
/// wait for the transaction with the result of the one before.
pub(crate) const STEP_WAIT: Duration = Duration::from_millis(1);
/// From so many steps on, they do not wait.
const MANY: usize = 32;

/// An item waiting for a batch, with the channel for its answer.
#[derive(Debug)]
pub(crate) struct Op<I, O> {
    pub(crate) item: I,
    pub(crate) reply: oneshot::Sender<Result<O>>,
}

pub(crate) type AcceptOp = Op<Box<Prepared>, Accepted>;
pub(crate) type TransitionOp = Op<Transition, Transitioned>;
pub(crate) type MetricsOp = Op<Vec<MetricRow>, ()>;
pub(crate) type DeliveriesOp = Op<DeliveryLog, bool>;

/// How many items a transaction may carry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) items: usize,
    /// Items while messages of broadcasts wait: what comes meanwhile waits for the whole transaction.
    pub(crate) bulk: usize,
    /// Items alongside a few new messages that callers wait for.
    pub(crate) short: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    accepts: VecDeque<NewMessage>,
    /// Messages of broadcasts, which the others do not wait for.
    bulk: VecDeque<NewMessage>,
    transitions: VecDeque<TransitionOp>,
    /// How many steps have been taken.
    taken: u64,
    /// Of each connection with results that wait: the position of the last one, counted as `taken` is.
    results: HashMap<ConnectionId, u64>,
}

#[derive(Debug)]
struct NewMessage {
    op: AcceptOp,
    /// So many steps are taken before it or with it: up to the last result that may have made room for its attempt. 0 if it starts none.
    after: u64,
}

impl Queue {
    /// Adds a new message. The receiver gets its answer.
    pub(crate) fn accept(&mut self, item: Box<Prepared>) -> Result<oneshot::Receiver<Result<Accepted>>> {
        let connection = item.item.claim.map(|_| item.item.message.state.route.connection);
        let after = connection.and_then(|connection| self.results.get(&connection)).copied().unwrap_or_default();
        let queue = if item.is_bulk() { &mut self.bulk } else { &mut self.accepts };
        push(queue, item, |op| NewMessage { op, after })
    }

    /// Adds a step. The receiver gets its answer.
    pub(crate) fn transition(&mut self, item: Transition) -> Result<oneshot::Receiver<Result<Transitioned>>> {
        let frees = item.frees;
        let answer = push(&mut self.transitions, item, |op| op)?;
        if let Some(connection) = frees {
            self.results.insert(connection, self.taken + self.transitions.len() as u64);
        }
        Ok(answer)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accepts.is_empty() && self.bulk.is_empty() && self.transitions.is_empty()
    }

    /// Returns whether the queue has a few steps that can wait for a new message. A start cannot: its message waited for a permit, and those
    /// behind it wait for its result.
    pub(crate) fn has_only_few_steps(&self) -> bool {
        let starts = |op: &TransitionOp| matches!(op.item.step, Step::Start { .. });
        let few = (1..MANY).contains(&self.transitions.len());
        few && self.accepts.is_empty() && self.bulk.is_empty() && !self.transitions.iter().any(starts)
    }

    /// Takes what the next transaction carries.
    pub(crate) fn take(&mut self, limits: Limits) -> (Vec<AcceptOp>, Vec<TransitionOp>) {
        let most = self.most(limits);
        let (transitions, accepts, bulk) = self.shares(most);
        // If none of these messages is ready, the steps that the first one waits for take the place of others.
        let transitions = transitions.max(self.needed(accepts, transitions).min(limits.items));
        let room = most.max(limits.items) - transitions;
        let accepts = accepts.min(room);
        let bulk = bulk.min(room - accepts);
        self.taken += transitions as u64;
        let taken = self.taken;
        self.results.retain(|_, position| *position > taken);
        let mut new = ready(&mut self.accepts, accepts, taken);
        new.extend(ready(&mut self.bulk, bulk, taken));
        (new, self.transitions.drain(..transitions).collect())
    }

    /// How many items the next transaction carries: a few that callers wait for are not held up by what no caller waits for.
    fn most(&self, limits: Limits) -> usize {
        match self.accepts.len() {
            few @ 1..=FEW => few + limits.short,
            _ if self.bulk.is_empty() => limits.items,
            _ => limits.bulk,
        }
    }

    /// How many steps, new messages and bulk ones it carries of `most`. Steps get half of it if as many wait; bulk gets an eighth of the rest.
    fn shares(&self, most: usize) -> (usize, usize, usize) {
        let new = self.accepts.len() + self.bulk.len();
        let transitions = self.transitions.len().min(most - new.min(most / 2));
        let room = most - transitions;
        let accepts = self.accepts.len().min(room - self.bulk.len().min(room / 8));
        (transitions, accepts, self.bulk.len().min(room - accepts))
    }

    /// How many steps the first new message waits for, if so many leave none of the first `accepts` ready.
    fn needed(&self, accepts: usize, steps: usize) -> usize {
        let is_ready = |new: &NewMessage| new.after <= self.taken + steps as u64;
        match self.accepts.front() {
            Some(first) if !self.accepts.iter().take(accepts).any(is_ready) => first.after.saturating_sub(self.taken) as usize,
            _ => 0,
        }
    }
}

/// Takes those of the first `most` messages that wait for no step beyond the first `taken`.
fn ready(queue: &mut VecDeque<NewMessage>, most: usize, taken: u64) -> Vec<AcceptOp> {
    let (ready, waiting): (Vec<_>, Vec<_>) = queue.drain(..most).partition(|new| new.after <= taken);
    waiting.into_iter().rev().for_each(|new| queue.push_front(new));
    ready.into_iter().map(|new| new.op).collect()
}

/// Adds an item to the end of a queue, unless it is full.
pub(crate) fn push<I, O, Q>(queue: &mut VecDeque<Q>, item: I, into: impl FnOnce(Op<I, O>) -> Q) -> Result<oneshot::Receiver<Result<O>>> {
    if queue.len() >= WAITING {
        return Err(full());
    }
    let (reply, answer) = oneshot::channel();
    queue.push_back(into(Op { item, reply }));
    Ok(answer)
}

/// Answers every item of a batch that is committed. `to_answer` makes the answer from the item and its outcome.
pub(crate) fn answer<I, D, O>(batch: Vec<Op<I, O>>, outcomes: Vec<D>, to_answer: impl Fn(I, D) -> O) {
    for (Op { item, reply }, outcome) in batch.into_iter().zip(outcomes) {
        let _ = reply.send(Ok(to_answer(item, outcome))); // a caller that went away changes nothing
    }
}

/// Logs a batch of this many items that failed. On a full disk, all do.
pub(crate) fn log_failure(error: &StoreError, items: usize) {
    static LOG: LazyLock<(Instant, LogLimit)> = LazyLock::new(|| (Instant::now(), LogLimit::default()));
    let (start, limit) = &*LOG;
    let error = error.to_string();
    if let Some(suppressed) = limit.line(&error, start.elapsed()) {
        tracing::error!(%error, items, suppressed, "failed to write a batch");
    }
}

/// Answers every item of a batch that failed as a whole.
pub(crate) fn fail<I, O>(batch: Vec<Op<I, O>>, error: &StoreError) {
    for op in batch {
        let _ = op.reply.send(Err(copy(error)));
    }
}

fn copy(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy(what) => StoreError::Busy(what.clone()),
        StoreError::Unavailable(what) => StoreError::Unavailable(what.clone()),
        StoreError::InDoubt(what) => StoreError::InDoubt(what.clone()),
        StoreError::Corrupt { table, what } => StoreError::Corrupt { table, what: what.clone() },
        StoreError::Conflict(source) => StoreError::Conflict(source.to_string().into()),
        StoreError::Other(source) => StoreError::Other(source.to_string().into()),
    }
}

/// Whether a single item may be the reason that a batch failed with `error`.
pub(crate) fn may_be_one_item(error: &StoreError) -> bool {
    matches!(error, StoreError::Other(_) | StoreError::Conflict(_) | StoreError::Corrupt { .. })
}

/// The queue of a writer is full.
fn full() -> StoreError {
    StoreError::Busy("too many requests wait for the database".to_owned())
}

/// The store was closed.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}

#[cfg(test)]
mod tests {
    use nuncio_domain::id::Id as _;
    use nuncio_domain::message::NodeId;
    use nuncio_domain::{MessageId, TenantId, Timestamp};

    use super::*;

    #[test]
    fn facts_wait_for_company_and_starts_do_not() {
        let mut queue = Queue::default();
        let mut push = |step| {
            let step = Transition::new(TenantId(1), MessageId::from_uuid(uuid::Uuid::from_u128(1)), step, Timestamp::default());
            queue.transition(step).expect("room");
            queue.has_only_few_steps()
        };
        assert!(push(Step::Deadline { fence: 1 }));
        assert!(!push(Step::Start { node: NodeId(1), fence: 1, suppressed: false, pause: None }));
    }
}
