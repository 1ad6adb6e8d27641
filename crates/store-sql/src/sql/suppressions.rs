//! Suppressions.

use async_trait::async_trait;
use nuncio_domain::address::folded;
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressKind, Recipient, SenderId, SuppressionId, TenantId, Timestamp};
use nuncio_store::{Result, Suppression, SuppressionRepo};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{List, of_tenant};
use super::{Columns, Db, Record, SqlTx};

const COLUMNS: &str = "id, kind, identifier, sender_id, reason, source";

impl Record for Suppression {
    const TABLE: &'static str = "suppressions";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let sender: SenderId = row.get("sender_id")?;
        Ok(Self {
            id: row.get("id")?,
            recipient: Recipient { kind: row.get("kind")?, identifier: row.get("identifier")? },
            sender: Some(sender).filter(|sender| !sender.uuid().is_nil()),
            reason: row.get("reason")?,
            source: row.get("source")?,
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
                query.push(" AND identifier = ").push_bind(recipient.folded().into_owned());
            }
            query.push(if of.is_empty() { "" } else { ")" });
        })];
        let list = List { joined: None, columns: COLUMNS, table: "suppressions", id: "id", streams, filter: None };
        self.page(list, page).await
    }

    async fn insert_suppression(&mut self, tenant: TenantId, suppression: &Suppression, at: Timestamp) -> Result<bool> {
        let (recipient, sender) = (&suppression.recipient, suppression.sender.map_or(Uuid::nil(), |sender| sender.uuid()));
        self.changes(sql!(
            r"
                INSERT INTO suppressions (tenant_id, id, kind, identifier, sender_id, reason, source,
                    created_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (tenant_id, kind, identifier, sender_id, reason) DO NOTHING",
            [tenant, suppression.id, recipient.kind, &*recipient.folded(), sender, suppression.reason, &suppression.source, at]
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
                [tenant, recipient.kind, &*recipient.folded(), sender, SuppressionReason::OptOut, at]
            ))
            .await?;
        Ok(changed > 0)
    }

    async fn is_suppressed(&mut self, tenant: TenantId, kind: AddressKind, identifier: &str, sender: SenderId) -> Result<bool> {
        let reason: Option<i16> = self
            .value(sql!(
                r"
                SELECT reason
                FROM suppressions
                WHERE tenant_id = $1
                  AND kind = $2
                  AND identifier = $3
                  AND sender_id IN ($4, $5)
                LIMIT 1",
                [tenant, kind, &*folded(kind, identifier), Uuid::nil(), sender]
            ))
            .await?;
        Ok(reason.is_some())
    }

    async fn find_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<Option<Suppression>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM suppressions WHERE tenant_id = ").push_bind(tenant.0).push(" AND id = ").push_bind(id.uuid());
        self.optional(query.build()).await
    }

    async fn delete_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<bool> {
        self.changes(sql!("DELETE FROM suppressions WHERE tenant_id = $1 AND id = $2", [tenant, id])).await
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
            self.run(sql!(statement, [tenant, from.kind, &*from.folded(), &*folded(from.kind, to)])).await?;
        }
        Ok(())
    }
}
