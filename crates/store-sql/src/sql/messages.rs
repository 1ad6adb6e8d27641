//! Reading messages.

use std::collections::HashMap;

use async_trait::async_trait;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::lifecycle::NodeId;
use nuncio_domain::message::Message;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{ConnectionId, ContactId, MessageId, SenderId, TenantId, Timestamp};
use nuncio_store::{DueMessage, MessageFilter, MessageRepo, Operation, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{newest_first, push_any};
use super::{Db, SqlTx, dialect};
use crate::SqlxResult as _;
use crate::hot::unspool;
use crate::row::{DueRow, MessageRow, due_columns};

/// Every column of a [`MessageRow`].
pub(super) const COLUMNS: &str = "tenant_id, id, direction, message_type, sender_id, address_id, recipient, sent_from, idempotency_key, spooled, request, \
     status, wait, held, due_at, owner, fence, version, expires_at, updated_at, channel, connection_id, provider, detail";

const LOOKUP: &str = "SELECT tenant_id, id, direction, message_type, sender_id, address_id, recipient, sent_from, idempotency_key, spooled, request, \
     status, wait, held, due_at, owner, fence, version, expires_at, updated_at, channel, connection_id, provider, detail \
     FROM messages WHERE tenant_id = $1 AND id = $2";

#[derive(sqlx::FromRow)]
struct AwaitingRow {
    #[sqlx(flatten)]
    due: DueRow,
    provider: String,
}

#[async_trait]
impl MessageRepo for SqlTx {
    async fn lookup_message(&mut self, tenant: TenantId, id: MessageId) -> Result<Option<Message>> {
        let row: Option<MessageRow> =
            sqlx::query_as(LOOKUP).bind(tenant.0).bind(id.uuid()).fetch_optional(self.conn()).await.or_end(self)?;
        match row {
            Some(row) => self.whole(row).await.map(Some),
            None => Ok(None),
        }
    }

    async fn lookup_messages(&mut self, tenant: TenantId, ids: &[MessageId]) -> Result<Vec<Message>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM messages WHERE tenant_id = ").push_bind(tenant.0);
        dialect::push_in(&mut query, "id", ids.iter().map(|id| id.uuid()));
        let rows: Vec<MessageRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            items.push(self.outline(row).await?);
        }
        Ok(items)
    }

    async fn list_messages(&mut self, tenant: TenantId, filter: &MessageFilter, page: PageRequest) -> Result<Page<Message>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM messages WHERE tenant_id = ").push_bind(tenant.0);
        if let Some(key) = &filter.idempotency_key {
            query.push(" AND id IN (SELECT resource_id FROM idempotency_keys WHERE tenant_id = ").push_bind(tenant.0);
            query.push(" AND operation = ").push_bind(Operation::SendMessage.number()).push(" AND key = ").push_bind(key).push(")");
        }
        if let Some(to) = &filter.to {
            query.push(" AND recipient <> '' AND recipient = ").push_bind(to);
        }
        // Identifiers begin with their time: a span of time is a span of the key.
        if let Some(since) = filter.since {
            query.push(" AND id >= ").push_bind(uuid_floor(since));
        }
        if let Some(until) = filter.until {
            query.push(" AND id < ").push_bind(uuid_floor(until));
        }
        if let Some(direction) = filter.direction {
            query.push(" AND direction = ").push_bind(direction.number());
        }
        push_any(&mut query, " AND status IN (", filter.status.iter().map(|s| s.number()));
        push_any(&mut query, " AND channel IN (", filter.channel.iter().map(|c| c.number()));
        for (key, value) in &filter.metadata {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            dialect::push_metadata(&mut query, key, &text);
        }
        newest_first(&mut query, page);
        let rows: Vec<MessageRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        let page = Page::from_rows(rows, page.limit, |row| row.fixed.id);
        let mut items = Vec::with_capacity(page.items.len());
        for row in page.items {
            items.push(self.outline(row).await?);
        }
        Ok(Page { items, next: page.next })
    }

    async fn find_message_by_idempotency_key(&mut self, tenant: TenantId, operation: Operation, key: &str) -> Result<Option<MessageId>> {
        let row: Option<(Uuid,)> =
            sqlx::query_as("SELECT resource_id FROM idempotency_keys WHERE tenant_id = $1 AND operation = $2 AND key = $3")
                .bind(tenant.0)
                .bind(operation.number())
                .bind(key)
                .fetch_optional(self.conn())
                .await
                .or_end(self)?;
        Ok(row.map(|(id,)| MessageId::from_uuid(id)))
    }

    async fn contacts_of_messages(&mut self, messages: &[Message]) -> Result<Vec<Option<ContactId>>> {
        let Some(first) = messages.first() else { return Ok(Vec::new()) };
        let mut query = QueryBuilder::<Db>::new("SELECT id, contact_id FROM addresses WHERE tenant_id = ");
        query.push_bind(first.tenant.0);
        dialect::push_in(&mut query, "id", messages.iter().map(|message| message.address.uuid()));
        let rows: Vec<(Uuid, Uuid)> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        let contacts: HashMap<Uuid, Uuid> = rows.into_iter().collect();
        Ok(messages.iter().map(|m| contacts.get(&m.address.uuid()).map(|id| ContactId::from_uuid(*id))).collect())
    }

    async fn due_messages(&mut self, shards: &[i16], skip: &[ConnectionId], now: Timestamp, limit: u32) -> Result<Vec<DueMessage>> {
        let skip: Vec<Uuid> = skip.iter().map(|c| c.uuid()).collect();
        let rows: Vec<DueRow> = dialect::due(self.conn(), shards, &skip, now.millis(), i64::from(limit)).await.or_end(self)?;
        Ok(rows.into_iter().map(DueRow::decode).collect())
    }

    async fn messages_owned_by(&mut self, node: NodeId, limit: u32) -> Result<Vec<DueMessage>> {
        let rows: Vec<DueRow> = sqlx::query_as(concat!("SELECT ", due_columns!(), " FROM messages WHERE owner = $1 LIMIT $2"))
            .bind(node.0)
            .bind(i64::from(limit))
            .fetch_all(self.conn())
            .await
            .or_end(self)?;
        Ok(rows.into_iter().map(DueRow::decode).collect())
    }

    async fn owners(&mut self) -> Result<Vec<NodeId>> {
        let rows: Vec<(i64,)> =
            sqlx::query_as("SELECT DISTINCT owner FROM messages WHERE owner IS NOT NULL").fetch_all(self.conn()).await.or_end(self)?;
        Ok(rows.into_iter().map(|(id,)| NodeId(id)).collect())
    }

    async fn waiting_messages(&mut self, shard: i16, from: Timestamp, limit: u32) -> Result<Vec<DueMessage>> {
        let rows: Vec<DueRow> = sqlx::query_as(concat!(
            "SELECT ",
            due_columns!(),
            " FROM messages WHERE shard = $1 AND due_at >= $2 AND wait = 1 ORDER BY due_at LIMIT $3"
        ))
        .bind(shard)
        .bind(from.millis())
        .bind(i64::from(limit))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        Ok(rows.into_iter().map(DueRow::decode).collect())
    }

    async fn messages_awaiting_receipts(
        &mut self,
        shard: i16,
        before: (Timestamp, MessageId),
        limit: u32,
    ) -> Result<Vec<(DueMessage, String)>> {
        let rows: Vec<AwaitingRow> = sqlx::query_as(concat!(
            "SELECT ",
            due_columns!(),
            ", provider FROM messages WHERE wait = 3 AND shard = $1 AND due_at <= $2 AND (due_at < $2 OR id < $3) \
             ORDER BY due_at DESC, id DESC LIMIT $4"
        ))
        .bind(shard)
        .bind(before.0.millis())
        .bind(before.1.uuid())
        .bind(i64::from(limit))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        Ok(rows.into_iter().map(|row| (row.due.decode(), row.provider)).collect())
    }

    async fn held_messages(&mut self, limit: u32) -> Result<Vec<DueMessage>> {
        let rows: Vec<DueRow> =
            sqlx::query_as(concat!("SELECT ", due_columns!(), " FROM messages WHERE wait = 4 ORDER BY tenant_id, id LIMIT $1"))
                .bind(i64::from(limit))
                .fetch_all(self.conn())
                .await
                .store()?;
        Ok(rows.into_iter().map(DueRow::decode).collect())
    }

    async fn has_queued_messages(&mut self, tenant: TenantId, sender: SenderId, since: Option<Timestamp>) -> Result<bool> {
        let found: (i64,) = match since {
            // A span of the key.
            Some(since) => {
                sqlx::query_as(
                    "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT 1 FROM messages WHERE tenant_id = $1 AND id >= $3 AND sender_id = $2 \
                     AND wait IN (1, 2, 4) LIMIT 1) q",
                )
                .bind(tenant.0)
                .bind(sender.uuid())
                .bind(uuid_floor(since))
                .fetch_one(self.conn())
                .await
            }
            // By the two partial indexes of what is unfinished; the plus keeps SQLite from reading the whole world by its key instead.
            None => sqlx::query_as(
                "SELECT CAST(COUNT(*) AS BIGINT) FROM (SELECT 1 FROM messages WHERE shard >= 0 AND due_at IS NOT NULL AND +tenant_id = $1 \
                     AND sender_id = $2 AND wait IN (1, 4) UNION ALL SELECT 1 FROM messages WHERE owner IS NOT NULL AND +tenant_id = $1 \
                     AND sender_id = $2 LIMIT 1) q",
            )
            .bind(tenant.0)
            .bind(sender.uuid())
            .fetch_one(self.conn())
            .await,
        }
        .or_end(self)?;
        Ok(found.0 > 0)
    }

    async fn count_unguarded_messages(&mut self) -> Result<i64> {
        let (count,): (i64,) = sqlx::query_as(
            "SELECT CAST(COUNT(*) AS BIGINT) FROM messages m WHERE NOT ( \
               (wait = 0 AND due_at IS NULL AND owner IS NULL AND status IN (4, 5, 6, 7, 8, 9)) \
               OR (wait IN (1, 3) AND due_at IS NOT NULL AND owner IS NULL) \
               OR (wait = 4 AND due_at IS NOT NULL AND owner IS NULL AND held <> 0) \
               OR (wait = 2 AND due_at IS NULL AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = m.owner AND n.dead = 0)))",
        )
        .fetch_one(self.conn())
        .await
        .or_end(self)?;
        Ok(count)
    }

    async fn insert_spool_chunk(&mut self, tenant: TenantId, id: MessageId, index: i32, data: &[u8], now: Timestamp) -> Result<()> {
        sqlx::query("INSERT INTO spool_chunks (tenant_id, message_id, chunk, created_at, data) VALUES ($1, $2, $3, $4, $5)")
            .bind(tenant.0)
            .bind(id.uuid())
            .bind(index)
            .bind(now.millis())
            .bind(data)
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(())
    }

    async fn delete_spool(&mut self, tenant: TenantId, id: MessageId) -> Result<()> {
        sqlx::query(
            "DELETE FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 \
             AND NOT EXISTS (SELECT 1 FROM messages WHERE tenant_id = $1 AND id = $2)",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn purge_orphaned_spool(&mut self, since: Timestamp, before: Timestamp, limit: u32) -> Result<u64> {
        let done = sqlx::query(
            "DELETE FROM spool_chunks WHERE (tenant_id, message_id, chunk) IN (SELECT s.tenant_id, s.message_id, s.chunk FROM spool_chunks s \
             WHERE s.created_at >= $1 AND s.created_at < $2 AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.tenant_id = s.tenant_id AND m.id = s.message_id) LIMIT $3)",
        )
        .bind(since.millis())
        .bind(before.millis())
        .bind(i64::from(limit))
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(done.rows_affected())
    }

    async fn purge_idempotency_keys(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        let done = sqlx::query(
            "DELETE FROM idempotency_keys WHERE (tenant_id, operation, key) IN \
             (SELECT tenant_id, operation, key FROM idempotency_keys WHERE purge_after IS NOT NULL AND purge_after <= $1 LIMIT $2)",
        )
        .bind(now.millis())
        .bind(i64::from(limit))
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(done.rows_affected())
    }
}

impl SqlTx {
    /// What the row says without its chunks. Rows of versions before kept nothing but the metadata there.
    async fn outline(&mut self, row: MessageRow) -> Result<Message> {
        let mut message = match row.fixed.spooled {
            0 => row.decode()?,
            _ => match row.clone().decode() {
                Ok(message) => message,
                Err(_) => self.whole(row).await?,
            },
        };
        message.request.forget_bulk();
        Ok(message)
    }

    async fn whole(&mut self, mut row: MessageRow) -> Result<Message> {
        if row.fixed.spooled > 0 {
            let chunks: Vec<(Vec<u8>,)> =
                sqlx::query_as("SELECT data FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 ORDER BY chunk")
                    .bind(row.fixed.tenant_id)
                    .bind(row.fixed.id)
                    .fetch_all(self.conn())
                    .await
                    .or_end(self)?;
            unspool(&mut row.fixed, chunks.into_iter().map(|(data,)| data).collect())?;
        }
        row.decode()
    }
}

/// The smallest identifier of a moment.
fn uuid_floor(at: Timestamp) -> Uuid {
    let lowest = uuid_v7(at, [0; 10]).as_u128();
    Uuid::from_u128(lowest & !((1 << 80) - 1))
}
