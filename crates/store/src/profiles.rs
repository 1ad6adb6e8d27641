//! Business accounts, as last reported by their providers.

use async_trait::async_trait;
use nuncio_domain::profile::KeptAccount;
use nuncio_domain::{SenderId, TenantId};

use crate::error::Result;

#[async_trait]
pub trait ProfileRepo {
    /// Stores a sender's account, replacing the previous one.
    async fn put_account(&mut self, tenant: TenantId, account: &KeptAccount) -> Result<()>;

    /// Returns the stored accounts of these senders.
    async fn accounts_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<KeptAccount>>;

    /// Deletes a sender's stored account; `false` if there is none.
    async fn delete_account(&mut self, tenant: TenantId, sender: SenderId) -> Result<bool>;
}
