//! Addresses of contacts, with their channels and metrics.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::ChannelEntry;
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, Recipient, TenantId, Timestamp};

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

/// An identifier of a contact, with what is known about its channels.
#[derive(Clone, PartialEq, Debug)]
pub struct Address {
    pub id: AddressId,
    pub contact: ContactId,
    pub recipient: Recipient,
    pub created_at: Timestamp,
    /// Channel settings made by the caller.
    pub entries: Vec<ChannelEntry>,
    /// Metrics from use.
    pub metrics: Vec<ChannelMetrics>,
    /// Channel of the newest message to it; looked up only for phone numbers whose channel is otherwise unknown.
    pub newest: Option<Channel>,
}

impl Address {
    /// Makes an address without further data.
    pub const fn new(id: AddressId, contact: ContactId, recipient: Recipient, now: Timestamp) -> Self {
        Self { id, contact, recipient, created_at: now, entries: Vec::new(), metrics: Vec::new(), newest: None }
    }
}

/// Addresses.
#[async_trait]
pub trait AddressRepo {
    /// Returns the address row of a recipient and its contact.
    async fn find_address(&mut self, tenant: TenantId, recipient: &Recipient) -> Result<Option<(AddressId, ContactId)>>;

    /// Returns the metrics of an address, by channel.
    async fn channel_metrics(&mut self, tenant: TenantId, address: AddressId) -> Result<Vec<ChannelMetrics>>;

    /// Returns all addresses of these contacts, oldest first.
    async fn addresses_of_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Address>>;

    /// Returns the contacts of these identifiers of one kind, for those that have one. Uses one statement for all.
    async fn contacts_by_identifier(
        &mut self,
        tenant: TenantId,
        kind: AddressKind,
        identifiers: &BTreeSet<String>,
    ) -> Result<HashMap<String, ContactId>>;

    /// Stores an address, which may be one that was taken from its contact; `false` if the identifier has one.
    async fn insert_address(&mut self, tenant: TenantId, address: &Address) -> Result<bool>;

    /// Takes an address from its contact, with its channel entries; `false` if there is none. Its messages are still of that contact.
    async fn remove_address(&mut self, tenant: TenantId, id: AddressId) -> Result<bool>;

    /// Returns the addresses that were taken from a contact, oldest first.
    async fn removed_addresses(&mut self, tenant: TenantId, contact: ContactId) -> Result<Vec<(AddressId, Recipient)>>;

    /// Deletes the metrics of an address. Do not call it in a transaction that has a contact locked: inbound messages lock the two in the
    /// opposite order.
    async fn delete_metrics(&mut self, tenant: TenantId, id: AddressId) -> Result<()>;

    /// Stores a caller's settings for a channel of an address, replacing earlier ones.
    async fn put_channel_entry(&mut self, tenant: TenantId, address: AddressId, entry: &ChannelEntry) -> Result<()>;
}
