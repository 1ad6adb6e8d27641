//! Inbound messages, and replies to them.

use async_trait::async_trait;
use nuncio_domain::message::Message;
use nuncio_domain::{AddressId, ContactId, Recipient, Timestamp};

use crate::error::Result;

/// An inbound message to store.
#[derive(Clone, Debug)]
pub struct NewInbound {
    /// The message; `received`, final. The store sets its `address`.
    pub message: Message,
    /// The author.
    pub from: Recipient,
    pub country: String,
    /// Keyed hash of the author's identifier, under which suppressions of erased contacts are stored.
    pub mark: String,
    /// Id of the address row, if the author is unknown.
    pub new_address: AddressId,
    /// Id of the contact, if the author is unknown.
    pub new_contact: ContactId,
    /// Keyed hash of the provider's id, by which the message is received once. Some ids contain the author's number.
    pub provider_key: String,
    /// When it was written: by the provider's clock, if that is trusted, and never after `message`.
    pub written_at: Timestamp,
    /// Whether the author is proven. If not, the message does not count for their channel and opens no conversation.
    pub is_proven: bool,
}

/// Inbound messages.
#[async_trait]
pub trait InboundRepo {
    /// Stores an inbound message with its event and updates its channel; `false` if this provider message is already stored.
    async fn insert_inbound(&mut self, inbound: &NewInbound) -> Result<bool>;

    /// Stores our reply to an inbound message, with its event, in the same transaction. The reply waits for its attempt.
    async fn insert_reply(&mut self, message: &Message) -> Result<()>;
}
