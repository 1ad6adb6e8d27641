//! Contacts as callers see and change them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::{ChannelEntry, Contact};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, Recipient, TenantId, Timestamp};

use crate::contacts::ChannelMetrics;
use crate::error::Result;

/// One identifier of a contact, with what is known of its channels.
#[derive(Clone, PartialEq, Debug)]
pub struct Address {
    /// Its identifier.
    pub id: AddressId,
    /// Whose it is.
    pub contact: ContactId,
    /// Kind and text.
    pub recipient: Recipient,
    /// When it was made.
    pub created_at: Timestamp,
    /// What the caller said of its channels.
    pub entries: Vec<ChannelEntry>,
    /// What is known from use.
    pub metrics: Vec<ChannelMetrics>,
    /// The channel of the newest message to it; looked up only for a phone number of which nothing else tells a channel.
    pub newest: Option<Channel>,
}

impl Address {
    /// A new one, of which nothing is known.
    pub const fn new(id: AddressId, contact: ContactId, recipient: Recipient, now: Timestamp) -> Self {
        Self { id, contact, recipient, created_at: now, entries: Vec::new(), metrics: Vec::new(), newest: None }
    }
}

/// Which contacts a list holds. An absent field does not filter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContactFilter {
    /// This one.
    pub id: Option<ContactId>,
    /// This in its name; in lower case.
    pub name: Option<String>,
    /// All these entries in `metadata`, compared as text.
    pub metadata: BTreeMap<String, String>,
}

/// Contacts. Who changes one locks it first; addresses and channel entries are changed under the lock of their contact only.
#[async_trait]
pub trait PeopleRepo {
    /// One contact.
    async fn find_contact(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<Contact>>;

    /// Contacts, newest first. Name and metadata are looked for in so many rows as [`limits::SCAN_ROWS`](nuncio_domain::limits::SCAN_ROWS)
    /// says.
    async fn list_contacts(&mut self, tenant: TenantId, filter: &ContactFilter, page: PageRequest) -> Result<Page<Contact>>;

    /// Locks contacts until the end of the transaction, in one order everywhere, and answers those that are there.
    async fn lock_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Contact>>;

    /// Writes a new contact.
    async fn insert_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<()>;

    /// Replaces country, detail, version and time of a contact; `false` when there is none.
    async fn update_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<bool>;

    /// Removes a contact, its channel entries, its addresses and the traces of what was merged into it; `false` when there is none.
    async fn delete_contact(&mut self, tenant: TenantId, id: ContactId) -> Result<bool>;

    /// All addresses of these contacts, oldest first.
    async fn addresses_of_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Address>>;

    /// For each of these name keys, up to `limit` contacts that have it, oldest first. One statement for all keys; a key that no contact
    /// has is absent.
    async fn contacts_named(
        &mut self,
        tenant: TenantId,
        name_keys: &BTreeSet<String>,
        limit: u32,
    ) -> Result<HashMap<String, Vec<ContactId>>>;

    /// The contact of each of these identifiers of one kind. One statement for all; an identifier that no contact has is absent.
    async fn contacts_by_identifier(
        &mut self,
        tenant: TenantId,
        kind: AddressKind,
        identifiers: &BTreeSet<String>,
    ) -> Result<HashMap<String, ContactId>>;

    /// Writes an address; `false` when the identifier has one.
    async fn insert_address(&mut self, tenant: TenantId, address: &Address) -> Result<bool>;

    /// Removes an address and its channel entries; `false` when there is none.
    async fn delete_address(&mut self, tenant: TenantId, id: AddressId) -> Result<bool>;

    /// Removes the metrics of an address. Not in a transaction that holds a contact: inbound messages take the two the other way round.
    async fn delete_metrics(&mut self, tenant: TenantId, id: AddressId) -> Result<()>;

    /// Writes what a caller says of a channel of an address, in place of what was said before.
    async fn put_channel_entry(&mut self, tenant: TenantId, address: AddressId, entry: &ChannelEntry) -> Result<()>;

    /// Moves all addresses of `source`, and what was merged into it, to `target`, and leaves a trace in place of `source`.
    async fn merge_contact(&mut self, tenant: TenantId, source: ContactId, target: ContactId, now: Timestamp) -> Result<()>;

    /// Which contact this one was merged into.
    async fn merged_into(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>>;

    /// The contacts that became part of this one.
    async fn merged_from(&mut self, tenant: TenantId, id: ContactId) -> Result<Vec<ContactId>>;
}
