//! Senders.

use async_trait::async_trait;
use nuncio_domain::config::Sender;
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{SenderId, TenantId, Timestamp};
use nuncio_store::{ProjectRepo as _, Result, SenderRepo};
use sqlx::QueryBuilder;

use super::query::{List, of_tenant};
use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::json;

macro_rules! columns {
    () => {
        "id, name, phone_number, is_default, email_receiving, allowed_countries, daily_spend_limit, updated_at"
    };
}

/// Begins a query with the senders of a tenant.
const SELECT: &str = concat!("SELECT ", columns!(), " FROM senders WHERE tenant_id = ");

impl Record for Sender {
    const TABLE: &'static str = "senders";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            phone_number: row.get("phone_number")?,
            is_default: row.get("is_default")?,
            email_receiving_enabled: row.get("email_receiving")?,
            allowed_countries: row.json("allowed_countries")?,
            daily_spend_limit: row.get("daily_spend_limit")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

/// The senders of a tenant, in the order of their ids.
pub(super) async fn all(tx: &mut SqlTx, tenant: TenantId) -> Result<Vec<Sender>> {
    let mut query = QueryBuilder::<Db>::new(SELECT);
    query.push_bind(tenant.0).push(" ORDER BY id");
    tx.all(query.build()).await
}

const INSERT: &str = r"
    INSERT INTO senders (tenant_id, id, name, phone_number, is_default, email_receiving,
        allowed_countries, daily_spend_limit, created_at, updated_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const UPDATE: &str = r"
    UPDATE senders
    SET name = $3, phone_number = $4, is_default = $5, email_receiving = $6,
        allowed_countries = $7, daily_spend_limit = $8, updated_at = $9
    WHERE tenant_id = $1 AND id = $2";

#[async_trait]
impl SenderRepo for SqlTx {
    async fn insert_sender(&mut self, tenant: TenantId, sender: &Sender, now: Timestamp) -> Result<()> {
        let (receives, countries, spend) = (sender.email_receiving_enabled, json(&sender.allowed_countries)?, sender.daily_spend_limit);
        self.run(sql!(
            INSERT,
            [tenant, sender.id, &sender.name, &sender.phone_number, sender.is_default, receives, countries, spend, now, sender.updated_at]
        ))
        .await?;
        clear_other_defaults(self, tenant, sender).await?;
        self.raise_epoch(tenant).await
    }

    async fn update_sender(&mut self, tenant: TenantId, sender: &Sender) -> Result<bool> {
        let (receives, countries, spend) = (sender.email_receiving_enabled, json(&sender.allowed_countries)?, sender.daily_spend_limit);
        let changed = self
            .changes(sql!(
                UPDATE,
                [tenant, sender.id, &sender.name, &sender.phone_number, sender.is_default, receives, countries, spend, sender.updated_at]
            ))
            .await?;
        if !changed {
            return Ok(false);
        }
        clear_other_defaults(self, tenant, sender).await?;
        self.raise_epoch(tenant).await?;
        Ok(true)
    }

    async fn find_senders(&mut self, tenant: TenantId, ids: &[SenderId]) -> Result<Vec<Sender>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(SELECT);
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "id", ids.iter().map(|id| id.uuid()));
        self.all(query.build()).await
    }

    async fn list_senders(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Sender>> {
        let streams = vec![of_tenant(tenant.0, |_| {})];
        let list = List { joined: None, columns: columns!(), table: "senders", id: "id", streams, filter: None };
        self.page(list, page).await
    }

    async fn delete_sender(&mut self, tenant: TenantId, id: SenderId) -> Result<bool> {
        self.run(sql!("DELETE FROM connections WHERE tenant_id = $1 AND sender_id = $2", [tenant, id])).await?;
        let deleted = self.changes(sql!("DELETE FROM senders WHERE tenant_id = $1 AND id = $2", [tenant, id])).await?;
        self.raise_epoch(tenant).await?;
        Ok(deleted)
    }
}

async fn clear_other_defaults(tx: &mut SqlTx, tenant: TenantId, sender: &Sender) -> Result<()> {
    if !sender.is_default {
        return Ok(());
    }
    tx.write(sql!("UPDATE senders SET is_default = 0 WHERE tenant_id = $1 AND is_default <> 0 AND id <> $2", [tenant, sender.id])).await
}
