//! Messages.

mod agenda;
mod audit;
mod keys;
mod list;
mod spool;

use std::collections::HashMap;

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::Message;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{ConnectionId, ContactId, MessageId, TenantId, Timestamp};
use nuncio_store::{IdempotentOperation, MessageFilter, MessageRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};
use crate::row::MessageRow;

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

    async fn find_message_by_reference(
        &mut self,
        tenant: TenantId,
        connection: ConnectionId,
        reference: &str,
    ) -> Result<Option<MessageId>> {
        self.value(sql!(
            r"
                SELECT message_id
                FROM provider_refs
                WHERE tenant_id = $1 AND connection_id = $2 AND reference = $3",
            [tenant, connection, reference]
        ))
        .await
    }

    async fn contacts_of_messages(&mut self, messages: &[Message]) -> Result<Vec<Option<ContactId>>> {
        let Some(first) = messages.first() else { return Ok(Vec::new()) };
        let mut contacts: HashMap<Uuid, ContactId> = HashMap::new();
        // Few addresses were removed: most often the first table has all.
        for table in ["addresses", "removed_addresses"] {
            let missing: Vec<Uuid> = messages.iter().map(|m| m.address.uuid()).filter(|address| !contacts.contains_key(address)).collect();
            if missing.is_empty() {
                break;
            }
            contacts.extend(self.all::<(Uuid, ContactId)>(dialect::contacts_of(table, first.tenant.0, missing).build()).await?);
        }
        Ok(messages.iter().map(|m| contacts.get(&m.address.uuid()).copied()).collect())
    }

    async fn count_unguarded_messages(&mut self) -> Result<i64> {
        audit::count_unguarded_messages(self).await
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
