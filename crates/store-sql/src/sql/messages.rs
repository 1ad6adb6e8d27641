//! Reading messages.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::id::{Id as _, uuid_floor};
use nuncio_domain::lifecycle::NodeId;
use nuncio_domain::message::{Message, Status};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastId, ConnectionId, ContactId, MessageId, SenderId, TenantId, Timestamp, limits};
use nuncio_store::{AgendaPlace, AwaitingReceipts, DueMessage, MessageFilter, MessageRepo, Operation, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{Condition, List, all, any_of, is};
use super::{Db, SqlTx, dialect};
use crate::SqlxResult as _;
use crate::agenda::members;
use crate::message_batch::unspool;
use crate::row::{DueRow, MessageRow, of_contact, select_due};

/// Every column of a [`MessageRow`].
const COLUMNS: &str = "m.tenant_id, m.id, m.direction, m.message_type, m.sender_id, m.address_id, m.recipient, m.sent_from, m.idempotency_key, \
     m.spooled, m.request, s.status, s.wait, s.held, s.due_at, s.owner, s.fence, s.version, s.expires_at, s.updated_at, s.channel, \
     s.connection_id, s.provider, s.detail";
const MESSAGES: &str = "messages m JOIN states s ON s.tenant_id = m.tenant_id AND s.id = m.id";
/// Messages that are in a list of rare ones.
const FLAGGED: &str =
    "flagged f JOIN messages m ON m.tenant_id = f.tenant_id AND m.id = f.id JOIN states s ON s.tenant_id = f.tenant_id AND s.id = f.id";

/// Agenda rows that are read at once.
const AGENDA_ROWS: usize = 16;
/// Agenda rows that one look expands at most.
const AGENDA_LOOK: usize = 4_096;

/// A row of the agenda, as it is read.
#[derive(sqlx::FromRow)]
struct AgendaRow {
    tenant_id: i64,
    id: i64,
    due_at: Option<i64>,
    ids: Vec<u8>,
}

#[async_trait]
impl MessageRepo for SqlTx {
    async fn lookup_message(&mut self, tenant: TenantId, id: MessageId) -> Result<Option<Message>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM ").push(MESSAGES).push(" WHERE m.tenant_id = ").push_bind(tenant.0);
        let row: Option<MessageRow> =
            query.push(" AND m.id = ").push_bind(id.uuid()).build_query_as().fetch_optional(self.conn()).await.or_end(self)?;
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
        query.push(COLUMNS).push(" FROM ").push(MESSAGES).push(" WHERE m.tenant_id = ").push_bind(tenant.0);
        dialect::push_in(&mut query, "m.id", ids.iter().map(|id| id.uuid()));
        let rows: Vec<MessageRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        rows.into_iter().map(Self::outline).collect()
    }

    async fn list_messages(&mut self, tenant: TenantId, filter: &MessageFilter, page: PageRequest) -> Result<Page<Message>> {
        let rare = failed_only(filter);
        let list = List {
            columns: COLUMNS,
            table: if rare { FLAGGED } else { MESSAGES },
            id: if rare { "f.id" } else { "m.id" },
            streams: self.message_streams(tenant, filter).await?,
            filter: all(conditions(filter)),
        };
        let page = self.page(list, page, |row: &MessageRow| row.fixed.id).await?;
        Ok(Page { items: page.items.into_iter().map(Self::outline).collect::<Result<_>>()?, next: page.next })
    }

    async fn find_message_by_idempotency_key(&mut self, tenant: TenantId, operation: Operation, key: &str) -> Result<Option<MessageId>> {
        let row: Option<(Uuid,)> = sqlx::query_as(
            r"
                SELECT resource_id
                FROM idempotency_keys
                WHERE tenant_id = $1 AND operation = $2 AND key = $3",
        )
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
        let mut query = dialect::contacts_of(first.tenant.0, messages.iter().map(|message| message.address.uuid()));
        let rows: Vec<(Uuid, Uuid)> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        let contacts: HashMap<Uuid, Uuid> = rows.into_iter().collect();
        Ok(messages.iter().map(|m| contacts.get(&m.address.uuid()).map(|id| ContactId::from_uuid(*id))).collect())
    }

    async fn due_messages(&mut self, shards: &[i16], skip: &[ConnectionId], now: Timestamp, limit: u32) -> Result<Vec<DueMessage>> {
        let rests =
            |row: &DueRow| row.wait == 1 && skip.contains(&ConnectionId::from_uuid(row.connection_id)) && row.expires_at > now.millis();
        let (mut found, mut seen, mut after) = (Vec::new(), 0, None::<(i64, i64, i64)>);
        while found.len() < limit as usize && seen < AGENDA_LOOK {
            let mut query = QueryBuilder::<Db>::new(
                r"
                    SELECT tenant_id, id, due_at, ids
                    FROM agenda
                    WHERE due_at IS NOT NULL AND due_at <= ",
            );
            query.push_bind(now.millis());
            dialect::push_shards(&mut query, shards);
            if !skip.is_empty() {
                query.push(" AND (connection_id IS NULL OR expires_at <= ").push_bind(now.millis()).push(" OR connection_id NOT IN (");
                let mut list = query.separated(", ");
                for connection in skip {
                    list.push_bind(connection.uuid());
                }
                query.push("))");
            }
            if let Some((due, tenant, id)) = after {
                query
                    .push(" AND (due_at, tenant_id, id) > (")
                    .push_bind(due)
                    .push(", ")
                    .push_bind(tenant)
                    .push(", ")
                    .push_bind(id)
                    .push(")");
            }
            query.push(" ORDER BY due_at, tenant_id, id LIMIT ").push_bind(AGENDA_ROWS as i64);
            let rows: Vec<AgendaRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
            let Some(last) = rows.last() else { break };
            after = Some((last.due_at.unwrap_or_default(), last.tenant_id, last.id));
            seen += rows.len();
            let live = self.guarded_by(&rows).await?;
            found.extend(live.into_iter().filter(|row| row.due_at.is_some_and(|due| due <= now.millis()) && !rests(row)));
            if rows.len() < AGENDA_ROWS {
                break;
            }
        }
        found.sort_by_key(|row| row.due_at);
        found.truncate(limit as usize);
        Ok(found.into_iter().map(DueRow::decode).collect())
    }

    async fn messages_owned_by(&mut self, node: NodeId, limit: u32) -> Result<Vec<DueMessage>> {
        let (mut found, mut after) = (Vec::new(), (i64::MIN, i64::MIN));
        while found.len() < limit as usize {
            let rows: Vec<AgendaRow> = sqlx::query_as(
                r"
                    SELECT tenant_id, id, due_at, ids
                    FROM agenda
                    WHERE owner = $1 AND (tenant_id, id) > ($2, $3)
                    ORDER BY tenant_id, id
                    LIMIT $4",
            )
            .bind(node.0)
            .bind(after.0)
            .bind(after.1)
            .bind(AGENDA_ROWS as i64)
            .fetch_all(self.conn())
            .await
            .or_end(self)?;
            let Some(last) = rows.last() else { break };
            after = (last.tenant_id, last.id);
            found.extend(self.guarded_by(&rows).await?);
        }
        found.truncate(limit as usize);
        Ok(found.into_iter().map(DueRow::decode).collect())
    }

    async fn owners(&mut self) -> Result<Vec<NodeId>> {
        let rows: Vec<(i64,)> =
            sqlx::query_as("SELECT DISTINCT owner FROM agenda WHERE owner IS NOT NULL").fetch_all(self.conn()).await.or_end(self)?;
        Ok(rows.into_iter().map(|(id,)| NodeId(id)).collect())
    }

    async fn waiting_messages(&mut self, shard: i16, limit: u32) -> Result<Vec<DueMessage>> {
        let (mut found, mut after) = (Vec::new(), (i64::MIN, i64::MIN, i64::MIN));
        while found.len() < limit as usize {
            let rows: Vec<AgendaRow> = sqlx::query_as(
                r"
                    SELECT tenant_id, id, due_at, ids
                    FROM agenda
                    WHERE shard = $1
                      AND due_at IS NOT NULL
                      AND connection_id IS NOT NULL
                      AND (due_at, tenant_id, id) > ($2, $3, $4)
                    ORDER BY due_at, tenant_id, id
                    LIMIT $5",
            )
            .bind(shard)
            .bind(after.0)
            .bind(after.1)
            .bind(after.2)
            .bind(AGENDA_ROWS as i64)
            .fetch_all(self.conn())
            .await
            .or_end(self)?;
            let Some(last) = rows.last() else { break };
            after = (last.due_at.unwrap_or_default(), last.tenant_id, last.id);
            found.extend(self.guarded_by(&rows).await?.into_iter().filter(|row| row.wait == 1));
        }
        found.sort_by_key(|row| row.due_at);
        found.truncate(limit as usize);
        Ok(found.into_iter().map(DueRow::decode).collect())
    }

    async fn messages_awaiting_receipts(&mut self, shard: i16, before: Option<AgendaPlace>) -> Result<Option<AwaitingReceipts>> {
        let before = before.unwrap_or(AgendaPlace { due_at: Timestamp::from_millis(i64::MAX), tenant: TenantId(i64::MAX), row: i64::MAX });
        let rows: Vec<AgendaRow> = sqlx::query_as(
            r"
                SELECT tenant_id, id, due_at, ids
                FROM agenda
                WHERE shard = $1
                  AND due_at IS NOT NULL
                  AND connection_id IS NULL
                  AND due_at <= $2
                  AND (due_at, tenant_id, id) < ($2, $3, $4)
                ORDER BY due_at DESC, tenant_id DESC, id DESC
                LIMIT $5",
        )
        .bind(shard)
        .bind(before.due_at.millis())
        .bind(before.tenant.0)
        .bind(before.row)
        .bind(AGENDA_ROWS as i64)
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        let Some(last) = rows.last() else { return Ok(None) };
        let next =
            AgendaPlace { due_at: Timestamp::from_millis(last.due_at.unwrap_or_default()), tenant: TenantId(last.tenant_id), row: last.id };
        let mut waiting: Vec<DueRow> = self.guarded_by(&rows).await?.into_iter().filter(|row| row.wait == 3).collect();
        waiting.sort_unstable_by_key(|row| std::cmp::Reverse((row.due_at, row.id)));
        let messages = waiting.into_iter().map(|mut row| {
            let provider = std::mem::take(&mut row.provider);
            (row.decode(), provider)
        });
        Ok(Some(AwaitingReceipts { messages: messages.collect(), next }))
    }

    async fn held_messages(&mut self, limit: u32) -> Result<Vec<DueMessage>> {
        let rows: Vec<DueRow> = sqlx::query_as(concat!(
            select_due!(),
            r"
                JOIN flagged f ON f.tenant_id = s.tenant_id AND f.id = s.id AND f.kind = 2
                ORDER BY s.tenant_id, s.id
                LIMIT $1"
        ))
        .bind(i64::from(limit))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        Ok(rows.into_iter().map(DueRow::decode).collect())
    }

    async fn prune_agenda(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        let rows: Vec<AgendaRow> = sqlx::query_as(
            r"
                SELECT tenant_id, id, due_at, ids
                FROM agenda
                WHERE due_at IS NOT NULL AND due_at <= $1
                ORDER BY due_at, tenant_id, id
                LIMIT $2",
        )
        .bind(now.millis())
        .bind(i64::from(limit))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        self.delete_stale(&rows).await
    }

    async fn has_queued_messages(&mut self, tenant: TenantId, sender: SenderId, since: Option<Timestamp>) -> Result<bool> {
        if let Some(since) = since {
            // A span of the key.
            let found: (i64,) = sqlx::query_as(
                r"
                    SELECT CAST(COUNT(*) AS BIGINT)
                    FROM (
                        SELECT 1
                        FROM messages m
                        JOIN states s ON s.tenant_id = m.tenant_id AND s.id = m.id
                        WHERE m.tenant_id = $1
                          AND m.id >= $3
                          AND m.sender_id = $2
                          AND s.wait IN (1, 2, 4)
                        LIMIT 1
                    ) q",
            )
            .bind(tenant.0)
            .bind(sender.uuid())
            .bind(uuid_floor(since))
            .fetch_one(self.conn())
            .await
            .or_end(self)?;
            return Ok(found.0 > 0);
        }
        let mut after = i64::MIN;
        loop {
            let rows: Vec<AgendaRow> = sqlx::query_as(
                r"
                    SELECT tenant_id, id, due_at, ids
                    FROM agenda
                    WHERE tenant_id = $1 AND id > $2
                    ORDER BY id
                    LIMIT $3",
            )
            .bind(tenant.0)
            .bind(after)
            .bind(AGENDA_ROWS as i64)
            .fetch_all(self.conn())
            .await
            .or_end(self)?;
            let Some(last) = rows.last() else { return Ok(false) };
            after = last.id;
            let live = self.guarded_by(&rows).await?;
            let waiting: Vec<Uuid> = live.iter().filter(|row| matches!(row.wait, 1 | 2 | 4)).map(|row| row.id).collect();
            if waiting.is_empty() {
                continue;
            }
            let mut query = QueryBuilder::<Db>::new("SELECT CAST(COUNT(*) AS BIGINT) FROM messages WHERE tenant_id = ");
            query.push_bind(tenant.0).push(" AND sender_id = ").push_bind(sender.uuid());
            dialect::push_in(&mut query, "id", waiting);
            let (found,): (i64,) = query.build_query_as().fetch_one(self.conn()).await.or_end(self)?;
            if found > 0 {
                return Ok(true);
            }
        }
    }

    async fn count_unguarded_messages(&mut self) -> Result<i64> {
        let faulty: Vec<(i64, Uuid)> = sqlx::query_as(
            r"
                SELECT tenant_id, id
                FROM states s
                WHERE NOT (
                    (
                        wait = 0
                        AND due_at IS NULL
                        AND owner IS NULL
                        AND agenda IS NULL
                        AND status IN (4, 5, 6, 7, 8, 9)
                    )
                    OR (wait IN (1, 3) AND due_at IS NOT NULL AND owner IS NULL)
                    OR (wait = 4 AND due_at IS NOT NULL AND owner IS NULL AND held <> 0)
                    OR (
                        wait = 2
                        AND due_at IS NULL
                        AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = s.owner AND n.dead = 0)
                    )
                )",
        )
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        let mut unguarded: BTreeSet<(i64, Uuid)> = faulty.into_iter().collect();
        // What the agenda says of each: the owner of its row, or the moment at which the row is looked at.
        let mut agenda: HashMap<(i64, i64, Uuid), (Option<i64>, Option<i64>)> = HashMap::new();
        let rows: Vec<(i64, i64, Option<i64>, Option<i64>, Vec<u8>)> =
            sqlx::query_as("SELECT tenant_id, id, owner, due_at, ids FROM agenda").fetch_all(self.conn()).await.or_end(self)?;
        for (tenant, id, owner, due_at, ids) in rows {
            agenda.extend(members(&ids)?.into_iter().map(|member| ((tenant, id, member), (owner, due_at))));
        }
        let unfinished: Vec<DueRow> =
            sqlx::query_as(concat!(select_due!(), " WHERE s.wait <> 0")).fetch_all(self.conn()).await.or_end(self)?;
        for row in unfinished {
            let guard = row.agenda.and_then(|id| agenda.get(&(row.tenant_id, id, row.id)));
            let comes = |(owner, due): &(Option<i64>, Option<i64>)| {
                *owner == row.owner && due.is_some() == row.due_at.is_some() && *due <= row.due_at
            };
            if !guard.is_some_and(comes) {
                unguarded.insert((row.tenant_id, row.id));
            }
        }
        Ok(unguarded.len() as i64)
    }

    async fn insert_spool_chunk(&mut self, tenant: TenantId, id: MessageId, index: i32, data: &[u8], now: Timestamp) -> Result<()> {
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
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn delete_spool(&mut self, tenant: TenantId, id: MessageId) -> Result<()> {
        sqlx::query(
            r"
                DELETE FROM spool_chunks
                WHERE tenant_id = $1
                  AND message_id = $2
                  AND NOT EXISTS (SELECT 1 FROM messages WHERE tenant_id = $1 AND id = $2)",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    // This sweep and the next find their rows first, for all tenants, and then delete them by key: a cluster takes no limit in a statement
    // that writes.
    async fn purge_orphaned_spool(&mut self, since: Timestamp, before: Timestamp, limit: u32) -> Result<u64> {
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
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        for (tenant, message, chunk) in &rows {
            sqlx::query("DELETE FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 AND chunk = $3")
                .bind(tenant)
                .bind(message)
                .bind(chunk)
                .execute(self.conn())
                .await
                .or_end(self)?;
        }
        Ok(rows.len() as u64)
    }

    async fn purge_idempotency_keys(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        let retention = limits::IDEMPOTENCY_RETENTION.as_millis() as i64;
        let [send, react] = Operation::OF_MESSAGES.map(Operation::number);
        // Keys of messages that are unfinished, or ended lately, are looked at again when their time may be over.
        let kept: Vec<(i64, i16, String, i64)> = sqlx::query_as(
            r"
                SELECT k.tenant_id, k.operation, k.key, CASE WHEN s.wait = 0 THEN s.updated_at ELSE $1 END
                FROM idempotency_keys k
                JOIN states s ON s.tenant_id = k.tenant_id AND s.id = k.resource_id
                WHERE k.check_at <= $1
                  AND k.operation IN ($4, $5)
                  AND (s.wait <> 0 OR s.updated_at + $3 > $1)
                LIMIT $2",
        )
        .bind(now.millis())
        .bind(i64::from(limit))
        .bind(retention)
        .bind(send)
        .bind(react)
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        for (tenant, operation, key, since) in kept {
            sqlx::query(
                r"
                    UPDATE idempotency_keys
                    SET check_at = $4
                    WHERE tenant_id = $1 AND operation = $2 AND key = $3",
            )
            .bind(tenant)
            .bind(operation)
            .bind(key)
            .bind(since + retention)
            .execute(self.conn())
            .await
            .or_end(self)?;
        }
        let mut over: Vec<(i64, i16, String)> = sqlx::query_as(
            r"
                SELECT k.tenant_id, k.operation, k.key
                FROM idempotency_keys k
                WHERE k.check_at <= $1
                  AND NOT (
                      k.operation IN ($3, $4)
                      AND EXISTS (
                          SELECT 1
                          FROM states s
                          WHERE s.tenant_id = k.tenant_id
                            AND s.id = k.resource_id
                            AND (s.wait <> 0 OR s.updated_at + $5 > $1)
                      )
                  )
                LIMIT $2",
        )
        .bind(now.millis())
        .bind(i64::from(limit))
        .bind(send)
        .bind(react)
        .bind(retention)
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
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
            query.push(")").build().persistent(false).execute(self.conn()).await.or_end(self)?;
        }
        Ok(over.len() as u64)
    }
}

/// What no index tells of a message, unless it is what [`SqlTx::message_streams`] begins with.
fn conditions(filter: &MessageFilter) -> Vec<Condition> {
    let mut all: Vec<Condition> = Vec::new();
    all.extend(any_of("s.status", filter.status.iter().filter(|_| !failed_only(filter)).map(|s| s.number())));
    all.extend(any_of("s.channel", filter.channel.iter().map(|c| c.number())));
    all.extend(filter.direction.map(|direction| is("m.direction", direction.number())));
    all.extend(filter.to.clone().filter(|_| by_key(filter)).map(|to| is("m.recipient", to)));
    all.extend(filter.from.clone().map(|from| is("m.sent_from", from)));
    all.extend(filter.sender.map(|sender| is("m.sender_id", sender.uuid())));
    all.extend(filter.broadcast.map(|broadcast| part_of(broadcast)));
    all.extend(filter.metadata.iter().map(|(key, value)| dialect::json_entry("m.request", "metadata", key, value)));
    all
}

/// Whether the list begins with what a narrower index has than that of addresses.
const fn by_key(filter: &MessageFilter) -> bool {
    filter.idempotency_key.is_some() || filter.contact.is_some()
}

/// There is a list of failed messages, for pages that no narrower index serves.
fn failed_only(filter: &MessageFilter) -> bool {
    filter.status == [Status::Failed] && !by_key(filter) && filter.to.is_none()
}

/// As the detail of a message has it. No text in it can look like this, since it is JSON.
fn part_of(broadcast: BroadcastId) -> Condition {
    let pattern = format!("%\"b\":{{\"i\":\"{broadcast}\"%");
    Box::new(move |query| {
        query.push("s.detail LIKE ").push_bind(pattern.clone());
    })
}

/// Of these messages those of an address; if `to` is given, those that were sent to it.
fn with_address(all: impl Fn(&mut QueryBuilder<Db>) + Send + Sync + 'static, address: Uuid, to: Option<String>) -> Condition {
    Box::new(move |query| {
        all(query);
        query.push(" AND m.address_id = ").push_bind(address);
        if let Some(to) = &to {
            query.push(" AND m.direction = 1 AND m.recipient = ").push_bind(to.clone());
        }
    })
}

/// Of these messages the one that was sent with an idempotency key, if there is one.
fn with_key(tenant: TenantId, key: Option<String>, stream: Condition) -> Condition {
    let Some(key) = key else { return stream };
    Box::new(move |query| {
        stream(query);
        query.push(" AND m.id IN (SELECT resource_id FROM idempotency_keys WHERE tenant_id = ").push_bind(tenant.0);
        query.push(" AND operation = ").push_bind(Operation::SendMessage.number()).push(" AND key = ").push_bind(key.clone()).push(")");
    })
}

impl SqlTx {
    /// The messages that these agenda rows still guard.
    async fn guarded_by(&mut self, rows: &[AgendaRow]) -> Result<Vec<DueRow>> {
        let mut tenants: BTreeMap<i64, (Vec<i64>, Vec<Uuid>)> = BTreeMap::new();
        for row in rows {
            let (agenda, ids) = tenants.entry(row.tenant_id).or_default();
            agenda.push(row.id);
            ids.extend(members(&row.ids)?);
        }
        let mut found = Vec::new();
        for (tenant, (agenda, ids)) in tenants {
            for part in ids.chunks(1_024) {
                let mut query = QueryBuilder::<Db>::new(concat!(select_due!(), " WHERE s.tenant_id = "));
                query.push_bind(tenant);
                dialect::push_in(&mut query, "s.id", part.iter().copied());
                query.push(" AND s.agenda IN (");
                let mut list = query.separated(", ");
                for row in &agenda {
                    list.push_bind(*row);
                }
                query.push(")");
                let rows: Vec<DueRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
                found.extend(rows);
            }
        }
        Ok(found)
    }

    /// Deletes the agenda rows among these that guard no message any more. A row never gets new messages, so it stays stale.
    async fn delete_stale(&mut self, rows: &[AgendaRow]) -> Result<u64> {
        let live: BTreeSet<(i64, Option<i64>)> = self.guarded_by(rows).await?.into_iter().map(|row| (row.tenant_id, row.agenda)).collect();
        let mut deleted = 0;
        for row in rows.iter().filter(|row| !live.contains(&(row.tenant_id, Some(row.id)))) {
            let done = sqlx::query("DELETE FROM agenda WHERE tenant_id = $1 AND id = $2")
                .bind(row.tenant_id)
                .bind(row.id)
                .execute(self.conn())
                .await
                .or_end(self)?;
            deleted += done.rows_affected();
        }
        Ok(deleted)
    }

    /// Deletes the stale agenda rows of an owner.
    pub(super) async fn prune_agenda_of(&mut self, node: NodeId) -> Result<()> {
        let rows: Vec<AgendaRow> = sqlx::query_as(
            r"
                SELECT tenant_id, id, due_at, ids
                FROM agenda
                WHERE owner = $1
                ORDER BY tenant_id, id",
        )
        .bind(node.0)
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        for part in rows.chunks(AGENDA_ROWS) {
            self.delete_stale(part).await?;
        }
        Ok(())
    }

    /// The messages of a list as far as indexes tell which they are.
    async fn message_streams(&mut self, tenant: TenantId, filter: &MessageFilter) -> Result<Vec<Condition>> {
        let key = filter.idempotency_key.clone();
        let rare = failed_only(filter);
        let not_before = filter.broadcast.map(|broadcast| uuid_floor(broadcast.created_at()));
        let all = move |query: &mut QueryBuilder<Db>| {
            query.push(if rare { "f.kind = 1 AND f.tenant_id = " } else { "m.tenant_id = " }).push_bind(tenant.0);
            if let Some(not_before) = not_before {
                query.push(if rare { " AND f.id >= " } else { " AND m.id >= " }).push_bind(not_before);
            }
        };
        let streams = match (filter.contact, &filter.to) {
            (Some(contact), _) => {
                let addresses: Vec<(Uuid,)> =
                    sqlx::query_as(concat!("SELECT id FROM addresses WHERE tenant_id = $1 AND ", of_contact!(), " ORDER BY id"))
                        .bind(tenant.0)
                        .bind(contact.uuid())
                        .fetch_all(self.conn())
                        .await
                        .or_end(self)?;
                addresses.into_iter().map(|(address,)| with_address(all, address, None)).collect()
            }
            (None, Some(to)) if !by_key(filter) => self.streams_to(tenant, to, all).await?,
            _ => vec![Box::new(all) as Condition],
        };
        Ok(streams.into_iter().map(|stream| with_key(tenant, key.clone(), stream)).collect())
    }

    /// What was sent to an address, and what was received at one.
    async fn streams_to(
        &mut self,
        tenant: TenantId,
        to: &str,
        all: impl Fn(&mut QueryBuilder<Db>) + Clone + Send + Sync + 'static,
    ) -> Result<Vec<Condition>> {
        let addresses: Vec<(Uuid,)> = sqlx::query_as(
            r"
                SELECT id
                FROM addresses
                WHERE tenant_id = $1 AND kind IN (1, 2, 3, 4) AND identifier = $2
                ORDER BY id",
        )
        .bind(tenant.0)
        .bind(to)
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        let sent = addresses.into_iter().map(|(address,)| with_address(all.clone(), address, Some(to.to_owned())));
        let (of, to) = (all.clone(), to.to_owned());
        let received: Condition = Box::new(move |query| {
            of(query);
            query.push(" AND m.direction = 2 AND m.recipient = ").push_bind(to.clone());
        });
        Ok(sent.chain([received]).collect())
    }

    /// What the row says without its chunks.
    fn outline(row: MessageRow) -> Result<Message> {
        let mut message = row.decode()?;
        message.request_mut().forget_bulk();
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
