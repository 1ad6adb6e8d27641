//! Erases personal data.

use async_trait::async_trait;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::{AddressId, MessageId, Recipient, TenantId, Timestamp};
use uuid::Uuid;

use crate::error::Result;

/// An erased address; messages to it may still be about to be stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erasure {
    pub tenant: TenantId,
    /// Id of the deleted address row.
    pub address: AddressId,
    /// Its identifier.
    pub recipient: Recipient,
}

/// Erasure of messages and events. Identifiers, statuses, times and costs stay.
#[async_trait]
pub trait ErasureRepo {
    /// Records that the messages of an address must be erased.
    async fn insert_erasure(&mut self, erasure: &Erasure, now: Timestamp) -> Result<()>;

    /// Returns up to `limit` erasures of all environments that were recorded before `before`.
    async fn list_erasures(&mut self, before: Timestamp, limit: u32) -> Result<Vec<Erasure>>;

    /// Deletes the record of an erasure, and with it the identifier.
    async fn delete_erasure(&mut self, erasure: &Erasure) -> Result<()>;

    /// Deletes the parts of texts that are not complete yet.
    async fn erase_parts(&mut self, tenant: TenantId, author: &Recipient) -> Result<()>;

    /// Returns up to `limit` messages older than `before` to or from an erased address that are not erased yet, newest first; or only
    /// `unfinished` ones.
    async fn messages_to_erase(
        &mut self,
        erasure: &Erasure,
        unfinished: bool,
        before: Option<MessageId>,
        limit: u32,
    ) -> Result<Vec<MessageId>>;

    /// Erases recipient, author and content of messages, the provider texts in their events, and the endpoint responses in their
    /// deliveries.
    async fn erase_messages(&mut self, tenant: TenantId, ids: &[MessageId]) -> Result<()>;

    /// Erases everything except the identifier from the events of a resource other than a message, and the endpoint responses in their
    /// deliveries.
    async fn erase_events(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid) -> Result<()>;

    /// Erases a recipient from broadcasts: drafts drop the recipient; others store `mark` instead, and skip a recipient without a message.
    async fn erase_broadcast_contacts(&mut self, tenant: TenantId, recipient: &Recipient, mark: &str, now: Timestamp) -> Result<()>;
}
