//! Contacts as callers see and change them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::{ChannelEntry, Contact};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, Recipient, TenantId, Timestamp};

use crate::addresses::ChannelMetrics;
use crate::error::Result;

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

/// Filter of a contact list. An absent field does not filter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContactFilter {
    pub id: Option<ContactId>,
    /// Part of the name, in lower case.
    pub name: Option<String>,
    /// Entries that `metadata` must have, compared as text.
    pub metadata: BTreeMap<String, String>,
}

/// Contacts. A contact must be locked before it, its addresses or its channel entries are changed.
#[async_trait]
pub trait ContactRepo {
    async fn find_contact(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<Contact>>;

    /// Lists contacts, newest first. A search by name or metadata scans at most [`limits::SCAN_ROWS`](nuncio_domain::limits::SCAN_ROWS)
    /// rows.
    async fn list_contacts(&mut self, tenant: TenantId, filter: &ContactFilter, page: PageRequest) -> Result<Page<Contact>>;

    /// Returns the existing contacts of these, in the order of their ids.
    async fn lookup_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Contact>>;

    /// Locks contacts until the end of the transaction, always in the same order, and returns the existing ones.
    async fn lock_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Contact>>;

    async fn insert_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<()>;

    /// Updates country, detail, version and time of a contact; `false` if it does not exist.
    async fn update_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<bool>;

    /// Deletes a contact, its channel entries, addresses and merge records; `false` if it does not exist.
    async fn delete_contact(&mut self, tenant: TenantId, id: ContactId) -> Result<bool>;

    /// Returns all addresses of these contacts, oldest first.
    async fn addresses_of_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Address>>;

    /// Returns up to `limit` contacts, oldest first, for each of these name keys that has any. Uses one statement for all keys.
    async fn contacts_named(
        &mut self,
        tenant: TenantId,
        name_keys: &BTreeSet<String>,
        limit: u32,
    ) -> Result<HashMap<String, Vec<ContactId>>>;

    /// Returns the contacts of these identifiers of one kind, for those that have one. Uses one statement for all.
    async fn contacts_by_identifier(
        &mut self,
        tenant: TenantId,
        kind: AddressKind,
        identifiers: &BTreeSet<String>,
    ) -> Result<HashMap<String, ContactId>>;

    /// Stores an address; `false` if the identifier has one.
    async fn insert_address(&mut self, tenant: TenantId, address: &Address) -> Result<bool>;

    /// Deletes an address and its channel entries; `false` if there is none.
    async fn delete_address(&mut self, tenant: TenantId, id: AddressId) -> Result<bool>;

    /// Deletes the metrics of an address. Do not call it in a transaction that has a contact locked: inbound messages lock the two in the
    /// opposite order.
    async fn delete_metrics(&mut self, tenant: TenantId, id: AddressId) -> Result<()>;

    /// Stores a caller's settings for a channel of an address, replacing earlier ones.
    async fn put_channel_entry(&mut self, tenant: TenantId, address: AddressId, entry: &ChannelEntry) -> Result<()>;

    /// Moves all addresses of `source`, and what was merged into it, to `target`, and leaves a merge record in place of `source`.
    async fn merge_contact(&mut self, tenant: TenantId, source: ContactId, target: ContactId, now: Timestamp) -> Result<()>;

    /// Returns the contact this one was merged into.
    async fn merged_into(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>>;

    /// Returns the contacts merged into this one.
    async fn merged_from(&mut self, tenant: TenantId, id: ContactId) -> Result<Vec<ContactId>>;
}
