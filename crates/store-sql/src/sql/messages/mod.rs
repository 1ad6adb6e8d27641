//! Messages.

mod agenda;
mod audit;
mod keys;
mod list;
mod spool;

use std::collections::HashMap;

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Message, NodeId};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{ConnectionId, ContactId, MessageId, SenderId, TenantId, Timestamp};
use nuncio_store::{AgendaPlace, AwaitingReceipts, DueMessage, IdempotentOperation, MessageFilter, MessageRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};
use crate::row::{DueRow, MessageRow, select_due};

/// Every column of a [`MessageRow`].
const COLUMNS: &str = r"
    m.tenant_id, m.id, m.direction, m.message_type, m.sender_id, m.address_id, m.recipient, m.sent_from,
    m.idempotency_key, m.spooled, m.request,
    s.status, s.wait, s.held, s.due_at, s.owner, s.fence, s.version, s.expires_at, s.updated_at, s.channel,
    s.connection_id, s.provider, s.detail";

const STATES: &str = " JOIN states s ON s.tenant_id = m.tenant_id AND s.id = m.id";

#[async_trait]
impl MessageRepo for SqlTx {
    async fn lookup_message(&mut self, tenant: TenantId, id: MessageId) -> Result<Option<Message>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM messages m").push(STATES).push(" WHERE m.tenant_id = ").push_bind(tenant.0);
        let row: Option<MessageRow> = self.optional(query.push(" AND m.id = ").push_bind(id.uuid()).build()).await?;
        let Some(mut row) = row else { return Ok(None) };
        spool::load(self, &mut row.fixed).await?;
        row.decode().map(Some)
    }

    async fn lookup_messages(&mut self, tenant: TenantId, ids: &[MessageId]) -> Result<Vec<Message>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM messages m").push(STATES).push(" WHERE m.tenant_id = ").push_bind(tenant.0);
        dialect::push_in(&mut query, "m.id", ids.iter().map(|id| id.uuid()));
        let rows: Vec<MessageRow> = self.all(query.build()).await?;
        rows.into_iter().map(outline).collect()
    }

    async fn list_messages(&mut self, tenant: TenantId, filter: &MessageFilter, page: PageRequest) -> Result<Page<Message>> {
        list::list_messages(self, tenant, filter, page).await
    }

    async fn find_message_by_idempotency_key(
        &mut self,
        tenant: TenantId,
        operation: IdempotentOperation,
        key: &str,
    ) -> Result<Option<MessageId>> {
        keys::find_message(self, tenant, operation, key).await
    }

    async fn contacts_of_messages(&mut self, messages: &[Message]) -> Result<Vec<Option<ContactId>>> {
        let Some(first) = messages.first() else { return Ok(Vec::new()) };
        let mut query = dialect::contacts_of(first.tenant.0, messages.iter().map(|message| message.address.uuid()));
        let rows: Vec<(Uuid, Uuid)> = self.all(query.build()).await?;
        let contacts: HashMap<Uuid, Uuid> = rows.into_iter().collect();
        Ok(messages.iter().map(|m| contacts.get(&m.address.uuid()).map(|id| ContactId::from_uuid(*id))).collect())
    }

    async fn due_messages(&mut self, shards: &[i16], skip: &[ConnectionId], now: Timestamp, limit: u32) -> Result<Vec<DueMessage>> {
        agenda::due_messages(self, shards, skip, now, limit).await
    }

    async fn overdue_messages(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<Vec<DueMessage>> {
        agenda::overdue_messages(self, tenant, before, limit).await
    }

    async fn messages_owned_by(&mut self, node: NodeId, limit: u32) -> Result<Vec<DueMessage>> {
        agenda::messages_owned_by(self, node, limit).await
    }

    async fn owners(&mut self) -> Result<Vec<NodeId>> {
        let rows: Vec<(i64,)> = self.all(sql!("SELECT DISTINCT owner FROM agenda WHERE owner IS NOT NULL")).await?;
        Ok(rows.into_iter().map(|(id,)| NodeId(id)).collect())
    }

    async fn waiting_messages(&mut self, shard: i16, limit: u32) -> Result<Vec<DueMessage>> {
        agenda::waiting_messages(self, shard, limit).await
    }

    async fn messages_awaiting_receipts(&mut self, shard: i16, before: Option<AgendaPlace>) -> Result<Option<AwaitingReceipts>> {
        agenda::messages_awaiting_receipts(self, shard, before).await
    }

    async fn held_messages(&mut self, limit: u32) -> Result<Vec<DueMessage>> {
        let rows: Vec<DueRow> = self
            .all(sql!(
                concat!(
                    select_due!(),
                    r"
                JOIN flagged f ON f.tenant_id = s.tenant_id AND f.id = s.id AND f.kind = 2
                ORDER BY s.tenant_id, s.id
                LIMIT $1"
                ),
                [i64::from(limit)]
            ))
            .await?;
        Ok(rows.into_iter().map(DueRow::decode).collect())
    }

    async fn prune_agenda(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        agenda::prune_agenda(self, now, limit).await
    }

    async fn has_queued_messages(&mut self, tenant: TenantId, sender: SenderId, since: Option<Timestamp>) -> Result<bool> {
        agenda::has_queued_messages(self, tenant, sender, since).await
    }

    async fn count_unguarded_messages(&mut self) -> Result<i64> {
        audit::count_unguarded_messages(self).await
    }

    async fn insert_spool_chunk(&mut self, tenant: TenantId, id: MessageId, index: i32, data: &[u8], now: Timestamp) -> Result<()> {
        spool::insert_chunk(self, tenant, id, index, data, now).await
    }

    async fn delete_spool(&mut self, tenant: TenantId, id: MessageId) -> Result<()> {
        spool::delete(self, tenant, id).await
    }

    async fn purge_orphaned_spool(&mut self, since: Timestamp, before: Timestamp, limit: u32) -> Result<u64> {
        spool::purge_orphans(self, since, before, limit).await
    }

    async fn purge_idempotency_keys(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        keys::purge(self, now, limit).await
    }
}

/// A message without the chunks of its request.
fn outline(row: MessageRow) -> Result<Message> {
    let mut message = row.decode()?;
    message.request_mut().drop_bulk();
    Ok(message)
}
