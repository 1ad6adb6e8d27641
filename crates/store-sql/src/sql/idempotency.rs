//! Idempotency keys off the hot path.

use async_trait::async_trait;
use nuncio_domain::{TenantId, Timestamp};
use nuncio_store::{Idempotency, IdempotencyRepo, Repeat, Result, StoreError};
use uuid::Uuid;

use super::SqlTx;

#[async_trait]
impl IdempotencyRepo for SqlTx {
    async fn claim_idempotency_key(
        &mut self,
        tenant: TenantId,
        idempotency: &Idempotency,
        resource: Uuid,
        purge_after: Timestamp,
    ) -> Result<Option<Repeat>> {
        let Idempotency { operation, key, fingerprint } = idempotency;
        let won = self
            .changes(sql!(
                r"
                INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (tenant_id, operation, key) DO NOTHING",
                [tenant, operation.number(), key, fingerprint, resource, purge_after]
            ))
            .await?;
        if won {
            return Ok(None);
        }
        let row: Option<(Uuid, Vec<u8>)> = self
            .optional(sql!(
                r"
                SELECT resource_id, fingerprint
                FROM idempotency_keys
                WHERE tenant_id = $1 AND operation = $2 AND key = $3",
                [tenant, operation.number(), key]
            ))
            .await?;
        let (original, used_for) = row.ok_or_else(|| StoreError::Busy("the idempotency key was purged meanwhile".to_owned()))?;
        Ok(Some(Repeat { original, same_request: used_for == fingerprint }))
    }
}
