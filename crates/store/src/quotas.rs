//! How many bytes of messages a world keeps, where that is limited.

use async_trait::async_trait;
use nuncio_domain::TenantId;

use crate::error::Result;

/// What a world with a quota keeps: the stored requests of its messages, spooled ones included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Storage {
    /// The quota.
    pub max_bytes: i64,
    /// What is kept now.
    pub stored_bytes: i64,
}

/// Quotas. New and erased messages count themselves.
#[async_trait]
pub trait QuotaRepo {
    /// Sets the quota of a world, or removes it. What is kept is counted when a quota is set where there was none, which reads all of
    /// the world's messages.
    async fn limit_storage(&mut self, tenant: TenantId, max_bytes: Option<i64>) -> Result<()>;

    /// The quota of a world, if it has one.
    async fn find_storage(&mut self, tenant: TenantId) -> Result<Option<Storage>>;
}
