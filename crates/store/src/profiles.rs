//! Business accounts: what providers said of them last.

use async_trait::async_trait;
use nuncio_domain::profile::KeptAccount;
use nuncio_domain::{SenderId, TenantId};

use crate::error::Result;

/// Business accounts.
#[async_trait]
pub trait ProfileRepo {
    /// Writes what is kept of a sender's account, in place of what was.
    async fn put_account(&mut self, tenant: TenantId, account: &KeptAccount) -> Result<()>;

    /// What is kept of these senders' accounts.
    async fn accounts_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<KeptAccount>>;

    /// Forgets a sender's account; `false` when nothing was kept.
    async fn delete_account(&mut self, tenant: TenantId, sender: SenderId) -> Result<bool>;
}
