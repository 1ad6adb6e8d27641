//! New messages and steps that wait for a writer, and which of them its next transaction carries.

use std::collections::VecDeque;

use nuncio_store::{Result, Transition};
use tokio::sync::oneshot;

use crate::batch::full;
use crate::message_batch::{AcceptOp, Op, Prepared, TransitionOp};

/// Maximum number of items of a kind that wait for a writer; further callers get [`StoreError::Busy`](nuncio_store::StoreError::Busy).
pub(crate) const WAITING: usize = 16_384;
/// Up to so many new messages that callers wait for make a transaction short.
const FEW: usize = 8;

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
    accepts: VecDeque<AcceptOp>,
    /// Messages of broadcasts, which the others do not wait for.
    bulk: VecDeque<AcceptOp>,
    transitions: VecDeque<TransitionOp>,
}

impl Queue {
    /// Adds a new message. The receiver gets its answer.
    pub(crate) fn accept(&mut self, item: Box<Prepared>) -> Result<oneshot::Receiver<Result<nuncio_store::Accepted>>> {
        push(if item.is_bulk() { &mut self.bulk } else { &mut self.accepts }, item)
    }

    /// Adds a step. The receiver gets its answer.
    pub(crate) fn transition(&mut self, item: Transition) -> Result<oneshot::Receiver<Result<nuncio_store::Transitioned>>> {
        push(&mut self.transitions, item)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accepts.is_empty() && self.bulk.is_empty() && self.transitions.is_empty()
    }

    /// Takes what the next transaction carries. Steps get half of it if as many wait; bulk gets an eighth of the rest.
    pub(crate) fn take(&mut self, limits: Limits) -> (Vec<AcceptOp>, Vec<TransitionOp>) {
        // A few that callers wait for are not held up by what no caller waits for.
        let few = !self.accepts.is_empty() && self.accepts.len() <= FEW;
        let most = match few {
            true => self.accepts.len() + limits.short,
            false if self.bulk.is_empty() => limits.items,
            false => limits.bulk,
        };
        let new = self.accepts.len() + self.bulk.len();
        let transitions = self.transitions.len().min(most - new.min(most / 2));
        let room = most - transitions;
        let accepts = self.accepts.len().min(room - self.bulk.len().min(room / 8));
        let bulk = self.bulk.len().min(room - accepts);
        let mut new: Vec<_> = self.accepts.drain(..accepts).collect();
        new.extend(self.bulk.drain(..bulk));
        (new, self.transitions.drain(..transitions).collect())
    }
}

/// Adds an item to the end of a queue, unless it is full.
pub(crate) fn push<I, O>(queue: &mut VecDeque<Op<I, O>>, item: I) -> Result<oneshot::Receiver<Result<O>>> {
    if queue.len() >= WAITING {
        return Err(full());
    }
    let (reply, answer) = oneshot::channel();
    queue.push_back(Op { item, reply });
    Ok(answer)
}
