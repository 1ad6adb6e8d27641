//! Limits the stored bytes of an environment.

use async_trait::async_trait;
use nuncio_domain::TenantId;

use crate::error::Result;

/// Quota and usage of an environment. Usage is the size of the stored requests of its messages, spooled ones included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Storage {
    /// Quota in bytes.
    pub max_bytes: i64,
    /// Bytes stored now; can exceed a quota that was lowered.
    pub stored_bytes: i64,
}

/// Storage quotas. Inserting and deleting messages updates the usage.
#[async_trait]
pub trait QuotaRepo {
    /// Sets the quota of an environment in bytes; `None` removes it. The first quota of an environment counts its usage, which reads all
    /// its messages.
    async fn limit_storage(&mut self, tenant: TenantId, max_bytes: Option<i64>) -> Result<()>;

    /// Quota and usage of an environment; `None` without a quota.
    async fn find_storage(&mut self, tenant: TenantId) -> Result<Option<Storage>>;
}
