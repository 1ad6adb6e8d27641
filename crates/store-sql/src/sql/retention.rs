//! Deleting what is older than it has to be kept.

use async_trait::async_trait;
use nuncio_domain::id::{Id as _, uuid_floor};
use nuncio_domain::{ConnectionId, MessageId, TenantId, Timestamp};
use nuncio_store::{EventRepo as _, LogPayload, ProviderIds, QuotaRepo as _, ReferencePlace, Result, RetentionRepo, TableSize};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};
use crate::event_log;

/// What is kept of a message beside its row, with the column that names it.
const BESIDE: [(&str, &str); 4] = [("spool_chunks", "message_id"), ("receipts", "message_id"), ("flagged", "id"), ("states", "id")];

/// How a table of provider ids is walked.
struct Walk {
    /// Returns the next ids, with their messages.
    look: &'static str,
    /// Deletes an id if its message is gone.
    delete: &'static str,
}

macro_rules! walk {
    ($table:literal, $reference:literal) => {
        Walk {
            look: concat!(
                "SELECT connection_id, ",
                $reference,
                ", message_id FROM ",
                $table,
                " WHERE tenant_id = $1 AND (connection_id, ",
                $reference,
                ") > ($2, $3) ORDER BY connection_id, ",
                $reference,
                " LIMIT $4"
            ),
            delete: concat!(
                "DELETE FROM ",
                $table,
                " WHERE tenant_id = $1 AND connection_id = $2 AND ",
                $reference,
                " = $3 AND message_id = $4 AND NOT EXISTS (SELECT 1 FROM messages WHERE tenant_id = $1 AND id = $4)"
            ),
        }
    };
}

const REFERENCES: Walk = walk!("provider_refs", "reference");
const INBOUND_KEYS: Walk = walk!("inbound_keys", "provider_key");

#[async_trait]
impl RetentionRepo for SqlTx {
    async fn forget_messages(
        &mut self,
        tenant: TenantId,
        after: Option<MessageId>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<MessageId>> {
        let after = after.map_or(Uuid::nil(), |id| id.uuid());
        // The number of rows that are read is limited, not that of those that are found: any number may have to stay.
        let rows: Vec<(Uuid, i16, i64)> = self
            .all(sql!(
                r"
                SELECT id, wait, updated_at
                FROM states
                WHERE tenant_id = $1 AND id > $2 AND id < $3
                ORDER BY id
                LIMIT $4",
                [tenant, after, uuid_floor(before), limit]
            ))
            .await?;
        let is_over = |wait: i16, updated_at: i64| wait == 0 && updated_at < before.millis();
        let ids: Vec<Uuid> = rows.iter().filter(|(_, wait, updated_at)| is_over(*wait, *updated_at)).map(|(id, ..)| *id).collect();
        if !ids.is_empty() {
            self.delete_messages(tenant, &ids).await?;
        }
        let last = rows.last().filter(|_| rows.len() >= limit as usize);
        Ok(last.map(|(id, ..)| MessageId::from_uuid(*id)))
    }

    async fn forget_log(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64> {
        let end = self.log_place(tenant, before).await?.commit;
        let rows: Vec<(i64, Vec<u8>)> = self
            .all(sql!(
                r"
                SELECT position, entries
                FROM log
                WHERE tenant_id = $1
                  AND position < $2
                  AND position < COALESCE((SELECT position FROM webhook_cursors WHERE tenant_id = $1), $2)
                ORDER BY position
                LIMIT $3",
                [tenant, end, limit]
            ))
            .await?;
        let Some((last, _)) = rows.last() else { return Ok(0) };
        self.run(sql!("DELETE FROM log WHERE tenant_id = $1 AND position <= $2", [tenant, last])).await?;
        for (position, entries) in &rows {
            // Messages refer to the log by themselves.
            for entry in event_log::read(*position, entries)?.into_iter().filter(|entry| matches!(entry.payload, LogPayload::Other(..))) {
                self.run(sql!(
                    "DELETE FROM resource_log WHERE tenant_id = $1 AND resource_id = $2 AND sequence = $3",
                    [tenant, entry.resource, entry.sequence]
                ))
                .await?;
            }
        }
        Ok(rows.len() as u64)
    }

    async fn forget_deliveries(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64> {
        const OLD: &str = r"
            DELETE FROM deliveries
            WHERE tenant_id = $1
              AND id IN (
                  SELECT id
                  FROM deliveries
                  WHERE tenant_id = $1 AND id < $2 AND due_at IS NULL
                  ORDER BY id
                  LIMIT $3
              )";
        self.delete_old(OLD, tenant, before, limit).await
    }

    async fn forget_strays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64> {
        const OLD: &str = r"
            DELETE FROM stray_receipts
            WHERE tenant_id = $1
              AND id IN (
                  SELECT id
                  FROM stray_receipts
                  WHERE tenant_id = $1 AND id < $2 AND due_at IS NULL
                  ORDER BY id
                  LIMIT $3
              )";
        self.delete_old(OLD, tenant, before, limit).await
    }

    async fn forget_provider_ids(
        &mut self,
        ids: ProviderIds,
        tenant: TenantId,
        after: Option<ReferencePlace>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<ReferencePlace>> {
        let walk = match ids {
            ProviderIds::Outbound => REFERENCES,
            ProviderIds::Inbound => INBOUND_KEYS,
        };
        let after = after.unwrap_or(ReferencePlace { connection: ConnectionId::from_uuid(Uuid::nil()), reference: String::new() });
        let rows: Vec<(Uuid, String, Uuid)> = self.all(sql!(walk.look, [tenant, after.connection, after.reference, limit])).await?;
        let old = uuid_floor(before);
        for (connection, reference, message) in rows.iter().filter(|(.., message)| *message < old) {
            self.run(sql!(walk.delete, [tenant, connection, reference, message])).await?;
        }
        let last = rows.into_iter().next_back();
        Ok(last.map(|(connection, reference, _)| ReferencePlace { connection: ConnectionId::from_uuid(connection), reference }))
    }

    async fn table_sizes(&mut self) -> Result<Vec<TableSize>> {
        let rows = self.all(sql!(dialect::TABLE_SIZES)).await?;
        Ok(rows.into_iter().map(|(table, bytes)| TableSize { table, bytes }).collect())
    }
}

impl SqlTx {
    async fn delete_messages(&mut self, tenant: TenantId, ids: &[Uuid]) -> Result<()> {
        if self.find_storage(tenant).await?.is_some() {
            self.lock_messages(tenant, ids).await?;
            let freed = self.stored_bytes(tenant, ids).await?;
            self.count_stored(tenant.0, -freed).await?;
        }
        self.delete_all("messages", "id", tenant, ids).await?;
        for (table, column) in BESIDE {
            self.delete_all(table, column, tenant, ids).await?;
        }
        Ok(())
    }

    async fn delete_all(&mut self, table: &'static str, column: &'static str, tenant: TenantId, ids: &[Uuid]) -> Result<()> {
        let mut query = QueryBuilder::<Db>::new("DELETE FROM ");
        query.push(table).push(" WHERE tenant_id = ").push_bind(tenant.0);
        // The key of this table begins with the kind.
        query.push(if table == "flagged" { " AND kind IN (1, 2)" } else { "" });
        dialect::push_in(&mut query, column, ids.iter().copied());
        self.write(query.build()).await
    }

    async fn delete_old(&mut self, statement: &'static str, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64> {
        self.run(sql!(statement, [tenant, uuid_floor(before), limit])).await
    }
}
