//! Suppressions as callers see and change them.

use async_trait::async_trait;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Recipient, SuppressionId, TenantId};

use crate::contacts::Suppression;
use crate::error::Result;

/// Suppressions. Those of somebody who was erased bear a mark in place of the identifier.
#[async_trait]
pub trait SuppressionRepo {
    /// Suppressions of any of these recipients, or all of them when there is none, newest first.
    async fn list_suppressions(&mut self, tenant: TenantId, of: &[Recipient], page: PageRequest) -> Result<Page<Suppression>>;

    /// One suppression.
    async fn find_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<Option<Suppression>>;

    /// Removes a suppression; `false` when there is none.
    async fn delete_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<bool>;

    /// Gives the suppressions of one recipient to another of the same kind: from an identifier to its mark, or back.
    async fn rename_suppressions(&mut self, tenant: TenantId, from: &Recipient, to: &str) -> Result<()>;
}
