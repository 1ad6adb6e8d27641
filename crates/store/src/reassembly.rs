//! Reassembles inbound messages from their parts.

use async_trait::async_trait;
use nuncio_domain::sms::Alphabet;
use nuncio_domain::{Channel, ConnectionId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Result;

/// An inbound message with some or all of its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reassembly {
    pub tenant: TenantId,
    /// The connection that receives its parts.
    pub connection: ConnectionId,
    /// Identifies its parts. Phones reuse their numbers: with another `reference` it is another message.
    pub key: String,
    /// The message's id, assigned with its first part.
    pub reference: String,
    /// When the message is stored incomplete, and its parts are deleted.
    pub due_at: Timestamp,
    pub parts: ReassemblyState,
}

/// The parts received so far.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReassemblyState {
    pub channel: Channel,
    /// The author, in canonical form.
    pub from: String,
    /// The address they wrote to, if the provider reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// When the first part arrived.
    pub since: Timestamp,
    /// The parts, in order.
    pub pieces: Vec<Option<Piece>>,
    /// Whether the message was stored.
    pub done: bool,
    /// Whether it is closed to further parts because its time is over.
    #[serde(default)]
    pub sealed: bool,
}

/// A part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// Encoding of the octets.
    pub alphabet: Alphabet,
    /// User data.
    pub octets: Vec<u8>,
}

/// Inbound messages in parts.
#[async_trait]
pub trait ReassemblyRepo {
    /// Returns the message under the key of `fresh`, storing `fresh` if there is none. Locked until the end of the transaction, also
    /// against a concurrent first part.
    async fn lock_reassembly(&mut self, fresh: &Reassembly) -> Result<Reassembly>;

    /// Stores the state of a locked message, or another message in its place.
    async fn put_reassembly(&mut self, reassembly: &Reassembly) -> Result<()>;

    /// Returns messages that are due by `now`, longest due first.
    async fn due_reassemblies(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Reassembly>>;

    /// Deletes a message, unless another has replaced it.
    async fn delete_reassembly(&mut self, reassembly: &Reassembly) -> Result<()>;
}
