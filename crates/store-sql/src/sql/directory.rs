//! Projects, keys, senders and connections.

use async_trait::async_trait;
use nuncio_domain::config::{ApiKey, Connection, Project, Sender, World};
use nuncio_domain::id::Id as _;
use nuncio_domain::key::KeyHash;
use nuncio_domain::permission::Permissions;
use nuncio_domain::{Channel, ConnectionId, Environment, KeyId, ProjectId, Redacted, SenderId, TeamId, TenantId, Timestamp};
use nuncio_store::{DirectoryRepo, Result, StoreError};
use uuid::Uuid;

use super::SqlTx;
use crate::SqlxResult as _;
use crate::row::{corrupt, json};

type ProjectRow = (Uuid, String, Uuid, String, i64, i64);
type KeyRow = (i64, Uuid, String, Vec<u8>, String, Option<i64>);

const PROJECTS: &str = "SELECT p.id, p.name, p.team_id, p.team_name, l.tenant_id, t.tenant_id FROM projects p \
     JOIN worlds l ON l.project_id = p.id AND l.environment = 'live' JOIN worlds t ON t.project_id = p.id AND t.environment = 'test' \
     ORDER BY p.created_at, p.id";

fn project((id, name, team, team_name, live, test): ProjectRow) -> Project {
    Project { id: ProjectId::from_uuid(id), name, team: TeamId::from_uuid(team), team_name, live: TenantId(live), test: TenantId(test) }
}

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

fn environment(text: &str) -> Result<Environment> {
    Environment::parse(text).ok_or_else(|| corrupt("worlds", text))
}

#[async_trait]
impl DirectoryRepo for SqlTx {
    async fn insert_project(&mut self, project: Project, now: Timestamp) -> Result<Project> {
        sqlx::query("INSERT INTO projects (id, name, team_id, team_name, created_at) VALUES ($1, $2, $3, $4, $5)")
            .bind(project.id.uuid())
            .bind(&project.name)
            .bind(project.team.uuid())
            .bind(&project.team_name)
            .bind(now.millis())
            .execute(self.conn())
            .await
            .or_end(self)?;
        let mut tenants = [TenantId(0); 2];
        for (slot, environment) in tenants.iter_mut().zip([Environment::Live, Environment::Test]) {
            let (tenant,): (i64,) = sqlx::query_as(
                "INSERT INTO worlds (tenant_id, project_id, environment, epoch) SELECT COALESCE(MAX(tenant_id), 0) + 1, $1, $2, 1 FROM worlds RETURNING tenant_id",
            )
            .bind(project.id.uuid())
            .bind(environment.as_str())
            .fetch_one(self.conn())
            .await
            .or_end(self)?;
            *slot = TenantId(tenant);
        }
        let [live, test] = tenants;
        Ok(Project { live, test, ..project })
    }

    async fn list_projects(&mut self) -> Result<Vec<Project>> {
        let rows: Vec<ProjectRow> = sqlx::query_as(PROJECTS).fetch_all(self.conn()).await.or_end(self)?;
        Ok(rows.into_iter().map(project).collect())
    }

    async fn load_world(&mut self, tenant: TenantId) -> Result<Option<World>> {
        // The epoch is read first: should the rest be newer, the accept finds the epoch stale and plans again.
        let head: Option<(String, i64)> = sqlx::query_as("SELECT environment, epoch FROM worlds WHERE tenant_id = $1")
            .bind(tenant.0)
            .fetch_optional(self.conn())
            .await
            .or_end(self)?;
        let Some((text, epoch)) = head else { return Ok(None) };
        let environment = environment(&text)?;
        let projects: Vec<ProjectRow> = sqlx::query_as(PROJECTS).fetch_all(self.conn()).await.or_end(self)?;
        let project = projects
            .into_iter()
            .map(project)
            .find(|p| p.tenant(environment) == tenant)
            .ok_or_else(|| corrupt("worlds", "a world without its project"))?;
        let senders: Vec<(Uuid, String, String, i16, i64)> =
            sqlx::query_as("SELECT id, name, phone_number, is_default, updated_at FROM senders WHERE tenant_id = $1 ORDER BY id")
                .bind(tenant.0)
                .fetch_all(self.conn())
                .await
                .or_end(self)?;
        let connections: Vec<(Uuid, Uuid, i16, String, String, Vec<u8>, i64)> = sqlx::query_as(
            "SELECT id, sender_id, channel, kind, settings, sealed, updated_at FROM connections WHERE tenant_id = $1 ORDER BY id",
        )
        .bind(tenant.0)
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        let senders = senders
            .into_iter()
            .map(|(id, name, phone_number, is_default, updated_at)| Sender {
                id: SenderId::from_uuid(id),
                name,
                phone_number,
                is_default: is_default != 0,
                updated_at: Timestamp::from_millis(updated_at),
            })
            .collect();
        let connections = connections
            .into_iter()
            .map(|(id, sender, channel, kind, settings, sealed, updated_at)| {
                Ok(Connection {
                    id: ConnectionId::from_uuid(id),
                    sender: SenderId::from_uuid(sender),
                    channel: Channel::from_number(channel).ok_or_else(|| corrupt("connections", format!("channel {channel}")))?,
                    kind,
                    settings: serde_json::from_str(&settings).map_err(|e| corrupt("connections", e))?,
                    sealed: Redacted::new(sealed),
                    updated_at: Timestamp::from_millis(updated_at),
                })
            })
            .collect::<Result<_>>()?;
        Ok(Some(World { tenant, environment, epoch, project, senders, connections }))
    }

    async fn raise_epoch(&mut self, tenant: TenantId) -> Result<()> {
        sqlx::query("UPDATE worlds SET epoch = epoch + 1 WHERE tenant_id = $1").bind(tenant.0).execute(self.conn()).await.or_end(self)?;
        Ok(())
    }

    async fn insert_key(&mut self, key: &ApiKey, now: Timestamp) -> Result<()> {
        sqlx::query(
            "INSERT INTO api_keys (tenant_id, id, name, hash, permissions, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(key.tenant.0)
        .bind(key.id.uuid())
        .bind(&key.name)
        .bind(key.hash.as_slice())
        .bind(json(&key.permissions)?)
        .bind(now.millis())
        .bind(key.revoked_at.map(Timestamp::millis))
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn find_key(&mut self, hash: &KeyHash) -> Result<Option<(ApiKey, Environment)>> {
        let row: Option<(i64, Uuid, String, Vec<u8>, String, Option<i64>, String)> = sqlx::query_as(
            "SELECT k.tenant_id, k.id, k.name, k.hash, k.permissions, k.revoked_at, w.environment FROM api_keys k \
             JOIN worlds w ON w.tenant_id = k.tenant_id WHERE k.hash = $1",
        )
        .bind(hash.as_slice())
        .fetch_optional(self.conn())
        .await
        .or_end(self)?;
        row.map(|(tenant, id, name, hash, permissions, revoked_at, text)| {
            Ok((key((tenant, id, name, hash, permissions, revoked_at))?, environment(&text)?))
        })
        .transpose()
    }

    async fn list_keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>> {
        let rows: Vec<KeyRow> =
            sqlx::query_as("SELECT tenant_id, id, name, hash, permissions, revoked_at FROM api_keys WHERE tenant_id = $1 ORDER BY id")
                .bind(tenant.0)
                .fetch_all(self.conn())
                .await
                .or_end(self)?;
        rows.into_iter().map(key).collect()
    }

    async fn revoke_key(&mut self, tenant: TenantId, id: KeyId, now: Timestamp) -> Result<bool> {
        let done = sqlx::query("UPDATE api_keys SET revoked_at = $3 WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL")
            .bind(tenant.0)
            .bind(id.uuid())
            .bind(now.millis())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn insert_sender(&mut self, tenant: TenantId, sender: &Sender, now: Timestamp) -> Result<()> {
        sqlx::query("INSERT INTO senders (tenant_id, id, name, phone_number, is_default, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7)")
            .bind(tenant.0)
            .bind(sender.id.uuid())
            .bind(&sender.name)
            .bind(&sender.phone_number)
            .bind(i16::from(sender.is_default))
            .bind(now.millis())
            .bind(sender.updated_at.millis())
            .execute(self.conn())
            .await
            .or_end(self)?;
        self.clear_other_defaults(tenant, sender).await?;
        self.raise_epoch(tenant).await
    }

    async fn update_sender(&mut self, tenant: TenantId, sender: &Sender) -> Result<bool> {
        let done = sqlx::query(
            "UPDATE senders SET name = $3, phone_number = $4, is_default = $5, updated_at = $6 WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.0)
        .bind(sender.id.uuid())
        .bind(&sender.name)
        .bind(&sender.phone_number)
        .bind(i16::from(sender.is_default))
        .bind(sender.updated_at.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        self.clear_other_defaults(tenant, sender).await?;
        self.raise_epoch(tenant).await?;
        Ok(true)
    }

    async fn put_connection(&mut self, tenant: TenantId, connection: &Connection) -> Result<()> {
        let settings = json(&connection.settings)?;
        sqlx::query(
            "INSERT INTO connections (tenant_id, id, sender_id, channel, kind, settings, sealed, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
             ON CONFLICT (tenant_id, sender_id, channel) DO UPDATE SET kind = excluded.kind, settings = excluded.settings, \
             sealed = excluded.sealed, updated_at = excluded.updated_at",
        )
        .bind(tenant.0)
        .bind(connection.id.uuid())
        .bind(connection.sender.uuid())
        .bind(connection.channel.number())
        .bind(&connection.kind)
        .bind(settings)
        .bind(connection.sealed.expose().as_slice())
        .bind(connection.updated_at.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        self.raise_epoch(tenant).await
    }

    async fn delete_connection(&mut self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<bool> {
        let done = sqlx::query("DELETE FROM connections WHERE tenant_id = $1 AND sender_id = $2 AND channel = $3")
            .bind(tenant.0)
            .bind(sender.uuid())
            .bind(channel.number())
            .execute(self.conn())
            .await
            .or_end(self)?;
        self.raise_epoch(tenant).await?;
        Ok(done.rows_affected() == 1)
    }
}

impl SqlTx {
    async fn clear_other_defaults(&mut self, tenant: TenantId, sender: &Sender) -> Result<(), StoreError> {
        if !sender.is_default {
            return Ok(());
        }
        sqlx::query("UPDATE senders SET is_default = 0 WHERE tenant_id = $1 AND is_default <> 0 AND id <> $2")
            .bind(tenant.0)
            .bind(sender.id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(())
    }
}
