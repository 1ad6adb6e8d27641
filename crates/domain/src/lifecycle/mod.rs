//! Defines the state machine of a message: facts and decisions.
//!
//! A *fact* is something that happened, such as an attempt's result or a receipt. It is recorded unconditionally; it can raise the status
//! by rank, never lower it. A *decision* is what happens next: start, retry, fall back, hold, give up. It requires the row's current
//! *fence*, a number incremented by each decision and each change of owner.
//!
//! [`State::wait`] is what an unfinished message waits for; it is [`Wait::Nothing`] exactly when the message is final. All functions are
//! pure; the store calls them under the row's lock, so decisions see the newest state.

use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::id::ConnectionId;
use crate::message::{Attempt, AttemptStatus, HeldReason, Status};
use crate::time::Timestamp;

mod attempt;
mod change;
mod decision;
mod detail;
mod money;
mod route;
mod step;

use attempt::Policy;
pub use change::Change;
pub use detail::Detail;
pub use step::{Outcome, ReceiptKind, Receipts, Resolution, Scope, Step};

/// Identifies one server process, from its start to its end. A restart gets a new id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub i64);

/// What a message waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// The next attempt. Any node can start it from `due_at` on.
    Attempt { due_at: Timestamp },
    /// The result of an attempt that `node` runs.
    Owned { node: NodeId },
    /// A receipt, until `deadline`.
    Receipt { deadline: Timestamp },
    /// A human decision, until `deadline`.
    Held { reason: HeldReason, deadline: Timestamp },
    /// Nothing: the message is final.
    Nothing,
}

/// A channel and the connection that carries it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Route {
    #[serde(rename = "c")]
    pub channel: Channel,
    #[serde(rename = "x")]
    pub connection: ConnectionId,
    /// Kind of provider.
    #[serde(rename = "k")]
    pub provider: String,
}

/// The mutable part of a message.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    pub status: Status,
    pub wait: Wait,
    /// Incremented by each decision and each change of owner.
    pub fence: i64,
    /// Incremented by each published change; the `sequence` of the message's events.
    pub version: i64,
    /// End of the validity.
    pub expires_at: Timestamp,
    pub updated_at: Timestamp,
    /// Route of the newest or next attempt.
    pub route: Route,
    pub detail: Detail,
}

/// Result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// It took effect, as a fact, a decision or both.
    Yes,
    /// Another owner has the row, or it is past this step; nothing changed.
    Lost,
}

impl State {
    /// Returns whether the message is final.
    pub const fn is_final(&self) -> bool {
        matches!(self.wait, Wait::Nothing)
    }

    /// Returns when a node must process the message if no event comes first.
    pub const fn due_at(&self) -> Option<Timestamp> {
        match self.wait {
            Wait::Attempt { due_at } => Some(due_at),
            Wait::Receipt { deadline } | Wait::Held { deadline, .. } => Some(deadline),
            Wait::Owned { .. } | Wait::Nothing => None,
        }
    }

    /// Records the start of an attempt by `node` and returns its index. The caller has checked that it can start.
    pub fn begin_attempt(&mut self, node: NodeId, now: Timestamp, changes: &mut Vec<Change>) -> usize {
        let index = self.detail.attempts.len();
        self.detail.attempts.push(Attempt {
            channel: self.route.channel,
            connection: self.route.connection,
            provider: self.route.provider.clone(),
            status: AttemptStatus::Started,
            started_at: now,
            finished_at: None,
            provider_message_id: None,
            parts: 0,
            arrived: 0,
            error: None,
        });
        self.note_duplicate();
        self.wait = Wait::Owned { node };
        self.fence += 1;
        self.raise(Status::Sending, now, Some(index), changes);
        index
    }

    /// Applies `step` at `now` and appends the changes to publish to `changes`.
    pub fn apply(&mut self, step: &Step, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let seen = changes.len();
        let applied = match step {
            Step::Start { node, fence, suppressed } => self.start(*node, *fence, *suppressed, now, changes),
            Step::Settle { attempt, fence, outcome, receipts, retry_in, receipt_wait } => {
                let policy = Policy { receipts: *receipts, retry_in: *retry_in, receipt_wait: *receipt_wait };
                self.settle(*attempt, *fence, outcome, policy, now, changes)
            }
            Step::Receipt { attempt, part, kind, at } => self.receipt((*attempt, *part), kind, *at, now, changes),
            Step::Disconnected { fence } => self.disconnected(*fence, now, changes),
            Step::Deadline { fence } => self.deadline(*fence, now, changes),
            Step::Recover { node, retry_in } => self.recover(*node, *retry_in, now, changes),
            Step::Hold { reason } => self.hold(*reason, now),
            Step::Cancel => self.cancel(now, changes),
            Step::Withdraw { halt } => self.withdraw(*halt, now, changes),
            Step::Erase => self.erase(),
            Step::Resolve { action } => self.resolve(*action, now, changes),
        };
        if self.detail.erased {
            self.enforce_erasure(seen, now, changes);
        }
        if applied == Applied::Yes {
            self.updated_at = now;
            self.settle_money();
        }
        applied
    }
}
