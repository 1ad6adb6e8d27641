//! The recipients of broadcasts, and the imports that bring them.

use async_trait::async_trait;
use nuncio_domain::broadcast::{BroadcastContact, ContactStatus, Status};
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::id::{Id as _, uuid_floor};
use nuncio_domain::message::Failure;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastContactId, BroadcastId, MessageId, Recipient, SenderId, TenantId, Timestamp, limits};
use nuncio_store::{BroadcastRecipientRepo, ImportProgress, NewBroadcastContact, RecipientScan, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::super::query::List;
use super::super::{Columns, Db, Record as _, SqlTx, dialect};
use super::recipient_row::any_status;
use super::{by_status, numbers};
use crate::row::{json, number};

/// Rows that are looked at once a search finds less than it asked for.
const STRIDE: u32 = 2_000;

macro_rules! columns {
    () => {
        "c.id, c.kind, c.recipient, c.message_id, c.outcome, c.variables, c.failure, c.processed_at, \
         s.status, s.channel, s.detail, s.updated_at AS changed_at"
    };
}

macro_rules! table {
    () => {
        "broadcast_contacts c LEFT JOIN states s ON s.tenant_id = c.tenant_id AND s.id = c.message_id"
    };
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
            let mut query = dialect::insert_contacts(tenant.0, id.uuid(), rows.collect::<Result<_>>()?);
            added += self.run(query.build()).await?;
        }
        self.grow_draft(tenant, id, added as i64).await?;
        Ok(Some(added))
    }

    async fn find_broadcast_import(&mut self, tenant: TenantId, id: BroadcastId, name: &str) -> Result<Option<ImportProgress>> {
        let row = self
            .optional(sql!(
                r"
                SELECT read_rows, added, duplicates, invalid
                FROM broadcast_imports
                WHERE tenant_id = $1 AND broadcast_id = $2 AND name = $3",
                [tenant, id, name]
            ))
            .await?;
        Ok(row.map(|(rows, added, duplicates, invalid)| ImportProgress { rows, added, duplicates, invalid }))
    }

    async fn put_broadcast_import(&mut self, tenant: TenantId, id: BroadcastId, name: &str, progress: &ImportProgress) -> Result<()> {
        self.write(sql!(
            r"
            INSERT INTO broadcast_imports (tenant_id, broadcast_id, name, read_rows, added, duplicates, invalid)
            VALUES ($1, $2, $3, $4, $5, $6, $7)
            ON CONFLICT (tenant_id, broadcast_id, name) DO UPDATE SET
                read_rows = excluded.read_rows,
                added = excluded.added,
                duplicates = excluded.duplicates,
                invalid = excluded.invalid",
            [tenant, id, name, progress.rows, progress.added, progress.duplicates, progress.invalid]
        ))
        .await
    }

    async fn count_suppressed_contacts(&mut self, tenant: TenantId, id: BroadcastId, sender: SenderId) -> Result<u64> {
        let (count,) = self
            .one(sql!(
                r"
                SELECT COUNT(DISTINCT c.id)
                FROM suppressions s
                JOIN broadcast_contacts c
                  ON c.tenant_id = s.tenant_id AND c.kind = s.kind AND c.recipient = s.identifier
                WHERE s.tenant_id = $1 AND s.sender_id IN ($2, $3) AND c.broadcast_id = $4",
                [tenant, sender, Uuid::nil(), id]
            ))
            .await?;
        Ok(count)
    }

    async fn suppressed_since(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        sender: SenderId,
        since: Timestamp,
    ) -> Result<Vec<(SuppressionReason, u64)>> {
        // Ids begin with their time: those since then are a range of the key.
        let rows: Vec<(i16, u64)> = self
            .all(sql!(
                r"
                SELECT s.reason, COUNT(DISTINCT c.id)
                FROM suppressions s
                JOIN broadcast_contacts c
                  ON c.tenant_id = s.tenant_id AND c.kind = s.kind AND c.recipient = s.identifier
                WHERE s.tenant_id = $1 AND s.id >= $5 AND s.sender_id IN ($2, $3) AND c.broadcast_id = $4
                GROUP BY s.reason",
                [tenant, sender, Uuid::nil(), id, uuid_floor(since)]
            ))
            .await?;
        rows.into_iter()
            .map(|(reason, count)| Ok((number(SuppressionReason::from_number, "suppressions", "reason", reason)?, count)))
            .collect()
    }

    async fn list_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        status: &[ContactStatus],
        page: PageRequest,
    ) -> Result<Page<BroadcastContact>> {
        let rare = !status.is_empty() && status.iter().all(|s| matches!(s, ContactStatus::Failed | ContactStatus::Skipped));
        let of = move |query: &mut QueryBuilder<Db>| {
            query.push("c.tenant_id = ").push_bind(tenant.0).push(" AND c.broadcast_id = ").push_bind(id.uuid());
            // In these words, the index of such rows serves it.
            query.push(if rare { " AND c.outcome <> 0" } else { "" });
        };
        let numbers = if rare { numbers(status.iter().map(|s| s.number())) } else { Vec::new() };
        let streams = by_status("c.outcome", numbers, of);
        let filter = if rare { None } else { any_status(status.to_vec()) };
        let list = List { joined: None, columns: columns!(), table: table!(), id: "c.id", streams, filter };
        self.page(list, page).await
    }

    async fn find_broadcast_recipient(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        recipient: &Recipient,
    ) -> Result<Option<BroadcastContact>> {
        self.optional(sql!(
            concat!(
                "SELECT ",
                columns!(),
                " FROM ",
                table!(),
                " WHERE c.tenant_id = $1 AND c.kind = $2 AND c.recipient = $3 AND c.broadcast_id = $4"
            ),
            [tenant, recipient.kind, &recipient.identifier, id]
        ))
        .await
    }

    async fn delete_broadcast_contact(&mut self, tenant: TenantId, id: BroadcastId, contact: BroadcastContactId) -> Result<Option<bool>> {
        if !self.grow_draft(tenant, id, 0).await? {
            return Ok(None);
        }
        let changed = self
            .run(sql!("DELETE FROM broadcast_contacts WHERE tenant_id = $1 AND broadcast_id = $2 AND id = $3", [tenant, id, contact]))
            .await?;
        self.grow_draft(tenant, id, -(changed as i64)).await?;
        Ok(Some(changed == 1))
    }

    async fn find_broadcast_contact(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        contact: BroadcastContactId,
    ) -> Result<Option<NewBroadcastContact>> {
        self.optional(sql!(
            r"
                SELECT id, kind, recipient, variables
                FROM broadcast_contacts
                WHERE tenant_id = $1 AND broadcast_id = $2 AND id = $3",
            [tenant, id, contact]
        ))
        .await
    }

    async fn pending_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        after: Option<BroadcastContactId>,
        limit: u32,
    ) -> Result<RecipientScan<NewBroadcastContact>> {
        let (mut found, mut after, mut looked_at, mut rows) = (Vec::new(), after, 0, limit);
        while looked_at < limits::SCAN_ROWS {
            let scanned = self
                .rows(sql!(
                    r"
                    SELECT id, kind, recipient, variables, message_id, outcome
                    FROM broadcast_contacts
                    WHERE tenant_id = $1 AND broadcast_id = $2 AND id > $3
                    ORDER BY id
                    LIMIT $4",
                    [tenant, id, after.map_or(Uuid::nil(), |id| id.uuid()), rows]
                ))
                .await?;
            let through = scanned.len() < rows as usize;
            for row in &scanned {
                let columns = Columns { row, table: "broadcast_contacts" };
                after = columns.get("id").map(Some)?;
                if columns.get::<Uuid>("message_id")?.is_nil() && columns.get::<i16>("outcome")? == 0 {
                    found.push(NewBroadcastContact::read(&columns)?);
                    if found.len() == limit as usize {
                        return Ok(RecipientScan { found, next: after });
                    }
                }
            }
            if through {
                return Ok(RecipientScan { found, next: None });
            }
            looked_at += rows;
            rows = STRIDE;
        }
        Ok(RecipientScan { found, next: after })
    }

    async fn end_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        ended: &[(BroadcastContactId, Option<Failure>)],
        now: Timestamp,
    ) -> Result<u64> {
        // Locked, so that the status cannot change before this transaction ends.
        let sending: Option<i64> = self.value(sql!(dialect::LOCK_SENDING, [tenant, id, Status::Sending])).await?;
        if sending.is_none() {
            return Ok(0);
        }
        let (mut failed, mut skipped) = (0, 0);
        for (contact, failure) in ended {
            let (outcome, count) = match failure {
                Some(_) => (ContactStatus::Failed, &mut failed),
                None => (ContactStatus::Skipped, &mut skipped),
            };
            *count += self
                .run(sql!(
                    r"
                    UPDATE broadcast_contacts
                    SET outcome = $4, failure = $5, processed_at = $6
                    WHERE tenant_id = $1
                      AND broadcast_id = $2
                      AND id = $3
                      AND outcome = 0
                      AND message_id = $7",
                    [tenant, id, *contact, outcome, failure.as_ref().map(json).transpose()?, now, Uuid::nil()]
                ))
                .await?;
        }
        if failed + skipped > 0 {
            self.run(sql!(dialect::COUNT_ENDED, [tenant, id, failed, skipped])).await?;
        }
        Ok(failed + skipped)
    }

    async fn unsent_broadcast_messages(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        after: Option<BroadcastContactId>,
        limit: u32,
    ) -> Result<RecipientScan<MessageId>> {
        let rows: Vec<(BroadcastContactId, Option<MessageId>)> = self
            .all(sql!(
                r"
                SELECT c.id, s.id
                FROM broadcast_contacts c
                LEFT JOIN states s
                  ON s.tenant_id = c.tenant_id
                  AND s.id = c.message_id
                  AND s.wait IN (1, 4)
                  AND s.status IN (1, 2, 3)
                WHERE c.tenant_id = $1 AND c.broadcast_id = $2 AND c.id > $3
                ORDER BY c.id
                LIMIT $4",
                [tenant, id, after.map_or(Uuid::nil(), |id| id.uuid()), limit]
            ))
            .await?;
        let next = rows.last().filter(|_| rows.len() == limit as usize).map(|(contact, _)| *contact);
        Ok(RecipientScan { found: rows.into_iter().filter_map(|(_, message)| message).collect(), next })
    }
}
