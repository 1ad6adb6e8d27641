//! Chunks of large requests.

use nuncio_domain::id::Id as _;
use nuncio_domain::{MessageId, TenantId, Timestamp};
use nuncio_store::Result;
use uuid::Uuid;

use super::super::SqlTx;
use crate::SqlxResult as _;
use crate::message_batch::unspool;
use crate::row::FixedRow;

pub(super) async fn insert_chunk(tx: &mut SqlTx, tenant: TenantId, id: MessageId, index: i32, data: &[u8], now: Timestamp) -> Result<()> {
    sqlx::query(
        r"
            INSERT INTO spool_chunks (tenant_id, message_id, chunk, created_at, data)
            VALUES ($1, $2, $3, $4, $5)",
    )
    .bind(tenant.0)
    .bind(id.uuid())
    .bind(index)
    .bind(now.millis())
    .bind(data)
    .execute(tx.conn())
    .await
    .or_end(tx)?;
    Ok(())
}

pub(super) async fn delete(tx: &mut SqlTx, tenant: TenantId, id: MessageId) -> Result<()> {
    sqlx::query(
        r"
            DELETE FROM spool_chunks
            WHERE tenant_id = $1
              AND message_id = $2
              AND NOT EXISTS (SELECT 1 FROM messages WHERE tenant_id = $1 AND id = $2)",
    )
    .bind(tenant.0)
    .bind(id.uuid())
    .execute(tx.conn())
    .await
    .or_end(tx)?;
    Ok(())
}

// This sweep and the next find their rows first, for all tenants, and then delete them by key: a cluster takes no limit in a statement
// that writes.
pub(super) async fn purge_orphans(tx: &mut SqlTx, since: Timestamp, before: Timestamp, limit: u32) -> Result<u64> {
    let rows: Vec<(i64, Uuid, i32)> = sqlx::query_as(
        r"
            SELECT s.tenant_id, s.message_id, s.chunk
            FROM spool_chunks s
            WHERE s.created_at >= $1
              AND s.created_at < $2
              AND NOT EXISTS (
                  SELECT 1
                  FROM messages m
                  WHERE m.tenant_id = s.tenant_id AND m.id = s.message_id
              )
            LIMIT $3",
    )
    .bind(since.millis())
    .bind(before.millis())
    .bind(i64::from(limit))
    .fetch_all(tx.conn())
    .await
    .or_end(tx)?;
    for (tenant, message, chunk) in &rows {
        sqlx::query("DELETE FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 AND chunk = $3")
            .bind(tenant)
            .bind(message)
            .bind(chunk)
            .execute(tx.conn())
            .await
            .or_end(tx)?;
    }
    Ok(rows.len() as u64)
}

/// Adds the chunks of a large request to its row.
pub(super) async fn load(tx: &mut SqlTx, fixed: &mut FixedRow) -> Result<()> {
    if fixed.spooled == 0 {
        return Ok(());
    }
    let chunks: Vec<(Vec<u8>,)> = sqlx::query_as("SELECT data FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 ORDER BY chunk")
        .bind(fixed.tenant_id)
        .bind(fixed.id)
        .fetch_all(tx.conn())
        .await
        .or_end(tx)?;
    unspool(fixed, chunks.into_iter().map(|(data,)| data).collect())
}
