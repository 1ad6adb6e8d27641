//! Suppressions as callers see and change them.

use async_trait::async_trait;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Recipient, SuppressionId, TenantId};

use crate::addresses::Suppression;
use crate::error::Result;

/// Suppressions. Those of erased contacts have a keyed hash in place of the identifier.
#[async_trait]
pub trait SuppressionRepo {
    /// Lists suppressions of any of these recipients (all, if empty), newest first.
    async fn list_suppressions(&mut self, tenant: TenantId, of: &[Recipient], page: PageRequest) -> Result<Page<Suppression>>;

    async fn find_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<Option<Suppression>>;

    /// Deletes a suppression; `false` if there is none.
    async fn delete_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<bool>;

    /// Moves suppressions from one recipient to another of the same kind: from an identifier to its keyed hash, or back.
    async fn rename_suppressions(&mut self, tenant: TenantId, from: &Recipient, to: &str) -> Result<()>;
}
