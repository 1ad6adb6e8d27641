//! Reading messages.

use std::collections::HashMap;

use async_trait::async_trait;
use nuncio_domain::id::{Id as _, uuid_floor};
use nuncio_domain::lifecycle::NodeId;
use nuncio_domain::message::{Message, Status};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastId, ConnectionId, ContactId, MessageId, SenderId, TenantId, Timestamp};
use nuncio_store::{DueMessage, MessageFilter, MessageRepo, Operation, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{Condition, List, all, any_of, is, of_world};
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
        let streams = self.message_streams(tenant, filter).await?;
        let list = List { columns: COLUMNS, table: "messages", id: "id", streams, filter: all(conditions(filter)) };
        let page = self.page(list, page, |row: &MessageRow| row.fixed.id).await?;
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

/// What no index tells of a message, unless it is what [`SqlTx::message_streams`] begins with.
fn conditions(filter: &MessageFilter) -> Vec<Condition> {
    let mut all: Vec<Condition> = Vec::new();
    all.extend(any_of("status", filter.status.iter().filter(|_| !failed_only(filter)).map(|s| s.number())));
    all.extend(any_of("channel", filter.channel.iter().map(|c| c.number())));
    all.extend(filter.direction.map(|direction| is("direction", direction.number())));
    all.extend(filter.to.clone().filter(|_| by_key(filter)).map(|to| is("recipient", to)));
    all.extend(filter.from.clone().map(|from| is("sent_from", from)));
    all.extend(filter.sender.map(|sender| is("sender_id", sender.uuid())));
    all.extend(filter.broadcast.map(|broadcast| part_of(broadcast)));
    all.extend(filter.metadata.iter().map(|(key, value)| dialect::json_entry("request", "metadata", key, value)));
    all
}

/// Whether the list begins with what a narrower index has than that of recipients.
const fn by_key(filter: &MessageFilter) -> bool {
    filter.idempotency_key.is_some() || filter.contact.is_some()
}

/// There is an index of failed messages, for lists that no narrower one serves.
fn failed_only(filter: &MessageFilter) -> bool {
    filter.status == [Status::Failed] && !by_key(filter) && filter.to.is_none()
}

/// As the detail of a message has it. No text in it can look like this, since it is JSON.
fn part_of(broadcast: BroadcastId) -> Condition {
    let pattern = format!("%\"b\":{{\"i\":\"{broadcast}\"%");
    Box::new(move |query| {
        query.push("detail LIKE ").push_bind(pattern.clone());
    })
}

/// Of these messages the one that was sent with an idempotency key, if there is one.
fn with_key(tenant: TenantId, key: Option<String>, stream: Condition) -> Condition {
    let Some(key) = key else { return stream };
    Box::new(move |query| {
        stream(query);
        query.push(" AND id IN (SELECT resource_id FROM idempotency_keys WHERE tenant_id = ").push_bind(tenant.0);
        query.push(" AND operation = ").push_bind(Operation::SendMessage.number()).push(" AND key = ").push_bind(key.clone()).push(")");
    })
}

impl SqlTx {
    /// The messages of a list as far as indexes tell which they are.
    async fn message_streams(&mut self, tenant: TenantId, filter: &MessageFilter) -> Result<Vec<Condition>> {
        if let Some(contact) = filter.contact {
            let key = filter.idempotency_key.clone();
            let of_contact = self.streams_of_contact(tenant, contact).await?;
            return Ok(of_contact.into_iter().map(|stream| with_key(tenant, key.clone(), stream)).collect());
        }
        let (to, failed) = (filter.to.clone().filter(|_| !by_key(filter)), failed_only(filter));
        let not_before = filter.broadcast.map(|broadcast| uuid_floor(broadcast.created_at()));
        let stream = of_world(tenant.0, move |query| {
            if let Some(to) = &to {
                query.push(" AND recipient <> '' AND recipient = ").push_bind(to.clone());
            }
            if let Some(not_before) = not_before {
                query.push(" AND id >= ").push_bind(not_before);
            }
            query.push(if failed { " AND status = 5" } else { "" });
        });
        Ok(vec![with_key(tenant, filter.idempotency_key.clone(), stream)])
    }

    /// What was sent to each address of a contact, and what came from it.
    async fn streams_of_contact(&mut self, tenant: TenantId, contact: ContactId) -> Result<Vec<Condition>> {
        let addresses: Vec<(Uuid, String)> =
            sqlx::query_as("SELECT id, identifier FROM addresses WHERE tenant_id = $1 AND contact_id = $2 ORDER BY id")
                .bind(tenant.0)
                .bind(contact.uuid())
                .fetch_all(self.conn())
                .await
                .or_end(self)?;
        let of_address = |(address, identifier): (Uuid, String)| {
            let sent = of_world(tenant.0, move |query| {
                query.push(" AND recipient <> '' AND recipient = ").push_bind(identifier.clone());
                query.push(" AND direction = 1 AND address_id = ").push_bind(address);
            });
            let received = of_world(tenant.0, move |query| {
                query.push(" AND direction = 2 AND address_id = ").push_bind(address);
            });
            [sent, received]
        };
        Ok(addresses.into_iter().flat_map(of_address).collect())
    }

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
