//! Broadcasts.

use async_trait::async_trait;
use nuncio_domain::broadcast::{
    Body, Broadcast, BroadcastChannel, BroadcastContact, BroadcastType, ContactStatus, Counts, Status, Variables,
};
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::id::{Id as _, uuid_floor};
use nuncio_domain::lifecycle::Detail;
use nuncio_domain::message::Failure;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressKind, BroadcastContactId, BroadcastId, MessageId, Recipient, SenderId, TenantId, Timestamp};
use nuncio_store::{BroadcastRepo, DueBroadcast, ImportProgress, NewBroadcastContact, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{Condition, List};
use super::{Db, SqlTx, dialect};
use crate::SqlxResult as _;
use crate::row::{corrupt, json};

const TABLE: &str = "broadcasts";
const CONTACTS: &str = "broadcast_contacts";

#[derive(sqlx::FromRow)]
struct BroadcastRow {
    tenant_id: i64,
    id: Uuid,
    status: i16,
    channel: i16,
    message_type: i16,
    sender_id: Uuid,
    version: i64,
    due_at: Option<i64>,
    total: i64,
    html: Option<String>,
    body: String,
    updated_at: i64,
    queued: i64,
    sending: i64,
    sent: i64,
    delivered: i64,
    failed: i64,
    skipped: i64,
    awaited: i64,
    taken: i64,
    cost: i64,
    prepaid: i64,
    held: i64,
}

/// All columns with the sum of the counts, in one statement, so that they are of one moment.
fn columns(html: &str) -> String {
    let mut columns = "b.tenant_id, b.id, b.status, b.channel, b.message_type, b.sender_id, b.version, b.due_at, b.total, ".to_owned();
    columns += html;
    columns += " AS html, b.body, b.updated_at";
    for column in ["queued", "sending", "sent", "delivered", "failed", "skipped", "awaited", "taken", "cost", "prepaid", "held"] {
        columns += &format!(
            ", CAST(COALESCE((SELECT SUM(k.{column}) FROM broadcast_counts k WHERE k.tenant_id = b.tenant_id AND k.broadcast_id = b.id), 0) \
             AS BIGINT) AS {column}"
        );
    }
    columns
}

/// One stream for each of `statuses`, as an index has them, or one for all.
fn by_status(
    column: &'static str,
    statuses: Vec<i16>,
    of: impl Fn(&mut QueryBuilder<Db>) + Clone + Send + Sync + 'static,
) -> Vec<Condition> {
    if statuses.is_empty() {
        return vec![Box::new(of)];
    }
    let stream = |status: i16| {
        let of = of.clone();
        Box::new(move |query: &mut QueryBuilder<Db>| {
            of(query);
            query.push(" AND ").push(column).push(" = ").push_bind(status);
        }) as Condition
    };
    statuses.into_iter().map(stream).collect()
}

/// The numbers of statuses, each once.
fn numbers(statuses: impl Iterator<Item = i16>) -> Vec<i16> {
    statuses.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

fn number<T>(value: Option<T>, table: &'static str, what: &str, number: i16) -> Result<T> {
    value.ok_or_else(|| corrupt(table, format!("{what} {number}")))
}

impl BroadcastRow {
    fn decode(self) -> Result<Broadcast> {
        let body: Body = serde_json::from_str(&self.body).map_err(|e| corrupt(TABLE, e))?;
        Ok(Broadcast {
            tenant: TenantId(self.tenant_id),
            id: BroadcastId::from_uuid(self.id),
            status: number(Status::from_number(self.status), TABLE, "status", self.status)?,
            channel: number(BroadcastChannel::from_number(self.channel), TABLE, "channel", self.channel)?,
            message_type: number(BroadcastType::from_number(self.message_type), TABLE, "message_type", self.message_type)?,
            sender: SenderId::from_uuid(self.sender_id),
            version: self.version,
            due_at: self.due_at.map(Timestamp::from_millis),
            total: self.total,
            html: self.html,
            body,
            updated_at: Timestamp::from_millis(self.updated_at),
            counts: Counts {
                queued: self.queued,
                sending: self.sending,
                sent: self.sent,
                delivered: self.delivered,
                failed: self.failed,
                skipped: self.skipped,
                awaited: self.awaited,
                taken: self.taken,
                cost: self.cost,
                prepaid: self.prepaid,
                held: self.held,
            },
        })
    }
}

#[derive(sqlx::FromRow)]
struct ContactRow {
    id: Uuid,
    kind: i16,
    recipient: String,
    status: i16,
    message_id: Option<Uuid>,
    variables: String,
    failure: Option<String>,
    processed_at: Option<i64>,
    detail: Option<String>,
    changed_at: Option<i64>,
}

impl ContactRow {
    fn decode(self) -> Result<BroadcastContact> {
        let wrong = |e: serde_json::Error| corrupt(CONTACTS, e);
        let detail: Option<Detail> = self.detail.as_deref().map(serde_json::from_str).transpose().map_err(wrong)?;
        let own: Option<Failure> = self.failure.as_deref().map(serde_json::from_str).transpose().map_err(wrong)?;
        let status = number(ContactStatus::from_number(self.status), CONTACTS, "status", self.status)?;
        let ended = matches!(status, ContactStatus::Delivered | ContactStatus::Failed | ContactStatus::Skipped);
        let failed = matches!(status, ContactStatus::Failed | ContactStatus::Skipped);
        let cost = detail.as_ref().and_then(|d| d.cost).and_then(|c| c.fee.checked_add(c.provider));
        Ok(BroadcastContact {
            id: BroadcastContactId::from_uuid(self.id),
            recipient: recipient(self.kind, self.recipient)?,
            status,
            variables: variables(&self.variables)?,
            message: self.message_id.map(MessageId::from_uuid),
            failure: own.or(detail.and_then(|d| d.failure)).filter(|_| failed),
            cost,
            processed_at: self.processed_at.or(self.changed_at).filter(|_| ended).map(Timestamp::from_millis),
        })
    }
}

/// A recipient as it was added: id, kind, identifier, variables.
type AddedRow = (Uuid, i16, String, String);

fn added((id, kind, identifier, values): AddedRow) -> Result<NewBroadcastContact> {
    let id = BroadcastContactId::from_uuid(id);
    Ok(NewBroadcastContact { id, recipient: recipient(kind, identifier)?, variables: variables(&values)? })
}

fn recipient(kind: i16, identifier: String) -> Result<Recipient> {
    Ok(Recipient { kind: number(AddressKind::from_number(kind), CONTACTS, "kind", kind)?, identifier })
}

fn variables(text: &str) -> Result<Variables> {
    serde_json::from_str(text).map_err(|e| corrupt(CONTACTS, e))
}

#[async_trait]
impl BroadcastRepo for SqlTx {
    async fn insert_broadcast(&mut self, broadcast: &Broadcast) -> Result<()> {
        sqlx::query(
            "INSERT INTO broadcasts (tenant_id, id, status, channel, message_type, sender_id, version, fence, due_at, total, html, body, updated_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, 0, $9, $10, $11)",
        )
        .bind(broadcast.tenant.0)
        .bind(broadcast.id.uuid())
        .bind(broadcast.status.number())
        .bind(broadcast.channel.number())
        .bind(broadcast.message_type.number())
        .bind(broadcast.sender.uuid())
        .bind(broadcast.version)
        .bind(broadcast.due_at.map(Timestamp::millis))
        .bind(&broadcast.html)
        .bind(json(&broadcast.body)?)
        .bind(broadcast.updated_at.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn find_broadcast(&mut self, tenant: TenantId, id: BroadcastId) -> Result<Option<Broadcast>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query
            .push(columns("b.html"))
            .push(" FROM broadcasts b WHERE b.tenant_id = ")
            .push_bind(tenant.0)
            .push(" AND b.id = ")
            .push_bind(id.uuid());
        let row: Option<BroadcastRow> = query.build_query_as().fetch_optional(self.conn()).await.or_end(self)?;
        row.map(BroadcastRow::decode).transpose()
    }

    async fn list_broadcasts(&mut self, tenant: TenantId, status: &[Status], page: PageRequest) -> Result<Page<Broadcast>> {
        let streams = by_status("b.status", numbers(status.iter().map(|s| s.number())), move |query| {
            query.push("b.tenant_id = ").push_bind(tenant.0);
        });
        let columns = columns("CAST(NULL AS TEXT)");
        let list = List { columns: &columns, table: "broadcasts b", id: "b.id", streams, filter: None };
        let page = self.page(list, page, |row: &BroadcastRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(BroadcastRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn update_broadcast(&mut self, broadcast: &Broadcast, seen: i64) -> Result<bool> {
        let done = sqlx::query(
            "UPDATE broadcasts SET status = $3, version = $4, fence = fence + 1, due_at = $5, html = $6, body = $7, updated_at = $8 \
             WHERE tenant_id = $1 AND id = $2 AND version = $9",
        )
        .bind(broadcast.tenant.0)
        .bind(broadcast.id.uuid())
        .bind(broadcast.status.number())
        .bind(broadcast.version)
        .bind(broadcast.due_at.map(Timestamp::millis))
        .bind(&broadcast.html)
        .bind(json(&broadcast.body)?)
        .bind(broadcast.updated_at.millis())
        .bind(seen)
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn delete_draft_broadcast(&mut self, tenant: TenantId, id: BroadcastId, limit: u32) -> Result<Option<bool>> {
        if !self.grow_draft(tenant, id, 0).await? {
            return Ok(None);
        }
        let done = sqlx::query(
            "DELETE FROM broadcast_contacts WHERE tenant_id = $1 AND broadcast_id = $2 AND id IN \
             (SELECT id FROM broadcast_contacts WHERE tenant_id = $1 AND broadcast_id = $2 LIMIT $3)",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(i64::from(limit))
        .execute(self.conn())
        .await
        .or_end(self)?;
        if done.rows_affected() == u64::from(limit) {
            self.grow_draft(tenant, id, -i64::from(limit)).await?;
            return Ok(Some(false));
        }
        sqlx::query("DELETE FROM broadcast_imports WHERE tenant_id = $1 AND broadcast_id = $2")
            .bind(tenant.0)
            .bind(id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        sqlx::query("DELETE FROM broadcasts WHERE tenant_id = $1 AND id = $2")
            .bind(tenant.0)
            .bind(id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(Some(true))
    }

    async fn insert_broadcast_contacts(&mut self, tenant: TenantId, id: BroadcastId, new: &[NewBroadcastContact]) -> Result<Option<u64>> {
        // The row of the broadcast is locked first: whoever sends it meanwhile waits, or has won.
        if !self.grow_draft(tenant, id, 0).await? {
            return Ok(None);
        }
        if new.is_empty() {
            return Ok(Some(0));
        }
        let mut added = 0;
        for chunk in new.chunks(dialect::CONTACTS_AT_ONCE) {
            let rows = chunk.iter().map(|contact| {
                let Recipient { kind, identifier } = &contact.recipient;
                let variables = if contact.variables.is_empty() { "{}".to_owned() } else { json(&contact.variables)? };
                Ok((contact.id.uuid(), kind.number(), identifier.clone(), variables))
            });
            let mut query = dialect::insert_contacts(tenant.0, id.uuid(), ContactStatus::Pending.number(), rows.collect::<Result<_>>()?);
            added += query.build().execute(self.conn()).await.or_end(self)?.rows_affected();
        }
        self.grow_draft(tenant, id, added as i64).await?;
        Ok(Some(added))
    }

    async fn find_broadcast_import(&mut self, tenant: TenantId, id: BroadcastId, name: &str) -> Result<Option<ImportProgress>> {
        let row: Option<(i64, i64, i64, i64)> = sqlx::query_as(
            "SELECT read_rows, added, duplicates, invalid FROM broadcast_imports WHERE tenant_id = $1 AND broadcast_id = $2 AND name = $3",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(name)
        .fetch_optional(self.conn())
        .await
        .or_end(self)?;
        Ok(row.map(|(rows, added, duplicates, invalid)| ImportProgress {
            rows: rows as u64,
            added: added as u64,
            duplicates: duplicates as u64,
            invalid: invalid as u64,
        }))
    }

    async fn put_broadcast_import(&mut self, tenant: TenantId, id: BroadcastId, name: &str, progress: &ImportProgress) -> Result<()> {
        sqlx::query(
            "INSERT INTO broadcast_imports (tenant_id, broadcast_id, name, read_rows, added, duplicates, invalid)
             VALUES ($1, $2, $3, $4, $5, $6, $7)
             ON CONFLICT (tenant_id, broadcast_id, name) DO UPDATE
             SET read_rows = excluded.read_rows, added = excluded.added, duplicates = excluded.duplicates, invalid = excluded.invalid",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(name)
        .bind(progress.rows as i64)
        .bind(progress.added as i64)
        .bind(progress.duplicates as i64)
        .bind(progress.invalid as i64)
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn count_suppressed_contacts(&mut self, tenant: TenantId, id: BroadcastId, sender: SenderId) -> Result<u64> {
        let (count,): (i64,) = sqlx::query_as(
            "SELECT COUNT(DISTINCT c.id)
             FROM suppressions s
             JOIN broadcast_contacts c ON c.tenant_id = s.tenant_id AND c.kind = s.kind AND c.recipient = s.identifier
             WHERE s.tenant_id = $1 AND s.sender_id IN ($2, $3) AND c.broadcast_id = $4",
        )
        .bind(tenant.0)
        .bind(sender.uuid())
        .bind(Uuid::nil())
        .bind(id.uuid())
        .fetch_one(self.conn())
        .await
        .or_end(self)?;
        Ok(count as u64)
    }

    async fn suppressed_since(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        sender: SenderId,
        since: Timestamp,
    ) -> Result<Vec<(SuppressionReason, u64)>> {
        // Ids begin with their time: those since then are a range of the key.
        let rows: Vec<(i16, i64)> = sqlx::query_as(
            "SELECT s.reason, COUNT(DISTINCT c.id)
             FROM suppressions s
             JOIN broadcast_contacts c ON c.tenant_id = s.tenant_id AND c.kind = s.kind AND c.recipient = s.identifier
             WHERE s.tenant_id = $1 AND s.id >= $5 AND s.sender_id IN ($2, $3) AND c.broadcast_id = $4
             GROUP BY s.reason",
        )
        .bind(tenant.0)
        .bind(sender.uuid())
        .bind(Uuid::nil())
        .bind(id.uuid())
        .bind(uuid_floor(since))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        rows.into_iter()
            .map(|(reason, count)| Ok((number(SuppressionReason::from_number(reason), "suppressions", "reason", reason)?, count as u64)))
            .collect()
    }

    async fn list_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        status: &[ContactStatus],
        page: PageRequest,
    ) -> Result<Page<BroadcastContact>> {
        let streams = by_status("c.status", numbers(status.iter().map(|s| s.number())), move |query| {
            query.push("c.tenant_id = ").push_bind(tenant.0).push(" AND c.broadcast_id = ").push_bind(id.uuid());
        });
        let columns = "c.id, c.kind, c.recipient, c.status, c.message_id, c.variables, c.failure, c.processed_at, s.detail, s.updated_at AS changed_at";
        let table = "broadcast_contacts c LEFT JOIN states s ON s.tenant_id = c.tenant_id AND s.id = c.message_id";
        let page = self.page(List { columns, table, id: "c.id", streams, filter: None }, page, |row: &ContactRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(ContactRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn delete_broadcast_contact(&mut self, tenant: TenantId, id: BroadcastId, contact: BroadcastContactId) -> Result<Option<bool>> {
        if !self.grow_draft(tenant, id, 0).await? {
            return Ok(None);
        }
        let done = sqlx::query("DELETE FROM broadcast_contacts WHERE tenant_id = $1 AND broadcast_id = $2 AND id = $3")
            .bind(tenant.0)
            .bind(id.uuid())
            .bind(contact.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        self.grow_draft(tenant, id, -(done.rows_affected() as i64)).await?;
        Ok(Some(done.rows_affected() == 1))
    }

    async fn find_broadcast_contact(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        contact: BroadcastContactId,
    ) -> Result<Option<NewBroadcastContact>> {
        let row: Option<AddedRow> = sqlx::query_as(
            "SELECT id, kind, recipient, variables FROM broadcast_contacts WHERE tenant_id = $1 AND broadcast_id = $2 AND id = $3",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(contact.uuid())
        .fetch_optional(self.conn())
        .await
        .or_end(self)?;
        row.map(added).transpose()
    }

    async fn pending_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        after: Option<BroadcastContactId>,
        limit: u32,
    ) -> Result<Vec<NewBroadcastContact>> {
        let rows: Vec<AddedRow> = sqlx::query_as(
            "SELECT id, kind, recipient, variables FROM broadcast_contacts \
             WHERE tenant_id = $1 AND broadcast_id = $2 AND status = $3 AND id > $4 ORDER BY id LIMIT $5",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(ContactStatus::Pending.number())
        .bind(after.map_or(Uuid::nil(), |id| id.uuid()))
        .bind(i64::from(limit))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        rows.into_iter().map(added).collect()
    }

    async fn fail_broadcast_contact(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        contact: BroadcastContactId,
        failure: &Failure,
        now: Timestamp,
    ) -> Result<bool> {
        // Locked, so that the status cannot change before this transaction ends.
        let sending: Option<(i64,)> = sqlx::query_as(dialect::LOCK_SENDING)
            .bind(tenant.0)
            .bind(id.uuid())
            .bind(Status::Sending.number())
            .fetch_optional(self.conn())
            .await
            .or_end(self)?;
        if sending.is_none() {
            return Ok(false);
        }
        let done = sqlx::query(
            "UPDATE broadcast_contacts SET status = $4, failure = $5, processed_at = $6 \
             WHERE tenant_id = $1 AND broadcast_id = $2 AND id = $3 AND status = $7",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(contact.uuid())
        .bind(ContactStatus::Failed.number())
        .bind(json(failure)?)
        .bind(now.millis())
        .bind(ContactStatus::Pending.number())
        .execute(self.conn())
        .await
        .or_end(self)?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        sqlx::query(dialect::COUNT_ENDED).bind(tenant.0).bind(id.uuid()).bind(1_i64).bind(0_i64).execute(self.conn()).await.or_end(self)?;
        Ok(true)
    }

    async fn unsent_broadcast_messages(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        after: Option<BroadcastContactId>,
        limit: u32,
    ) -> Result<Vec<(BroadcastContactId, MessageId)>> {
        let rows: Vec<(Uuid, Uuid)> = sqlx::query_as(
            "SELECT c.id, s.id FROM broadcast_contacts c JOIN states s ON s.tenant_id = c.tenant_id AND s.id = c.message_id \
             WHERE c.tenant_id = $1 AND c.broadcast_id = $2 AND c.status IN ($3, $4) AND c.id > $5 AND s.wait IN (1, 4) AND s.status IN (1, 2, 3) \
             ORDER BY c.id LIMIT $6",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(ContactStatus::Queued.number())
        .bind(ContactStatus::Sending.number())
        .bind(after.map_or(Uuid::nil(), |id| id.uuid()))
        .bind(i64::from(limit))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        Ok(rows.into_iter().map(|(contact, message)| (BroadcastContactId::from_uuid(contact), MessageId::from_uuid(message))).collect())
    }

    async fn due_broadcasts(&mut self, now: Timestamp, limit: u32) -> Result<Vec<DueBroadcast>> {
        let rows: Vec<(i64, Uuid, i64, i64, Option<Uuid>)> = sqlx::query_as(
            "SELECT tenant_id, id, fence, due_at, cursor_id FROM broadcasts
             WHERE due_at IS NOT NULL AND due_at <= $1
             ORDER BY due_at LIMIT $2",
        )
        .bind(now.millis())
        .bind(i64::from(limit))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        let due = |(tenant, id, fence, due_at, cursor): (_, _, _, _, Option<Uuid>)| DueBroadcast {
            tenant: TenantId(tenant),
            id: BroadcastId::from_uuid(id),
            fence,
            due_at: Timestamp::from_millis(due_at),
            cursor: cursor.map(BroadcastContactId::from_uuid),
        };
        Ok(rows.into_iter().map(due).collect())
    }

    async fn claim_broadcast(&mut self, due: &DueBroadcast, due_at: Option<Timestamp>) -> Result<bool> {
        let claim = "UPDATE broadcasts SET fence = fence + 1, due_at = $4, cursor_id = $5 WHERE tenant_id = $1 AND id = $2 AND fence = $3";
        let done = sqlx::query(claim)
            .bind(due.tenant.0)
            .bind(due.id.uuid())
            .bind(due.fence)
            .bind(due_at.map(Timestamp::millis))
            .bind(due.cursor.map(|id| id.uuid()))
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }
}

impl SqlTx {
    /// Changes the number of recipients of a draft; `false` when it is none.
    async fn grow_draft(&mut self, tenant: TenantId, id: BroadcastId, by: i64) -> Result<bool> {
        let done = sqlx::query("UPDATE broadcasts SET total = total + $3 WHERE tenant_id = $1 AND id = $2 AND status = $4")
            .bind(tenant.0)
            .bind(id.uuid())
            .bind(by)
            .bind(Status::Draft.number())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }
}
