//! Senders.

use async_trait::async_trait;
use nuncio_domain::config::Sender;
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Micros, SenderId, TenantId, Timestamp};
use nuncio_store::{ProjectRepo as _, Result, SenderRepo};
use sqlx::{Database, QueryBuilder};
use uuid::Uuid;

use super::query::{List, of_tenant};
use super::{Db, SqlTx, dialect};
use crate::row::{corrupt, from_row, json};

macro_rules! columns {
    () => {
        "id, name, phone_number, is_default, email_receiving, allowed_countries, daily_spend_limit, updated_at"
    };
}

/// Begins a query with the senders of a tenant.
const SELECT: &str = concat!("SELECT ", columns!(), " FROM senders WHERE tenant_id = ");

from_row! {
    struct SenderRow {
        id: Uuid,
        name: String,
        phone_number: String,
        is_default: i16,
        email_receiving: i16,
        allowed_countries: String,
        daily_spend_limit: Option<i64>,
        updated_at: i64,
    }
}

impl SenderRow {
    fn decode(self) -> Result<Sender> {
        Ok(Sender {
            id: SenderId::from_uuid(self.id),
            name: self.name,
            phone_number: self.phone_number,
            is_default: self.is_default != 0,
            email_receiving_enabled: self.email_receiving != 0,
            allowed_countries: serde_json::from_str(&self.allowed_countries).map_err(|e| corrupt("senders", e))?,
            daily_spend_limit: self.daily_spend_limit.map(Micros),
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

/// The senders of a tenant, in the order of their ids.
pub(super) async fn all(tx: &mut SqlTx, tenant: TenantId) -> Result<Vec<Sender>> {
    let mut query = QueryBuilder::<Db>::new(SELECT);
    query.push_bind(tenant.0).push(" ORDER BY id");
    let rows: Vec<SenderRow> = tx.all(query.build()).await?;
    rows.into_iter().map(SenderRow::decode).collect()
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

type Query = sqlx::query::Query<'static, Db, <Db as Database>::Arguments>;

/// Binds `$1` to `$8` of [`INSERT`] or [`UPDATE`].
fn bind(query: Query, tenant: TenantId, sender: &Sender) -> Result<Query> {
    Ok(query
        .bind(tenant.0)
        .bind(sender.id.uuid())
        .bind(sender.name.clone())
        .bind(sender.phone_number.clone())
        .bind(i16::from(sender.is_default))
        .bind(i16::from(sender.email_receiving_enabled))
        .bind(json(&sender.allowed_countries)?)
        .bind(sender.daily_spend_limit.map(|limit| limit.0)))
}

#[async_trait]
impl SenderRepo for SqlTx {
    async fn insert_sender(&mut self, tenant: TenantId, sender: &Sender, now: Timestamp) -> Result<()> {
        self.run(bind(sqlx::query(INSERT), tenant, sender)?.bind(now.millis()).bind(sender.updated_at.millis())).await?;
        clear_other_defaults(self, tenant, sender).await?;
        self.raise_epoch(tenant).await
    }

    async fn update_sender(&mut self, tenant: TenantId, sender: &Sender) -> Result<bool> {
        let changed = self.run(bind(sqlx::query(UPDATE), tenant, sender)?.bind(sender.updated_at.millis())).await?;
        if changed == 0 {
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
        let rows: Vec<SenderRow> = self.all(query.build()).await?;
        rows.into_iter().map(SenderRow::decode).collect()
    }

    async fn list_senders(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Sender>> {
        let streams = vec![of_tenant(tenant.0, |_| {})];
        let list = List { joined: None, columns: columns!(), table: "senders", id: "id", streams, filter: None };
        let page = self.page(list, page, |row: &SenderRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(SenderRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn delete_sender(&mut self, tenant: TenantId, id: SenderId) -> Result<bool> {
        self.run(sql!("DELETE FROM connections WHERE tenant_id = $1 AND sender_id = $2", [tenant.0, id.uuid()])).await?;
        let changed = self.run(sql!("DELETE FROM senders WHERE tenant_id = $1 AND id = $2", [tenant.0, id.uuid()])).await?;
        self.raise_epoch(tenant).await?;
        Ok(changed == 1)
    }
}

async fn clear_other_defaults(tx: &mut SqlTx, tenant: TenantId, sender: &Sender) -> Result<()> {
    if !sender.is_default {
        return Ok(());
    }
    tx.run(sql!("UPDATE senders SET is_default = 0 WHERE tenant_id = $1 AND is_default <> 0 AND id <> $2", [tenant.0, sender.id.uuid()]))
        .await?;
    Ok(())
}
