//! Contacts as far as sending needs them: addresses, metrics, suppressions, inbound messages.

use async_trait::async_trait;
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::message::Message;
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, Recipient, SenderId, SuppressionId, TenantId, Timestamp};

use crate::error::Result;

/// What the results of attempts add to a contact channel's metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MetricDelta {
    /// Attempts that arrived, or were taken where no receipts come.
    pub successes: i64,
    /// Attempts that failed.
    pub failures: i64,
    /// Sum of delivery times, in milliseconds, over `timed` attempts.
    pub delivery_ms: i64,
    /// How many attempts `delivery_ms` sums over.
    pub timed: i64,
    /// The newest success.
    pub last_success_at: Option<Timestamp>,
}

impl MetricDelta {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.successes += other.successes;
        self.failures += other.failures;
        self.delivery_ms += other.delivery_ms;
        self.timed += other.timed;
        self.last_success_at = self.last_success_at.max(other.last_success_at);
    }
}

/// What to add to which channel of which address.
pub type MetricRow = (TenantId, AddressId, Channel, MetricDelta);

/// Metrics of one address on one channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelMetrics {
    /// The channel.
    pub channel: Channel,
    /// The sums so far.
    pub sums: MetricDelta,
    /// The newest inbound message.
    pub last_inbound_at: Option<Timestamp>,
}

/// A recipient to whom nothing may be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suppression {
    /// Its identifier.
    pub id: SuppressionId,
    /// The recipient.
    pub recipient: Recipient,
    /// Only by this sender; by all when absent.
    pub sender: Option<SenderId>,
    /// Why.
    pub reason: SuppressionReason,
    /// What caused it, for people.
    pub source: String,
}

/// A message from outside, ready to be written.
#[derive(Clone, Debug)]
pub struct NewInbound {
    /// The message; `received`, final. Its `address` is put in by the store.
    pub message: Message,
    /// Who wrote.
    pub from: Recipient,
    /// Their country.
    pub country: String,
    /// What stands for their identifier in suppressions of somebody who was erased.
    pub mark: String,
    /// Identifier of the address row, should the writer be unknown.
    pub new_address: AddressId,
    /// Identifier of the contact, should the writer be unknown.
    pub new_contact: ContactId,
    /// The provider's id for it.
    pub provider_message_id: String,
    /// Whether it is proven that they wrote it. If not, it counts neither for their channel nor as the beginning of a conversation.
    pub is_proven: bool,
}

/// Contacts.
#[async_trait]
pub trait ContactRepo {
    /// The address row of a recipient and the contact that it belongs to.
    async fn find_address(&mut self, tenant: TenantId, recipient: &Recipient) -> Result<Option<(AddressId, ContactId)>>;

    /// Metrics of an address, by channel.
    async fn channel_metrics(&mut self, tenant: TenantId, address: AddressId) -> Result<Vec<ChannelMetrics>>;

    /// Writes a message from outside with its event and marks its channel; `false` when this provider message was written before.
    async fn insert_inbound(&mut self, inbound: &NewInbound) -> Result<bool>;

    /// Writes a message of ours that answers one from outside, with its event, in the transaction of that one. It waits for its attempt.
    async fn insert_reply(&mut self, message: &Message) -> Result<()>;

    /// Writes a suppression; `false` when there is one for this recipient and sender.
    async fn insert_suppression(&mut self, tenant: TenantId, suppression: &Suppression, now: Timestamp) -> Result<bool>;

    /// Lifts an opt-out, and nothing else; `false` when there is none.
    async fn delete_opt_out(&mut self, tenant: TenantId, recipient: &Recipient, sender: SenderId) -> Result<bool>;

    /// Whether `sender` may not send to the recipient.
    async fn is_suppressed(&mut self, tenant: TenantId, kind: AddressKind, identifier: &str, sender: SenderId) -> Result<bool>;
}
