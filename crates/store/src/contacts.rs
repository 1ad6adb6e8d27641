//! Contacts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::Contact;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{ContactId, TenantId, Timestamp};

use crate::error::Result;

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

    /// Returns up to `limit` contacts, oldest first, for each of these name keys that has any. Uses one statement for all keys.
    async fn contacts_named(
        &mut self,
        tenant: TenantId,
        name_keys: &BTreeSet<String>,
        limit: u32,
    ) -> Result<HashMap<String, Vec<ContactId>>>;

    /// Moves all addresses of `source`, and what was merged into it, to `target`, and leaves a merge record in place of `source`.
    async fn merge_contact(&mut self, tenant: TenantId, source: ContactId, target: ContactId, now: Timestamp) -> Result<()>;

    /// Returns the contact this one was merged into.
    async fn merged_into(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>>;

    /// Returns the contacts merged into this one.
    async fn merged_from(&mut self, tenant: TenantId, id: ContactId) -> Result<Vec<ContactId>>;
}
