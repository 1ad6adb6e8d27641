//! API keys.

use async_trait::async_trait;
use nuncio_domain::config::ApiKey;
use nuncio_domain::id::Id as _;
use nuncio_domain::key::KeyHash;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Environment, KeyId, TenantId, Timestamp};
use nuncio_store::{KeyRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::projects::environment;
use super::query::{Condition, List, is};
use super::{Db, SqlTx, dialect};
use crate::row::{corrupt, from_row, json};

from_row! {
    struct KeyRow {
        tenant_id: i64,
        id: Uuid,
        name: String,
        hash: Vec<u8>,
        permissions: String,
        revoked_at: Option<i64>,
        expires_at: Option<i64>,
        last_used_at: Option<i64>,
        environment: String,
    }
}

macro_rules! columns {
    () => {
        "k.tenant_id, k.id, k.name, k.hash, k.permissions, k.revoked_at, k.expires_at, k.last_used_at, w.environment"
    };
}

macro_rules! table {
    () => {
        "api_keys k JOIN worlds w ON w.tenant_id = k.tenant_id"
    };
}

/// A query for [`KeyRow`]s.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM ", table!(), $rest)
    };
}

impl KeyRow {
    fn decode(self) -> Result<ApiKey> {
        Ok(ApiKey {
            tenant: TenantId(self.tenant_id),
            id: KeyId::from_uuid(self.id),
            name: self.name,
            hash: self.hash.try_into().map_err(|_| corrupt("api_keys", "hash length"))?,
            permissions: serde_json::from_str(&self.permissions).map_err(|e| corrupt("api_keys", e))?,
            revoked_at: self.revoked_at.map(Timestamp::from_millis),
            expires_at: self.expires_at.map(Timestamp::from_millis),
            last_used_at: self.last_used_at.map(Timestamp::from_millis),
        })
    }
}

#[async_trait]
impl KeyRepo for SqlTx {
    async fn insert_key(&mut self, key: &ApiKey, now: Timestamp) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO api_keys (tenant_id, id, name, hash, permissions, created_at, revoked_at, expires_at, last_used_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            [
                key.tenant.0,
                key.id.uuid(),
                &key.name,
                key.hash.as_slice(),
                json(&key.permissions)?,
                now.millis(),
                key.revoked_at.map(Timestamp::millis),
                key.expires_at.map(Timestamp::millis),
                key.last_used_at.map(Timestamp::millis),
            ]
        ))
        .await
    }

    async fn find_key(&mut self, hash: &KeyHash) -> Result<Option<(ApiKey, Environment)>> {
        let row: Option<KeyRow> = self.optional(sql!(select!(" WHERE k.hash = $1"), [hash.as_slice()])).await?;
        let Some(row) = row else { return Ok(None) };
        let environment = environment(&row.environment)?;
        Ok(Some((row.decode()?, environment)))
    }

    async fn list_keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>> {
        let rows: Vec<KeyRow> = self.all(sql!(select!(" WHERE k.tenant_id = $1 ORDER BY k.id"), [tenant.0])).await?;
        rows.into_iter().map(KeyRow::decode).collect()
    }

    async fn page_keys(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<ApiKey>> {
        let streams: Vec<Condition> = vec![is("k.tenant_id", tenant.0)];
        let list = List { joined: None, columns: columns!(), table: table!(), id: "k.id", streams, filter: None };
        let page = self.page(list, page, |row: &KeyRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(KeyRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn lookup_key(&mut self, tenant: TenantId, id: KeyId) -> Result<Option<ApiKey>> {
        let row: Option<KeyRow> = self.optional(sql!(select!(" WHERE k.tenant_id = $1 AND k.id = $2"), [tenant.0, id.uuid()])).await?;
        row.map(KeyRow::decode).transpose()
    }

    async fn revoke_key(&mut self, tenant: TenantId, id: KeyId, now: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE api_keys
                SET revoked_at = $3
                WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
            [tenant.0, id.uuid(), now.millis()]
        ))
        .await
    }

    async fn mark_keys_used(&mut self, keys: &[(TenantId, KeyId)], at: Timestamp) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let mut query = QueryBuilder::<Db>::new("UPDATE api_keys SET last_used_at = ");
        query.push_bind(at.millis()).push(
            r"
                WHERE (tenant_id, id) IN (
                    SELECT tenant_id, id
                    FROM api_keys
                    WHERE (tenant_id, id) IN (VALUES ",
        );
        let mut list = query.separated(", ");
        for (tenant, id) in keys {
            list.push("(").push_bind_unseparated(tenant.0).push_unseparated(", ").push_bind_unseparated(id.uuid()).push_unseparated(")");
        }
        query.push(") AND (last_used_at IS NULL OR last_used_at < ").push_bind(at.millis());
        // In one order, so that nodes that write the same keys do not wait for each other.
        query.push(") ORDER BY tenant_id, id").push(dialect::LOCK).push(")");
        self.write(query.build()).await
    }
}
