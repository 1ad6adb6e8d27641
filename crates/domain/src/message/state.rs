//! The mutable part of a message. [`crate::lifecycle`] changes it.

use serde::{Deserialize, Serialize};

use super::detail::Detail;
use super::status::{HeldReason, Status};
use crate::channel::Channel;
use crate::id::ConnectionId;
use crate::time::Timestamp;

/// Identifies one server process, from its start to its end. A restart gets a new id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub i64);

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
    /// Route of the newest or next attempt.
    pub route: Route,
    pub detail: Detail,
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
}
