//! Idempotency keys.

use nuncio_domain::broadcast::Status;
use nuncio_domain::{MessageId, TenantId, Timestamp, limits};
use nuncio_store::{IdempotentOperation, Result};
use sqlx::QueryBuilder;

use super::super::{Db, SqlTx};

/// Tenant, operation and key; what the message waits for, or the status of the broadcast; when that changed.
type DueKey = (i64, i16, String, Option<i16>, Option<i16>, Option<i64>);

pub(super) async fn find_message(tx: &mut SqlTx, tenant: TenantId, operation: IdempotentOperation, key: &str) -> Result<Option<MessageId>> {
    tx.value(sql!(
        r"
            SELECT resource_id
            FROM idempotency_keys
            WHERE tenant_id = $1 AND operation = $2 AND key = $3",
        [tenant, operation.number(), key]
    ))
    .await
}

pub(super) async fn purge(tx: &mut SqlTx, now: Timestamp, limit: u32) -> Result<u64> {
    let (now, retention) = (now.millis(), limits::IDEMPOTENCY_RETENTION.as_millis() as i64);
    let due: Vec<DueKey> = tx
        .all(sql!(
            r"
            SELECT k.tenant_id, k.operation, k.key, s.wait, b.status, COALESCE(s.updated_at, b.updated_at)
            FROM idempotency_keys k
            LEFT JOIN states s ON s.tenant_id = k.tenant_id AND s.id = k.resource_id
            LEFT JOIN broadcasts b ON b.tenant_id = k.tenant_id AND b.id = k.resource_id
            WHERE k.check_at <= $1
            ORDER BY k.check_at
            LIMIT $2",
            [now, limit]
        ))
        .await?;
    // Keys of messages and broadcasts that are unfinished, or ended lately, are looked at again when their time may be over. That is always
    // after `now`, or the caller would never be done.
    let again = |(tenant, operation, key, wait, status, changed_at): DueKey| {
        let is_final = wait.is_none_or(|wait| wait == 0) && status.and_then(Status::from_number).is_none_or(Status::is_final);
        let since = if is_final { changed_at } else { Some(now) };
        // Rounded up to the minute, so that many keys share a statement.
        const MINUTE: i64 = 60_000;
        let full = |at: i64| (at + MINUTE - 1) / MINUTE * MINUTE;
        (tenant, operation, since.map(|since| since + retention).filter(|again| *again > now).map(full), key)
    };
    let mut keys: Vec<(i64, i16, Option<i64>, String)> = due.into_iter().map(again).collect();
    keys.sort_unstable();
    for keys in
        keys.chunk_by(|(tenant, operation, again, _), (other, another, later, _)| (tenant, operation, again) == (other, another, later))
    {
        let Some((tenant, operation, again, _)) = keys.first() else { continue };
        let mut query = match again {
            Some(again) => {
                let mut query = QueryBuilder::<Db>::new("UPDATE idempotency_keys SET check_at = ");
                query.push_bind(again);
                query
            }
            None => QueryBuilder::<Db>::new("DELETE FROM idempotency_keys"),
        };
        query.push(" WHERE tenant_id = ").push_bind(tenant).push(" AND operation = ").push_bind(operation);
        query.push(" AND check_at <= ").push_bind(now).push(" AND key IN (");
        let mut list = query.separated(", ");
        for (.., key) in keys {
            list.push_bind(key);
        }
        tx.run(query.push(")").build().persistent(false)).await?;
    }
    Ok(keys.len() as u64)
}
