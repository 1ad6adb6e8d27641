//! Taking personal data out of what is kept.

use async_trait::async_trait;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::{AddressId, MessageId, Recipient, TenantId, Timestamp};
use uuid::Uuid;

use crate::error::Result;

/// An address that was erased while messages to it may still be on their way into the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erasure {
    /// The world.
    pub tenant: TenantId,
    /// The address row that is gone.
    pub address: AddressId,
    /// What it stood for.
    pub recipient: Recipient,
}

/// Erasure of messages and events. The books stay: identifiers, statuses, times and costs.
#[async_trait]
pub trait ErasureRepo {
    /// Notes that the messages of an address must be erased.
    async fn insert_erasure(&mut self, erasure: &Erasure, now: Timestamp) -> Result<()>;

    /// Up to `limit` erasures of all worlds that were noted before `before`.
    async fn list_erasures(&mut self, before: Timestamp, limit: u32) -> Result<Vec<Erasure>>;

    /// Forgets an erasure, and with it the identifier.
    async fn delete_erasure(&mut self, erasure: &Erasure) -> Result<()>;

    /// Up to `limit` messages to or from an erased address that still say so, unfinished ones first.
    async fn messages_to_erase(&mut self, erasure: &Erasure, limit: u32) -> Result<Vec<MessageId>>;

    /// Takes recipient, writer and content out of messages, the words of providers out of their events, and what endpoints answered out of
    /// the deliveries of those.
    async fn erase_messages(&mut self, tenant: TenantId, ids: &[MessageId]) -> Result<()>;

    /// Takes everything but the identifier out of the events of a resource other than a message, and what endpoints answered out of their
    /// deliveries.
    async fn erase_events(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid) -> Result<()>;

    /// Takes a recipient out of broadcasts. Drafts lose them; elsewhere `mark` stands for them, and whoever was not handed over is
    /// skipped.
    async fn erase_broadcast_contacts(&mut self, tenant: TenantId, recipient: &Recipient, mark: &str, now: Timestamp) -> Result<()>;
}
