//! What operators ask of the content of broadcasts.

use async_trait::async_trait;
use nuncio_domain::TenantId;
use nuncio_domain::broadcast::ReviewPolicy;
use nuncio_store::{Result, ReviewRepo};

use super::SqlTx;
use crate::row::{corrupt, json};

#[async_trait]
impl ReviewRepo for SqlTx {
    async fn review_policy(&mut self, tenant: TenantId) -> Result<ReviewPolicy> {
        let policy: Option<String> = self.value(sql!("SELECT policy FROM review_policies WHERE tenant_id = $1", [tenant])).await?;
        let Some(policy) = policy else { return Ok(ReviewPolicy::default()) };
        serde_json::from_str(&policy).map_err(|e| corrupt("review_policies", e))
    }

    async fn put_review_policy(&mut self, tenant: TenantId, policy: &ReviewPolicy) -> Result<()> {
        self.write(sql!(
            "INSERT INTO review_policies (tenant_id, policy) VALUES ($1, $2)
             ON CONFLICT (tenant_id) DO UPDATE SET policy = excluded.policy",
            [tenant, json(policy)?]
        ))
        .await
    }
}
