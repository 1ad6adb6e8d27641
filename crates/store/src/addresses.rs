//! Addresses as sending needs them: metrics, suppressions, inbound messages.

use async_trait::async_trait;
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::message::Message;
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, Recipient, SenderId, SuppressionId, TenantId, Timestamp};

use crate::error::Result;

/// What attempt results add to the metrics of a contact channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MetricDelta {
    /// Attempts that were delivered, or accepted where there are no receipts.
    pub successes: i64,
    /// Attempts that failed.
    pub failures: i64,
    /// Sum of delivery times, in milliseconds, over `timed` attempts.
    pub delivery_ms: i64,
    /// Number of attempts in `delivery_ms`.
    pub timed: i64,
    /// Time of the newest success.
    pub last_success_at: Option<Timestamp>,
}

impl MetricDelta {
    pub fn add(&mut self, other: &Self) {
        self.successes += other.successes;
        self.failures += other.failures;
        self.delivery_ms += other.delivery_ms;
        self.timed += other.timed;
        self.last_success_at = self.last_success_at.max(other.last_success_at);
    }
}

/// Metrics to add for a channel of an address.
pub type MetricRow = (TenantId, AddressId, Channel, MetricDelta);

/// Metrics of one address on one channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelMetrics {
    pub channel: Channel,
    /// Totals so far.
    pub sums: MetricDelta,
    /// Time of the newest inbound message.
    pub last_inbound_at: Option<Timestamp>,
}

/// A suppressed recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suppression {
    pub id: SuppressionId,
    pub recipient: Recipient,
    /// The sender it applies to; `None` means all senders.
    pub sender: Option<SenderId>,
    pub reason: SuppressionReason,
    /// What caused it, as text.
    pub source: String,
}

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
    pub provider_message_id: String,
    /// Whether the author is proven. If not, the message does not count for their channel and opens no conversation.
    pub is_proven: bool,
}

/// Addresses.
#[async_trait]
pub trait AddressRepo {
    /// Returns the address row of a recipient and its contact.
    async fn find_address(&mut self, tenant: TenantId, recipient: &Recipient) -> Result<Option<(AddressId, ContactId)>>;

    /// Returns the metrics of an address, by channel.
    async fn channel_metrics(&mut self, tenant: TenantId, address: AddressId) -> Result<Vec<ChannelMetrics>>;

    /// Stores an inbound message with its event and updates its channel; `false` if this provider message is already stored.
    async fn insert_inbound(&mut self, inbound: &NewInbound) -> Result<bool>;

    /// Stores our reply to an inbound message, with its event, in the same transaction. The reply waits for its attempt.
    async fn insert_reply(&mut self, message: &Message) -> Result<()>;

    /// Stores a suppression; `false` if the recipient already has one for the sender.
    async fn insert_suppression(&mut self, tenant: TenantId, suppression: &Suppression, now: Timestamp) -> Result<bool>;

    /// Removes an opt-out, but no other suppression; `false` if there is none.
    async fn delete_opt_out(&mut self, tenant: TenantId, recipient: &Recipient, sender: SenderId) -> Result<bool>;

    /// Returns whether sending to the recipient is suppressed for `sender`.
    async fn is_suppressed(&mut self, tenant: TenantId, kind: AddressKind, identifier: &str, sender: SenderId) -> Result<bool>;
}
