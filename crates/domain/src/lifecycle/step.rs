//! Steps: the facts and decisions that a message goes through.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bounded_reference;
use crate::message::{Attempt, Cost, Failure, HeldReason, NodeId};
use crate::{broadcast::Halt, time::Timestamp};

/// An event in the life of a message.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Decision: start the attempt that is due.
    Start {
        /// The node that runs it.
        node: NodeId,
        /// The fence the node has seen.
        fence: i64,
        /// Whether the recipient is suppressed by now.
        suppressed: bool,
        /// When the node last did nothing for more than [`limits::PAST_DUE`](crate::limits::PAST_DUE): it missed the schedules of that time.
        pause: Option<(Timestamp, Timestamp)>,
    },
    /// Fact: an attempt has a result. The decision that follows requires that `fence` still holds.
    Settle {
        /// Index of the attempt.
        attempt: usize,
        /// The fence returned by its start.
        fence: i64,
        outcome: Outcome,
        /// How the provider will report delivery.
        receipts: Receipts,
        /// Time until the next attempt, if there is one.
        retry_in: Duration,
        /// How long to wait for a receipt.
        receipt_wait: Duration,
    },
    /// Fact: a receipt arrived.
    Receipt {
        /// Index of the attempt; `None` means the newest.
        attempt: Option<usize>,
        /// Index of the part. A message is delivered when all its parts are.
        part: u8,
        kind: ReceiptKind,
        /// Time of the event as reported by the provider.
        at: Timestamp,
    },
    /// Decision: the connection of the next attempt was removed; take the fallback, if there is one.
    Disconnected {
        /// The fence seen.
        fence: i64,
    },
    /// Decision: the wait for a receipt or a human decision timed out.
    Deadline {
        /// The fence seen.
        fence: i64,
    },
    /// Decision: the owner is dead and the outcome of its attempt cannot be known.
    Recover {
        /// The dead owner.
        node: NodeId,
        /// Time until a resend.
        retry_in: Duration,
    },
    /// Decision: wait for a human decision.
    Hold { reason: HeldReason },
    /// Decision of a caller: do not send.
    Cancel,
    /// Decision: the next attempt must not start because the broadcast is paused or cancelled.
    Withdraw {
        /// Looked up by the store in the transaction of the step; `None` changes nothing.
        halt: Option<Halt>,
    },
    /// Decision: erase the recipient's data. Nothing more is sent, and provider texts are dropped from now on.
    Erase,
    /// Human decision on a held message.
    Resolve { action: Resolution },
}

/// How a provider reports delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receipts {
    /// It does not.
    Never,
    /// By our own identifiers, echoed in receipts.
    ByAttempt,
    /// By the ids it returned, which the store must keep for the look-up.
    ByReference,
}

/// Result of an attempt, as far as the provider's response determines it.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The provider accepted it.
    Accepted {
        /// The provider's ids that receipts refer to: one for each part, in order.
        refs: Vec<String>,
        /// Cost, if the response has it.
        cost: Option<Cost>,
    },
    /// Not now. The same route can work later.
    Deferred {
        /// Delay requested by the provider; `None` lets dispatch choose.
        retry_after: Option<Duration>,
        failure: Failure,
        /// Scope of the problem.
        scope: Scope,
    },
    /// Permanently refused on this route.
    Rejected { failure: Failure },
    /// The message may have been sent: the connection broke after the request was written, or there was no response in time.
    Unknown {
        /// Why the outcome is unknown.
        failure: Failure,
        /// The provider's ids of the parts it did accept, in order.
        refs: Vec<String>,
    },
}

/// Scope of a deferral.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// This message only.
    Message,
    /// The whole connection is unreachable, rejects our credentials or is throttled. Other messages need not try.
    Connection,
}

/// Maximum number of parts of an attempt whose receipts are tracked separately.
const PARTS: usize = 32;

impl Outcome {
    /// Returns the provider's ids that receipts can refer to.
    pub fn references(&self, receipts: Receipts) -> &[String] {
        let refs = match self {
            Self::Accepted { refs, .. } if receipts == Receipts::ByReference => refs.as_slice(),
            Self::Unknown { refs, .. } => refs.as_slice(),
            Self::Accepted { .. } | Self::Deferred { .. } | Self::Rejected { .. } => &[],
        };
        &refs[..refs.len().min(PARTS)]
    }

    /// Bounds the provider's ids, so that the store can keep them. An adapter may return any.
    pub fn with_bounded_references(mut self) -> Self {
        if let Some(refs) = self.refs_mut() {
            refs.iter_mut().for_each(|id| *id = bounded_reference(std::mem::take(id)));
        }
        self
    }

    /// Drops the provider's ids; returns whether there were any.
    pub fn drop_references(&mut self) -> bool {
        self.refs_mut().is_some_and(|refs| !std::mem::take(refs).is_empty())
    }

    const fn refs_mut(&mut self) -> Option<&mut Vec<String>> {
        match self {
            Self::Accepted { refs, .. } | Self::Unknown { refs, .. } => Some(refs),
            Self::Deferred { .. } | Self::Rejected { .. } => None,
        }
    }

    /// Records on the attempt what the provider accepted.
    pub(super) fn note(&self, receipts: Receipts, attempt: &mut Attempt) {
        let (refs, missing) = match self {
            Self::Accepted { refs, .. } => (refs, 0),
            Self::Unknown { refs, .. } => (refs, 1), // at least one part may not have been accepted
            Self::Deferred { .. } | Self::Rejected { .. } => return,
        };
        if let Some(first) = refs.first() {
            attempt.provider_message_id = Some(first.clone());
        }
        let parts = self.references(receipts).len() + missing;
        if parts > 1 {
            attempt.parts = parts as u8;
        }
    }
}

/// Status in a receipt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptKind {
    /// On its way.
    Sent,
    Delivered,
    Read,
    Failed(Failure),
}

/// Human decision on a held message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = MessageResolution))]
pub enum Resolution {
    /// Send it (again).
    Resend,
    /// It was sent.
    Sent,
    /// It was not sent; give up.
    Failed,
}
