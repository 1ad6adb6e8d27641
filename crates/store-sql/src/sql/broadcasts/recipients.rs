//! The recipients of broadcasts, and the imports that bring them.

use async_trait::async_trait;
use nuncio_domain::broadcast::{BroadcastContact, ContactStatus, Status, Variables};
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::id::{Id as _, uuid_floor};
use nuncio_domain::lifecycle::Detail;
use nuncio_domain::message::Failure;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressKind, BroadcastContactId, BroadcastId, Channel, MessageId, Recipient, SenderId, TenantId, Timestamp};
use nuncio_store::{BroadcastRecipientRepo, ImportProgress, NewBroadcastContact, Result};
use uuid::Uuid;

use super::super::query::List;
use super::super::{SqlTx, dialect};
use super::{by_status, number, numbers};
use crate::SqlxResult as _;
use crate::row::{corrupt, json};

const CONTACTS: &str = "broadcast_contacts";

#[derive(sqlx::FromRow)]
struct ContactRow {
    id: Uuid,
    kind: i16,
    recipient: String,
    status: i16,
    message_id: Option<Uuid>,
    channel: Option<i16>,
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
            channel: self.channel.map(|n| number(Channel::from_number(n), "states", "channel", n)).transpose()?,
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
impl BroadcastRecipientRepo for SqlTx {
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
        let columns = "c.id, c.kind, c.recipient, c.status, c.message_id, c.variables, c.failure, c.processed_at, s.channel, s.detail, s.updated_at AS changed_at";
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
}
