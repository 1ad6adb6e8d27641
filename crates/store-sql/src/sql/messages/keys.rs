//! Idempotency keys of messages.

use nuncio_domain::id::Id as _;
use nuncio_domain::{MessageId, TenantId, Timestamp, limits};
use nuncio_store::{IdempotentOperation, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::super::{Db, SqlTx};

pub(super) async fn find_message(tx: &mut SqlTx, tenant: TenantId, operation: IdempotentOperation, key: &str) -> Result<Option<MessageId>> {
    let row: Option<(Uuid,)> = tx
        .optional(sql!(
            r"
            SELECT resource_id
            FROM idempotency_keys
            WHERE tenant_id = $1 AND operation = $2 AND key = $3",
            [tenant.0, operation.number(), key]
        ))
        .await?;
    Ok(row.map(|(id,)| MessageId::from_uuid(id)))
}

pub(super) async fn purge(tx: &mut SqlTx, now: Timestamp, limit: u32) -> Result<u64> {
    let retention = limits::IDEMPOTENCY_RETENTION.as_millis() as i64;
    // Keys of messages that are unfinished, or ended lately, are looked at again when their time may be over.
    let kept: Vec<(i64, i16, String, i64)> = tx
        .all(sql!(
            r"
            SELECT k.tenant_id, k.operation, k.key, CASE WHEN s.wait = 0 THEN s.updated_at ELSE $1 END
            FROM idempotency_keys k
            JOIN states s ON s.tenant_id = k.tenant_id AND s.id = k.resource_id
            WHERE k.check_at <= $1
              AND (s.wait <> 0 OR s.updated_at + $3 > $1)
            LIMIT $2",
            [now.millis(), i64::from(limit), retention]
        ))
        .await?;
    for (tenant, operation, key, since) in kept {
        tx.run(sql!(
            r"
                UPDATE idempotency_keys
                SET check_at = $4
                WHERE tenant_id = $1 AND operation = $2 AND key = $3",
            [tenant, operation, key, since + retention]
        ))
        .await?;
    }
    let mut over: Vec<(i64, i16, String)> = tx
        .all(sql!(
            r"
            SELECT k.tenant_id, k.operation, k.key
            FROM idempotency_keys k
            WHERE k.check_at <= $1
              AND NOT EXISTS (
                  SELECT 1
                  FROM states s
                  WHERE s.tenant_id = k.tenant_id
                    AND s.id = k.resource_id
                    AND (s.wait <> 0 OR s.updated_at + $3 > $1)
              )
            LIMIT $2",
            [now.millis(), i64::from(limit), retention]
        ))
        .await?;
    over.sort_unstable();
    for keys in over.chunk_by(|(tenant, operation, _), (other, another, _)| (tenant, operation) == (other, another)) {
        let Some((tenant, operation, _)) = keys.first() else { continue };
        let mut query = QueryBuilder::<Db>::new("DELETE FROM idempotency_keys WHERE tenant_id = ");
        query.push_bind(tenant).push(" AND operation = ").push_bind(operation).push(" AND check_at <= ").push_bind(now.millis());
        query.push(" AND key IN (");
        let mut list = query.separated(", ");
        for (.., key) in keys {
            list.push_bind(key);
        }
        tx.run(query.push(")").build().persistent(false)).await?;
    }
    Ok(over.len() as u64)
}
