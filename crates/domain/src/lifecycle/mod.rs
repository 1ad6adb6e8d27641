//! Defines the state machine of a message: facts and decisions.
//!
//! A *fact* is something that happened, such as an attempt's result or a receipt. It is recorded unconditionally; it can raise the status
//! by rank, never lower it. A *decision* is what happens next: start, retry, fall back, hold, give up. It increments the *fence*, a number that
//! each change of owner increments too, and it is rejected if it comes too late: each [`Step`] says by what (the fence it has read, the
//! owner, or what the message waits for).
//!
//! [`State::wait`] is what an unfinished message waits for; it is [`Wait::Nothing`] exactly when the message is final. All functions are
//! pure. The store applies them to the newest state that it knows and writes the result only if nothing else has changed the row since.

use serde::{Deserialize, Serialize};

use crate::message::{Attempt, AttemptStatus, Cost, Failure, NodeId, State, Status, Wait};
use crate::time::Timestamp;

mod attempt;
mod decision;
mod route;
mod step;

use attempt::Policy;
pub use attempt::bounded_reference;
pub use step::{Outcome, ReceiptKind, Receipts, Resolution, Scope, Step};

/// A published change of a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Change {
    #[serde(rename = "s")]
    pub status: Status,
    /// Absent for a new message.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Status>,
    #[serde(rename = "t", with = "crate::time::millis")]
    pub at: Timestamp,
    /// The attempt that caused it: its index, and its state after the change.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<(usize, Attempt)>,
    /// The failure after the change.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The cost after the change.
    #[serde(rename = "c", with = "crate::message::money::stored_cost::option", default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Whether the message is a possible duplicate after the change.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub possible_duplicate: bool,
    /// Whether this inbound message opened a conversation: the contact's first on its channel, or the first after a day of silence.
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    pub conversation: bool,
}

impl Change {
    /// Strips provider error text, which may contain the recipient. Returns whether there was any.
    pub fn strip_provider_text(&mut self) -> bool {
        let attempt = self.attempt.as_mut().is_some_and(|(_, attempt)| strip_recipient_data(attempt));
        strip_provider_text(&mut self.failure) | attempt
    }
}

/// Strips what may identify the recipient: provider text, and the provider's id, which some derive from the phone number.
fn strip_recipient_data(attempt: &mut Attempt) -> bool {
    let earlier = attempt.superseded.iter_mut().fold(false, |any, (_, earlier)| strip_recipient_data(earlier) | any);
    let known = attempt.provider_message_id.take().is_some();
    strip_provider_text(&mut attempt.error) | known | earlier
}

/// Reduces a failure to its code.
fn strip_provider_text(failure: &mut Option<Failure>) -> bool {
    let Some(failure) = failure.as_mut().filter(|f| f.message != f.code.as_str()) else { return false };
    failure.message = failure.code.as_str().to_owned();
    true
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
    /// Records the start of an attempt by `node` and returns its index. The caller has checked that it can start.
    pub fn begin_attempt(&mut self, node: NodeId, now: Timestamp, changes: &mut Vec<Change>) -> usize {
        let index = self.detail.attempts.len();
        self.detail.next_channel = None;
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
            superseded: Vec::new(),
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
        let (version, before) = (self.version, self.correctable());
        let applied = match step {
            Step::Start { node, fence, suppressed, pause } => self.start((*node, *fence), *suppressed, *pause, now, changes),
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
        self.note_corrections(version, before);
        if self.detail.erased {
            self.enforce_erasure(seen, now, changes);
        }
        if applied == Applied::Yes {
            self.updated_at = now;
            self.settle_money();
        }
        applied
    }

    /// Returns the attempts if events may need what they are now: an only one that was not corrected is in its changes.
    fn correctable(&self) -> Vec<Attempt> {
        let attempts = &self.detail.attempts;
        let has_result = |attempt: &Attempt| matches!(attempt.status, AttemptStatus::Failed | AttemptStatus::Unknown);
        if attempts.len() > 1 || attempts.iter().any(has_result) { attempts.clone() } else { Vec::new() }
    }

    /// Keeps what a step has corrected in `before`, the attempts of this version.
    fn note_corrections(&mut self, version: i64, before: Vec<Attempt>) {
        for (mut earlier, attempt) in before.into_iter().zip(&mut self.detail.attempts) {
            let is_same = (earlier.status, &earlier.error) == (attempt.status, &attempt.error);
            if earlier.status == AttemptStatus::Started || is_same {
                continue;
            }
            earlier.superseded.clear();
            attempt.superseded.push((version, earlier));
        }
    }

    /// Marks a possible duplicate.
    fn note_duplicate(&mut self) {
        self.detail.possible_duplicate |= self.has_two_sent();
    }

    /// Returns whether two attempts may have been sent.
    fn has_two_sent(&self) -> bool {
        self.detail.attempts.iter().filter(|a| a.status != AttemptStatus::Failed).count() > 1
    }

    /// Raises the status if `to` ranks higher, and records the change.
    fn raise(&mut self, to: Status, at: Timestamp, attempt: Option<usize>, changes: &mut Vec<Change>) {
        if to <= self.status {
            return;
        }
        match to {
            Status::Sent | Status::Delivered | Status::Read => {
                self.detail.sent_at.get_or_insert(at);
            }
            _ => {}
        }
        let previous = std::mem::replace(&mut self.status, to);
        self.version += 1;
        changes.push(Change {
            status: to,
            previous: Some(previous),
            at,
            attempt: attempt.and_then(|i| self.detail.attempts.get(i).map(|a| (i, Attempt { superseded: Vec::new(), ..a.clone() }))),
            failure: self.detail.failure.clone(),
            cost: self.detail.cost,
            possible_duplicate: self.detail.possible_duplicate,
            conversation: false,
        });
    }
}
