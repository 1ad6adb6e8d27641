//! The mutable part of a message, and the enumerations of messages. [`crate::lifecycle`] changes it.

use serde::{Deserialize, Serialize};

use super::attempt::Route;
use super::detail::Detail;
use crate::channel::{Channel, named};
use crate::time::Timestamp;

named! {
    /// The public status. Its number is also its rank: facts only raise it (see [`crate::lifecycle`]).
    #[cfg_attr(feature = "openapi", schema(as = MessageStatus, description = "Status of a message."))]
    Status {
        /// Waits for its scheduled time.
        Scheduled = 1 "scheduled",
        /// Accepted; waits to be sent.
        Queued = 2 "queued",
        /// An attempt was started.
        Sending = 3 "sending",
        /// A provider accepted it.
        Sent = 4 "sent",
        /// Failed on every route.
        Failed = 5 "failed",
        Delivered = 6 "delivered",
        Read = 7 "read",
        /// Stopped before it was sent to a provider.
        Cancelled = 8 "cancelled",
        /// Inbound message.
        Received = 9 "received",
    }
}

named! {
    /// Direction of a message.
    #[cfg_attr(feature = "openapi", schema(as = MessageDirection))]
    Direction {
        /// Sent by nuncio.
        Outbound = 1 "outbound",
        /// Received by nuncio.
        Inbound = 2 "inbound",
    }
}

named! {
    /// Why a message waits for a human decision.
    HeldReason {
        /// The outcome of an attempt is unknown.
        UnknownOutcome = 1 "unknown_outcome",
        /// Its scheduled time is too far in the past to send it safely.
        PastDue = 2 "past_due",
        /// The database was more than an hour old when the node started: it might be a restored copy whose messages were sent since.
        StaleDatabase = 3 "stale_database",
    }
}

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
    /// Route of the next attempt, or of the newest if none follows.
    pub route: Route,
    pub detail: Detail,
}

impl State {
    /// Returns the channel of the newest attempt, or of the first one to come.
    pub fn channel(&self) -> Channel {
        self.detail.attempts.last().map_or(self.route.channel, |attempt| attempt.channel)
    }

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
}
