//! Messages from outside of which some parts have come.

use async_trait::async_trait;
use nuncio_domain::sms::Alphabet;
use nuncio_domain::{Channel, ConnectionId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::Result;

/// A message of which some parts have come, and perhaps all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reassembly {
    /// The world of the connection.
    pub tenant: TenantId,
    /// The connection that its parts come by.
    pub connection: ConnectionId,
    /// What its parts have in common. Phones use their numbers again: with another `reference` it is another message.
    pub key: String,
    /// The id that the message has from its first part on.
    pub reference: String,
    /// When the message is taken as it is, and its parts are forgotten.
    pub due_at: Timestamp,
    /// What has come of it.
    pub parts: Parts,
}

/// What has come of a message in several parts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parts {
    /// The channel.
    pub channel: Channel,
    /// Who wrote, in canonical form.
    pub from: String,
    /// What they wrote to, when the provider names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// When the first part came.
    pub since: Timestamp,
    /// Its parts, in their order.
    pub pieces: Vec<Option<Piece>>,
    /// Whether the message was written.
    pub done: bool,
    /// Whether it takes no more parts, since its time is over.
    #[serde(default)]
    pub sealed: bool,
}

/// One part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// How its octets are read.
    pub alphabet: Alphabet,
    /// Its user data.
    pub octets: Vec<u8>,
}

/// Messages from outside of which some parts have come.
#[async_trait]
pub trait ReassemblyRepo {
    /// The message under the key of `fresh`, which is kept if there is none. Locked until the transaction ends, also against others
    /// that bring the first part.
    async fn lock_reassembly(&mut self, fresh: &Reassembly) -> Result<Reassembly>;

    /// Keeps what has come of a locked message, or of another in its place.
    async fn put_reassembly(&mut self, reassembly: &Reassembly) -> Result<()>;

    /// Messages that are due by `now`, longest due first.
    async fn due_reassemblies(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Reassembly>>;

    /// Forgets a message, unless another took its place.
    async fn delete_reassembly(&mut self, reassembly: &Reassembly) -> Result<()>;
}
