//! Review policies for broadcasts.

use async_trait::async_trait;
use nuncio_domain::TenantId;
use nuncio_domain::broadcast::ReviewPolicy;

use crate::error::Result;

/// Review policies, one per environment.
#[async_trait]
pub trait ReviewRepo {
    /// The policy of an environment; the default if none was set.
    async fn review_policy(&mut self, tenant: TenantId) -> Result<ReviewPolicy>;

    /// Sets or replaces the policy of an environment.
    async fn put_review_policy(&mut self, tenant: TenantId, policy: &ReviewPolicy) -> Result<()>;
}
