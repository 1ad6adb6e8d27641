//! Business accounts.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::profile::KeptAccount;
use nuncio_domain::{SenderId, TenantId, Timestamp};
use nuncio_store::{ProfileRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};
use crate::row::{corrupt, json};

#[async_trait]
impl ProfileRepo for SqlTx {
    async fn put_account(&mut self, tenant: TenantId, kept: &KeptAccount) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO business_accounts (tenant_id, sender_id, version, account, unsent, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (tenant_id, sender_id) DO UPDATE SET
                    version = excluded.version,
                    account = excluded.account,
                    unsent = excluded.unsent,
                    updated_at = excluded.updated_at",
            [tenant.0, kept.sender.uuid(), kept.version, json(&kept.account)?, i16::from(kept.unsent), kept.updated_at.millis()]
        ))
        .await
    }

    async fn accounts_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<KeptAccount>> {
        if senders.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(
            r"
                SELECT sender_id, version, account, unsent, updated_at
                FROM business_accounts
                WHERE tenant_id = ",
        );
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "sender_id", senders.iter().map(|id| id.uuid()));
        let rows: Vec<(Uuid, i64, String, i16, i64)> = self.all(query.build()).await?;
        rows.into_iter()
            .map(|(sender, version, account, unsent, updated_at)| {
                Ok(KeptAccount {
                    sender: SenderId::from_uuid(sender),
                    version,
                    account: serde_json::from_str(&account).map_err(|e| corrupt("business_accounts", e))?,
                    unsent: unsent != 0,
                    updated_at: Timestamp::from_millis(updated_at),
                })
            })
            .collect()
    }

    async fn delete_account(&mut self, tenant: TenantId, sender: SenderId) -> Result<bool> {
        let changed =
            self.run(sql!("DELETE FROM business_accounts WHERE tenant_id = $1 AND sender_id = $2", [tenant.0, sender.uuid()])).await?;
        Ok(changed == 1)
    }
}
