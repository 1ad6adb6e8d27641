//! The audit log: who changed what.

use async_trait::async_trait;
use nuncio_domain::TenantId;
use nuncio_domain::audit::{Entry, Filter};
use nuncio_domain::page::{Page, PageRequest};

use crate::error::Result;

/// Entries of the audit log. They are only ever added.
#[async_trait]
pub trait AuditRepo {
    /// Adds an entry, in the transaction of the change that it records.
    async fn insert_audit_entry(&mut self, entry: &Entry) -> Result<()>;

    /// Entries of an environment that match, newest first.
    async fn list_audit_entries(&mut self, tenant: TenantId, filter: &Filter, page: PageRequest) -> Result<Page<Entry>>;
}
