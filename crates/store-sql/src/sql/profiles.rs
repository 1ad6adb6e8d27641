//! Business accounts.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::profile::KeptAccount;
use nuncio_domain::{SenderId, TenantId};
use nuncio_store::{ProfileRepo, Result};
use sqlx::QueryBuilder;

use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::json;

impl Record for KeptAccount {
    const TABLE: &'static str = "business_accounts";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            sender: row.get("sender_id")?,
            version: row.get("version")?,
            account: row.json("account")?,
            unsent: row.get("unsent")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

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
            [tenant, kept.sender, kept.version, json(&kept.account)?, kept.unsent, kept.updated_at]
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
        self.all(query.build()).await
    }

    async fn delete_account(&mut self, tenant: TenantId, sender: SenderId) -> Result<bool> {
        self.changes(sql!("DELETE FROM business_accounts WHERE tenant_id = $1 AND sender_id = $2", [tenant, sender])).await
    }
}
