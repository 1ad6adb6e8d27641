//! Chunks of large requests.

use async_trait::async_trait;
use nuncio_domain::{MessageId, TenantId, Timestamp};
use nuncio_store::{Result, SpoolRepo};
use uuid::Uuid;

use super::super::SqlTx;
use crate::message_batch::unspool;
use crate::row::FixedRow;

#[async_trait]
impl SpoolRepo for SqlTx {
    async fn insert_spool_chunk(&mut self, tenant: TenantId, id: MessageId, index: i32, data: &[u8], now: Timestamp) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO spool_chunks (tenant_id, message_id, chunk, created_at, data)
                VALUES ($1, $2, $3, $4, $5)",
            [tenant, id, index, now, data]
        ))
        .await
    }

    async fn delete_spool(&mut self, tenant: TenantId, id: MessageId) -> Result<()> {
        self.write(sql!(
            r"
                DELETE FROM spool_chunks
                WHERE tenant_id = $1
                  AND message_id = $2
                  AND NOT EXISTS (SELECT 1 FROM messages WHERE tenant_id = $1 AND id = $2)",
            [tenant, id]
        ))
        .await
    }

    async fn purge_orphaned_spool(&mut self, since: Timestamp, before: Timestamp, limit: u32) -> Result<u64> {
        let rows: Vec<(i64, Uuid, i32)> = self
            .all(sql!(
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
                [since, before, limit]
            ))
            .await?;
        for (tenant, message, chunk) in &rows {
            self.run(sql!("DELETE FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 AND chunk = $3", [tenant, message, chunk]))
                .await?;
        }
        Ok(rows.len() as u64)
    }
}

// This sweep and the next find their rows first, for all tenants, and then delete them by key: a cluster takes no limit in a statement
// that writes.
/// Adds the chunks of a large request to its row.
pub(super) async fn load(tx: &mut SqlTx, fixed: &mut FixedRow) -> Result<()> {
    if fixed.spooled == 0 {
        return Ok(());
    }
    let chunks = tx
        .column(sql!("SELECT data FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 ORDER BY chunk", [fixed.tenant_id, fixed.id]))
        .await?;
    unspool(fixed, chunks)
}
