//! Taking personal data out of what is kept.

use async_trait::async_trait;
use nuncio_domain::broadcast::ContactStatus;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::Failure;
use nuncio_domain::{AddressId, AddressKind, BroadcastContactId, BroadcastId, MessageId, Recipient, TenantId, Timestamp};
use nuncio_store::{BroadcastRecipientRepo as _, DeliveryTry, Erasure, ErasureRepo, QuotaRepo as _, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};
use crate::event_log;
use crate::row::{corrupt, json, number};

/// What is left of a request.
const ERASED: &str = r#"{"routing":{"reason":"the contact was erased"}}"#;

fn begin(text: &'static str, tenant: TenantId, column: &'static str, ids: &[MessageId]) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::<Db>::new(text);
    query.push(" WHERE tenant_id = ").push_bind(tenant.0);
    dialect::push_in(&mut query, column, ids.iter().map(|id| id.uuid()));
    query
}

#[async_trait]
impl ErasureRepo for SqlTx {
    async fn insert_erasure(&mut self, erasure: &Erasure, now: Timestamp) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO erasures (tenant_id, address_id, kind, identifier, erased_at)
                VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (tenant_id, address_id) DO NOTHING",
            [erasure.tenant, erasure.address, erasure.recipient.kind, &erasure.recipient.identifier, now]
        ))
        .await
    }

    async fn erase_parts(&mut self, tenant: TenantId, author: &Recipient) -> Result<()> {
        self.write(sql!("DELETE FROM reassemblies WHERE tenant_id = $1 AND sender = $2", [tenant, &author.identifier])).await
    }

    async fn list_erasures(&mut self, before: Timestamp, limit: u32) -> Result<Vec<Erasure>> {
        let rows: Vec<(TenantId, AddressId, i16, String)> = self
            .all(sql!(
                r"
                SELECT tenant_id, address_id, kind, identifier
                FROM erasures
                WHERE erased_at < $1
                ORDER BY erased_at, address_id
                LIMIT $2",
                [before, limit]
            ))
            .await?;
        rows.into_iter()
            .map(|(tenant, address, kind, identifier)| {
                let kind = number(AddressKind::from_number, "erasures", "kind", kind)?;
                Ok(Erasure { tenant, address, recipient: Recipient { kind, identifier } })
            })
            .collect()
    }

    async fn delete_erasure(&mut self, erasure: &Erasure) -> Result<()> {
        self.handle.empty_log();
        self.write(sql!("DELETE FROM erasures WHERE tenant_id = $1 AND address_id = $2", [erasure.tenant, erasure.address])).await
    }

    async fn messages_to_erase(
        &mut self,
        erasure: &Erasure,
        unfinished: bool,
        before: Option<MessageId>,
        limit: u32,
    ) -> Result<Vec<MessageId>> {
        let before = before.map_or(Uuid::max(), |id| id.uuid());
        // They can be few among many.
        if unfinished {
            self.limit_time(false).await?;
        }
        let found = self
            .column(sql!(
                r"
                SELECT id
                FROM messages
                WHERE tenant_id = $1
                  AND address_id = $2
                  AND id < $3
                  AND (direction = 1 AND recipient <> '' OR direction = 2 AND sent_from <> '')
                  AND (
                      $4 = 0
                      OR EXISTS (
                          SELECT 1
                          FROM states s
                          WHERE s.tenant_id = messages.tenant_id AND s.id = messages.id AND s.wait <> 0
                      )
                  )
                ORDER BY id DESC
                LIMIT $5",
                [erasure.tenant, erasure.address, before, unfinished, limit]
            ))
            .await;
        if unfinished {
            self.limit_time(true).await?;
        }
        found
    }

    async fn erase_messages(&mut self, tenant: TenantId, ids: &[MessageId]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let uuids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
        self.lock_messages(tenant, &uuids).await?;
        if self.find_storage(tenant).await?.is_some() {
            let freed = self.stored_bytes(tenant, &uuids).await?;
            self.count_stored(tenant.0, (ERASED.len() * ids.len()) as i64 - freed).await?;
        }
        let mut query = QueryBuilder::<Db>::new("UPDATE messages SET spooled = 0, request = ");
        query.push_bind(ERASED);
        query.push(
            ", recipient = CASE direction WHEN 1 THEN '' ELSE recipient END, sent_from = CASE direction WHEN 2 THEN '' ELSE sent_from END",
        );
        query.push(" WHERE tenant_id = ").push_bind(tenant.0);
        dialect::push_in(&mut query, "id", ids.iter().map(|id| id.uuid()));
        self.run(query.build()).await?;
        self.run(begin("DELETE FROM spool_chunks", tenant, "message_id", ids).build()).await?;
        self.run(begin("DELETE FROM receipts", tenant, "message_id", ids).build()).await?;
        self.forget_answers(tenant, &uuids).await
    }

    async fn erase_events(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid) -> Result<()> {
        let rows: Vec<(i64, Vec<u8>)> = self
            .all(sql!(
                r"
                SELECT DISTINCT l.position, l.entries
                FROM resource_log r
                JOIN log l ON l.tenant_id = r.tenant_id AND l.batch = r.batch
                WHERE r.tenant_id = $1 AND r.resource_id = $2",
                [tenant, resource]
            ))
            .await?;
        for (position, entries) in rows {
            self.run(sql!(
                "UPDATE log SET entries = $3 WHERE tenant_id = $1 AND position = $2",
                [tenant, position, event_log::forget(&entries, kind, resource)?]
            ))
            .await?;
        }
        self.forget_answers(tenant, &[resource]).await
    }

    async fn erase_broadcast_contacts(&mut self, tenant: TenantId, recipient: &Recipient, mark: &str, now: Timestamp) -> Result<()> {
        let rows: Vec<(Uuid, Uuid, Option<String>)> = self
            .all(sql!(
                r"
                SELECT broadcast_id, id, failure
                FROM broadcast_contacts
                WHERE tenant_id = $1 AND kind = $2 AND recipient = $3
                ORDER BY broadcast_id, id",
                [tenant, recipient.kind, &recipient.identifier]
            ))
            .await?;
        let mut skipped = Vec::new();
        for (broadcast, id, failure) in rows {
            let (draft, contact) = (BroadcastId::from_uuid(broadcast), BroadcastContactId::from_uuid(id));
            if self.delete_broadcast_contact(tenant, draft, contact).await?.is_some() {
                continue;
            }
            let words = |e: serde_json::Error| corrupt("broadcast_contacts", e);
            let failure: Option<Failure> = failure.as_deref().map(serde_json::from_str).transpose().map_err(words)?;
            let failure = failure.map(|failure| json(&Failure::own(failure.code, failure.code.as_str()))).transpose()?;
            // The row is locked from here on: whoever would hand it over finds it skipped, or has done so.
            let pending = self
                .run(sql!(
                    r"
                    UPDATE broadcast_contacts
                    SET outcome = $4, processed_at = $5
                    WHERE tenant_id = $1 AND broadcast_id = $2 AND id = $3 AND outcome = 0 AND message_id = $6",
                    [tenant, broadcast, id, ContactStatus::Skipped, now, Uuid::nil()]
                ))
                .await?;
            if pending == 1 {
                skipped.push(broadcast);
            }
            self.run(sql!(
                r"
                    UPDATE broadcast_contacts
                    SET recipient = $4, variables = '{}', failure = $5
                    WHERE tenant_id = $1 AND broadcast_id = $2 AND id = $3",
                [tenant, broadcast, id, mark, failure]
            ))
            .await?;
        }
        for broadcast in skipped {
            self.run(sql!(dialect::COUNT_ENDED, [tenant, broadcast, 0_i64, 1_i64])).await?;
        }
        Ok(())
    }
}

impl SqlTx {
    /// Locks messages, in the order in which everybody locks them.
    pub(super) async fn lock_messages(&mut self, tenant: TenantId, ids: &[Uuid]) -> Result<()> {
        let mut query = QueryBuilder::<Db>::new("SELECT id FROM messages WHERE tenant_id = ");
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "id", ids.iter().copied());
        query.push(" ORDER BY tenant_id, id").push(dialect::LOCK);
        self.write(query.build()).await
    }

    /// Takes what endpoints answered, which may repeat what they were told, out of the deliveries about resources.
    async fn forget_answers(&mut self, tenant: TenantId, resources: &[Uuid]) -> Result<()> {
        let mut query = QueryBuilder::<Db>::new("SELECT id, attempts FROM deliveries WHERE tenant_id = ");
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "resource_id", resources.iter().copied());
        // Sorted here: asked for an order, SQLite reads all deliveries of the tenant.
        let mut rows: Vec<(Uuid, String)> = self.all(query.build()).await?;
        rows.sort_unstable();
        for (id, attempts) in rows {
            let mut attempts: Vec<DeliveryTry> = serde_json::from_str(&attempts).map_err(|e| corrupt("deliveries", e))?;
            if attempts.iter_mut().fold(false, |had, attempt| attempt.body.take().is_some() | had) {
                self.run(sql!("UPDATE deliveries SET attempts = $3 WHERE tenant_id = $1 AND id = $2", [tenant, id, json(&attempts)?]))
                    .await?;
            }
        }
        Ok(())
    }
}
