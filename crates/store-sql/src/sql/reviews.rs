//! What operators ask of the content of broadcasts.

use async_trait::async_trait;
use nuncio_domain::TenantId;
use nuncio_domain::broadcast::ReviewPolicy;
use nuncio_store::{Result, ReviewRepo};

use super::SqlTx;
use crate::SqlxResult as _;
use crate::row::{corrupt, json};

#[async_trait]
impl ReviewRepo for SqlTx {
    async fn review_policy(&mut self, tenant: TenantId) -> Result<ReviewPolicy> {
        let row: Option<(String,)> = sqlx::query_as("SELECT policy FROM review_policies WHERE tenant_id = $1")
            .bind(tenant.0)
            .fetch_optional(self.conn())
            .await
            .or_end(self)?;
        let Some((policy,)) = row else { return Ok(ReviewPolicy::default()) };
        serde_json::from_str(&policy).map_err(|e| corrupt("review_policies", e))
    }

    async fn put_review_policy(&mut self, tenant: TenantId, policy: &ReviewPolicy) -> Result<()> {
        sqlx::query(
            "INSERT INTO review_policies (tenant_id, policy) VALUES ($1, $2)
             ON CONFLICT (tenant_id) DO UPDATE SET policy = excluded.policy",
        )
        .bind(tenant.0)
        .bind(json(policy)?)
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }
}
