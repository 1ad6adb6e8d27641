//! Suppressions.

use async_trait::async_trait;
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressKind, Recipient, SenderId, SuppressionId, TenantId, Timestamp};
use nuncio_store::{Result, Suppression, SuppressionRepo};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{List, of_tenant};
use super::{Db, SqlTx};
use crate::row::{corrupt, from_row};

const COLUMNS: &str = "id, kind, identifier, sender_id, reason, source";

from_row! {
    struct SuppressionRow {
        id: Uuid,
        kind: i16,
        identifier: String,
        sender_id: Uuid,
        reason: i16,
        source: String,
    }
}

impl SuppressionRow {
    fn decode(self) -> Result<Suppression> {
        let wrong = |what: &str, number: i16| corrupt("suppressions", format!("{what} {number}"));
        let kind = AddressKind::from_number(self.kind).ok_or_else(|| wrong("kind", self.kind))?;
        Ok(Suppression {
            id: SuppressionId::from_uuid(self.id),
            recipient: Recipient { kind, identifier: self.identifier },
            sender: (!self.sender_id.is_nil()).then(|| SenderId::from_uuid(self.sender_id)),
            reason: SuppressionReason::from_number(self.reason).ok_or_else(|| wrong("reason", self.reason))?,
            source: self.source,
        })
    }
}

#[async_trait]
impl SuppressionRepo for SqlTx {
    async fn list_suppressions(&mut self, tenant: TenantId, of: &[Recipient], page: PageRequest) -> Result<Page<Suppression>> {
        let of = of.to_vec();
        let streams = vec![of_tenant(tenant.0, move |query| {
            // One look into the index each: with `OR`, both databases read all suppressions of the tenant.
            for (n, recipient) in of.iter().enumerate() {
                query.push(if n == 0 { " AND id IN (" } else { " UNION ALL " });
                query.push("SELECT id FROM suppressions WHERE tenant_id = ").push_bind(tenant.0);
                query.push(" AND kind = ").push_bind(recipient.kind.number());
                query.push(" AND identifier = ").push_bind(recipient.identifier.clone());
            }
            query.push(if of.is_empty() { "" } else { ")" });
        })];
        let list = List { joined: None, columns: COLUMNS, table: "suppressions", id: "id", streams, filter: None };
        let page = self.page(list, page, |row: &SuppressionRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(SuppressionRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn insert_suppression(&mut self, tenant: TenantId, suppression: &Suppression, at: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                INSERT INTO suppressions (tenant_id, id, kind, identifier, sender_id, reason, source,
                    created_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (tenant_id, kind, identifier, sender_id, reason) DO NOTHING",
            [
                tenant.0,
                suppression.id.uuid(),
                suppression.recipient.kind.number(),
                &suppression.recipient.identifier,
                suppression.sender.map_or(Uuid::nil(), |s| s.uuid()),
                suppression.reason.number(),
                &suppression.source,
                at.millis()
            ]
        ))
        .await
    }

    async fn delete_opt_out(&mut self, tenant: TenantId, recipient: &Recipient, sender: SenderId, at: Timestamp) -> Result<bool> {
        let changed = self
            .run(sql!(
                r"
                DELETE FROM suppressions
                WHERE tenant_id = $1
                  AND kind = $2
                  AND identifier = $3
                  AND sender_id = $4
                  AND reason = $5
                  AND created_at <= $6",
                [tenant.0, recipient.kind.number(), &recipient.identifier, sender.uuid(), SuppressionReason::OptOut.number(), at.millis()]
            ))
            .await?;
        Ok(changed > 0)
    }

    async fn is_suppressed(&mut self, tenant: TenantId, kind: AddressKind, identifier: &str, sender: SenderId) -> Result<bool> {
        let row: Option<(i16,)> = self
            .optional(sql!(
                r"
                SELECT reason
                FROM suppressions
                WHERE tenant_id = $1
                  AND kind = $2
                  AND identifier = $3
                  AND sender_id IN ($4, $5)
                LIMIT 1",
                [tenant.0, kind.number(), identifier, Uuid::nil(), sender.uuid()]
            ))
            .await?;
        Ok(row.is_some())
    }

    async fn find_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<Option<Suppression>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM suppressions WHERE tenant_id = ").push_bind(tenant.0).push(" AND id = ").push_bind(id.uuid());
        let row: Option<SuppressionRow> = self.optional(query.build()).await?;
        row.map(SuppressionRow::decode).transpose()
    }

    async fn delete_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<bool> {
        self.changes(sql!("DELETE FROM suppressions WHERE tenant_id = $1 AND id = $2", [tenant.0, id.uuid()])).await
    }

    async fn rename_suppressions(&mut self, tenant: TenantId, from: &Recipient, to: &str) -> Result<()> {
        // What is known under both names is kept once.
        for statement in [
            r"
                DELETE FROM suppressions
                WHERE tenant_id = $1
                  AND kind = $2
                  AND identifier = $3
                  AND EXISTS (
                      SELECT 1
                      FROM suppressions s
                      WHERE s.tenant_id = $1
                        AND s.kind = $2
                        AND s.identifier = $4
                        AND s.sender_id = suppressions.sender_id
                        AND s.reason = suppressions.reason
                  )",
            "UPDATE suppressions SET identifier = $4 WHERE tenant_id = $1 AND kind = $2 AND identifier = $3",
        ] {
            self.run(sql!(statement, [tenant.0, from.kind.number(), &from.identifier, to])).await?;
        }
        Ok(())
    }
}
