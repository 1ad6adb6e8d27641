//! API keys.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::key::ApiKey;
use nuncio_domain::key::KeyHash;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Environment, KeyId, TenantId, Timestamp};
use nuncio_store::{KeyRepo, Result};
use sqlx::QueryBuilder;

use super::query::{Condition, List, is};
use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::json;

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

/// A query for keys.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM ", table!(), $rest)
    };
}

impl Record for ApiKey {
    const TABLE: &'static str = "api_keys";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            tenant: row.get("tenant_id")?,
            id: row.get("id")?,
            name: row.get("name")?,
            hash: row.get("hash")?,
            permissions: row.json("permissions")?,
            revoked_at: row.get("revoked_at")?,
            expires_at: row.get("expires_at")?,
            last_used_at: row.get("last_used_at")?,
        })
    }
}

/// A key with its environment.
struct Placed(ApiKey, Environment);

impl Record for Placed {
    const TABLE: &'static str = ApiKey::TABLE;

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self(ApiKey::read(row)?, row.get("environment")?))
    }
}

#[async_trait]
impl KeyRepo for SqlTx {
    async fn insert_key(&mut self, key: &ApiKey, now: Timestamp) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO api_keys (tenant_id, id, name, hash, permissions, created_at, revoked_at, expires_at, last_used_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            [key.tenant, key.id, &key.name, &key.hash, json(&key.permissions)?, now, key.revoked_at, key.expires_at, key.last_used_at]
        ))
        .await
    }

    async fn find_key(&mut self, hash: &KeyHash) -> Result<Option<(ApiKey, Environment)>> {
        let found = self.optional(sql!(select!(" WHERE k.hash = $1"), [hash])).await?;
        Ok(found.map(|Placed(key, environment)| (key, environment)))
    }

    async fn list_keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>> {
        self.all(sql!(select!(" WHERE k.tenant_id = $1 ORDER BY k.id"), [tenant])).await
    }

    async fn page_keys(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<ApiKey>> {
        let streams: Vec<Condition> = vec![is("k.tenant_id", tenant.0)];
        let list = List { joined: None, columns: columns!(), table: table!(), id: "k.id", streams, filter: None };
        self.page(list, page).await
    }

    async fn lookup_key(&mut self, tenant: TenantId, id: KeyId) -> Result<Option<ApiKey>> {
        self.optional(sql!(select!(" WHERE k.tenant_id = $1 AND k.id = $2"), [tenant, id])).await
    }

    async fn revoke_key(&mut self, tenant: TenantId, id: KeyId, now: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE api_keys
                SET revoked_at = $3
                WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
            [tenant, id, now]
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
