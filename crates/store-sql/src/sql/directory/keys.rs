//! API keys.

use nuncio_domain::config::ApiKey;
use nuncio_domain::id::Id as _;
use nuncio_domain::key::KeyHash;
use nuncio_domain::permission::Permissions;
use nuncio_domain::{Environment, KeyId, TenantId, Timestamp};
use nuncio_store::Result;
use uuid::Uuid;

use super::super::SqlTx;
use super::environment;
use crate::row::{corrupt, json};

type KeyRow = (i64, Uuid, String, Vec<u8>, String, Option<i64>);
type KeyAndEnvironment = (i64, Uuid, String, Vec<u8>, String, Option<i64>, String);

fn key((tenant, id, name, hash, permissions, revoked_at): KeyRow) -> Result<ApiKey> {
    let hash: KeyHash = hash.try_into().map_err(|_| corrupt("api_keys", "hash length"))?;
    let permissions: Permissions = serde_json::from_str(&permissions).map_err(|e| corrupt("api_keys", e))?;
    Ok(ApiKey {
        tenant: TenantId(tenant),
        id: KeyId::from_uuid(id),
        name,
        hash,
        permissions,
        revoked_at: revoked_at.map(Timestamp::from_millis),
    })
}

pub(super) async fn insert(tx: &mut SqlTx, key: &ApiKey, now: Timestamp) -> Result<()> {
    tx.run(sql!(
        r"
            INSERT INTO api_keys (tenant_id, id, name, hash, permissions, created_at, revoked_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7)",
        [
            key.tenant.0,
            key.id.uuid(),
            &key.name,
            key.hash.as_slice(),
            json(&key.permissions)?,
            now.millis(),
            key.revoked_at.map(Timestamp::millis)
        ]
    ))
    .await?;
    Ok(())
}

pub(super) async fn find(tx: &mut SqlTx, hash: &KeyHash) -> Result<Option<(ApiKey, Environment)>> {
    let row: Option<KeyAndEnvironment> = tx
        .optional(sql!(
            r"
            SELECT k.tenant_id, k.id, k.name, k.hash, k.permissions, k.revoked_at, w.environment
            FROM api_keys k
            JOIN worlds w ON w.tenant_id = k.tenant_id
            WHERE k.hash = $1",
            [hash.as_slice()]
        ))
        .await?;
    row.map(|(tenant, id, name, hash, permissions, revoked_at, text)| {
        Ok((key((tenant, id, name, hash, permissions, revoked_at))?, environment(&text)?))
    })
    .transpose()
}

pub(super) async fn list(tx: &mut SqlTx, tenant: TenantId) -> Result<Vec<ApiKey>> {
    let rows: Vec<KeyRow> = tx
        .all(sql!(
            r"
            SELECT tenant_id, id, name, hash, permissions, revoked_at
            FROM api_keys
            WHERE tenant_id = $1
            ORDER BY id",
            [tenant.0]
        ))
        .await?;
    rows.into_iter().map(key).collect()
}

pub(super) async fn revoke(tx: &mut SqlTx, tenant: TenantId, id: KeyId, now: Timestamp) -> Result<bool> {
    tx.changes(sql!(
        r"
            UPDATE api_keys
            SET revoked_at = $3
            WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
        [tenant.0, id.uuid(), now.millis()]
    ))
    .await
}
