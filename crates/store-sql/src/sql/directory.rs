//! Projects, keys, senders and connections.

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_domain::config::{ApiKey, Connection, Project, Sender, World};
use nuncio_domain::id::Id as _;
use nuncio_domain::key::KeyHash;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::permission::Permissions;
use nuncio_domain::{Channel, ConnectionId, Environment, KeyId, Micros, ProjectId, Redacted, SenderId, TeamId, TenantId, Timestamp};
use nuncio_store::{DirectoryRepo, Result, StoreError};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{List, of_world};
use super::{Db, SqlTx, dialect};
use crate::SqlxResult as _;
use crate::row::{corrupt, json};

type ProjectRow = (Uuid, String, Uuid, String, i64, i64);
type KeyRow = (i64, Uuid, String, Vec<u8>, String, Option<i64>);

const PROJECTS: &str = r"
    SELECT p.id, p.name, p.team_id, p.team_name, l.tenant_id, t.tenant_id
    FROM projects p
    JOIN worlds l ON l.project_id = p.id AND l.environment = 'live'
    JOIN worlds t ON t.project_id = p.id AND t.environment = 'test'";

const SENDER_COLUMNS: &str = "id, name, phone_number, is_default, email_receiving, allowed_countries, daily_spend_limit, updated_at";
const SENDERS: &str = r"
    SELECT id, name, phone_number, is_default, email_receiving, allowed_countries, daily_spend_limit,
        updated_at
    FROM senders
    WHERE tenant_id = ";
const CONNECTIONS: &str = r"
    SELECT tenant_id, id, sender_id, channel, kind, settings, sealed, trusted, throttle, updated_at
    FROM connections
    WHERE ";

#[derive(sqlx::FromRow)]
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

#[derive(sqlx::FromRow)]
struct ConnectionRow {
    tenant_id: i64,
    id: Uuid,
    sender_id: Uuid,
    channel: i16,
    kind: String,
    settings: String,
    sealed: Vec<u8>,
    trusted: i16,
    throttle: Option<String>,
    updated_at: i64,
}

impl ConnectionRow {
    fn placed(self) -> Result<(TenantId, Connection)> {
        Ok((TenantId(self.tenant_id), self.decode()?))
    }

    fn decode(self) -> Result<Connection> {
        let throttle = self.throttle.map(|text| serde_json::from_str(&text)).transpose();
        Ok(Connection {
            id: ConnectionId::from_uuid(self.id),
            sender: SenderId::from_uuid(self.sender_id),
            channel: Channel::from_number(self.channel).ok_or_else(|| corrupt("connections", format!("channel {}", self.channel)))?,
            kind: self.kind,
            settings: serde_json::from_str(&self.settings).map_err(|e| corrupt("connections", e))?,
            sealed: Redacted::new(self.sealed),
            trusted: self.trusted != 0,
            throttle: throttle.map_err(|e| corrupt("connections", e))?,
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

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
                r"
                    INSERT INTO worlds (tenant_id, project_id, environment, epoch)
                    SELECT COALESCE(MAX(tenant_id), 0) + 1, $1, $2, 1
                    FROM worlds
                    RETURNING tenant_id",
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
        let mut query = QueryBuilder::<Db>::new(PROJECTS);
        query.push(" ORDER BY p.created_at, p.id");
        let rows: Vec<ProjectRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        Ok(rows.into_iter().map(project).collect())
    }

    async fn load_world(&mut self, tenant: TenantId) -> Result<Option<World>> {
        // The epoch is read first: should the rest be newer, the accept finds the epoch stale and plans again.
        let head: Option<(String, i64, Uuid)> = sqlx::query_as(
            r"
                SELECT environment, epoch, project_id
                FROM worlds
                WHERE tenant_id = $1",
        )
        .bind(tenant.0)
        .fetch_optional(self.conn())
        .await
        .or_end(self)?;
        let Some((text, epoch, project_id)) = head else { return Ok(None) };
        let environment = environment(&text)?;
        let mut query = QueryBuilder::<Db>::new(PROJECTS);
        query.push(" WHERE p.id = ").push_bind(project_id);
        let found: Option<ProjectRow> = query.build_query_as().fetch_optional(self.conn()).await.or_end(self)?;
        let project = found.map(project).ok_or_else(|| corrupt("worlds", "a world without its project"))?;
        let mut query = QueryBuilder::<Db>::new(SENDERS);
        query.push_bind(tenant.0).push(" ORDER BY id");
        let senders: Vec<SenderRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        let mut query = QueryBuilder::<Db>::new(CONNECTIONS);
        query.push("tenant_id = ").push_bind(tenant.0).push(" ORDER BY id");
        let connections: Vec<ConnectionRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        let senders = senders.into_iter().map(SenderRow::decode).collect::<Result<_>>()?;
        let connections = connections.into_iter().map(|row| row.decode().map(Arc::new)).collect::<Result<_>>()?;
        Ok(Some(World { tenant, environment, epoch, project, senders, connections }))
    }

    async fn raise_epoch(&mut self, tenant: TenantId) -> Result<()> {
        sqlx::query("UPDATE worlds SET epoch = epoch + 1 WHERE tenant_id = $1").bind(tenant.0).execute(self.conn()).await.or_end(self)?;
        Ok(())
    }

    async fn epochs(&mut self, tenants: &[TenantId]) -> Result<Vec<(TenantId, i64)>> {
        if tenants.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new("SELECT tenant_id, epoch FROM worlds WHERE tenant_id IN (");
        let mut list = query.separated(", ");
        for tenant in tenants {
            list.push_bind(tenant.0);
        }
        query.push(")");
        let rows: Vec<(i64, i64)> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        Ok(rows.into_iter().map(|(tenant, epoch)| (TenantId(tenant), epoch)).collect())
    }

    async fn check_key(&mut self, check: &[u8]) -> Result<bool> {
        sqlx::query("UPDATE worlds SET key_check = $1 WHERE key_check IS NULL").bind(check).execute(self.conn()).await.or_end(self)?;
        let (others,): (i64,) = sqlx::query_as("SELECT CAST(COUNT(*) AS BIGINT) FROM worlds WHERE key_check <> $1")
            .bind(check)
            .fetch_one(self.conn())
            .await
            .or_end(self)?;
        Ok(others == 0)
    }

    async fn insert_key(&mut self, key: &ApiKey, now: Timestamp) -> Result<()> {
        sqlx::query(
            r"
                INSERT INTO api_keys (tenant_id, id, name, hash, permissions, created_at, revoked_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7)",
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
            r"
                SELECT k.tenant_id, k.id, k.name, k.hash, k.permissions, k.revoked_at, w.environment
                FROM api_keys k
                JOIN worlds w ON w.tenant_id = k.tenant_id
                WHERE k.hash = $1",
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
        let rows: Vec<KeyRow> = sqlx::query_as(
            r"
                SELECT tenant_id, id, name, hash, permissions, revoked_at
                FROM api_keys
                WHERE tenant_id = $1
                ORDER BY id",
        )
        .bind(tenant.0)
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        rows.into_iter().map(key).collect()
    }

    async fn revoke_key(&mut self, tenant: TenantId, id: KeyId, now: Timestamp) -> Result<bool> {
        let done = sqlx::query(
            r"
                UPDATE api_keys
                SET revoked_at = $3
                WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(now.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn insert_sender(&mut self, tenant: TenantId, sender: &Sender, now: Timestamp) -> Result<()> {
        sqlx::query(
            r"
                INSERT INTO senders (tenant_id, id, name, phone_number, is_default, email_receiving,
                    allowed_countries, daily_spend_limit, created_at, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(tenant.0)
        .bind(sender.id.uuid())
        .bind(&sender.name)
        .bind(&sender.phone_number)
        .bind(i16::from(sender.is_default))
        .bind(i16::from(sender.email_receiving_enabled))
        .bind(json(&sender.allowed_countries)?)
        .bind(sender.daily_spend_limit.map(|limit| limit.0))
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
            r"
                UPDATE senders
                SET name = $3, phone_number = $4, is_default = $5, email_receiving = $6,
                    allowed_countries = $7, daily_spend_limit = $8, updated_at = $9
                WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.0)
        .bind(sender.id.uuid())
        .bind(&sender.name)
        .bind(&sender.phone_number)
        .bind(i16::from(sender.is_default))
        .bind(i16::from(sender.email_receiving_enabled))
        .bind(json(&sender.allowed_countries)?)
        .bind(sender.daily_spend_limit.map(|limit| limit.0))
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

    async fn find_senders(&mut self, tenant: TenantId, ids: &[SenderId]) -> Result<Vec<Sender>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(SENDERS);
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "id", ids.iter().map(|id| id.uuid()));
        let rows: Vec<SenderRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        rows.into_iter().map(SenderRow::decode).collect()
    }

    async fn list_senders(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Sender>> {
        let streams = vec![of_world(tenant.0, |_| {})];
        let list = List { columns: SENDER_COLUMNS, table: "senders", id: "id", streams, filter: None };
        let page = self.page(list, page, |row: &SenderRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(SenderRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn delete_sender(&mut self, tenant: TenantId, id: SenderId) -> Result<bool> {
        sqlx::query("DELETE FROM connections WHERE tenant_id = $1 AND sender_id = $2")
            .bind(tenant.0)
            .bind(id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        let done = sqlx::query("DELETE FROM senders WHERE tenant_id = $1 AND id = $2")
            .bind(tenant.0)
            .bind(id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        self.raise_epoch(tenant).await?;
        Ok(done.rows_affected() == 1)
    }

    async fn connections_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Connection>> {
        if senders.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(CONNECTIONS);
        query.push("tenant_id = ").push_bind(tenant.0);
        dialect::push_in(&mut query, "sender_id", senders.iter().map(|id| id.uuid()));
        query.push(" ORDER BY id");
        let rows: Vec<ConnectionRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        rows.into_iter().map(ConnectionRow::decode).collect()
    }

    async fn find_connection(&mut self, id: ConnectionId) -> Result<Option<(TenantId, Connection)>> {
        let mut query = QueryBuilder::<Db>::new(CONNECTIONS);
        query.push("id = ").push_bind(id.uuid());
        let row: Option<ConnectionRow> = query.build_query_as().fetch_optional(self.conn()).await.or_end(self)?;
        row.map(ConnectionRow::placed).transpose()
    }

    async fn connections_of_kinds(&mut self, kinds: &[&str]) -> Result<Vec<(TenantId, Connection)>> {
        let mut found = Vec::new();
        for kind in kinds {
            let mut query = QueryBuilder::<Db>::new(CONNECTIONS);
            query.push("kind = ").push_bind((*kind).to_owned()).push(" ORDER BY tenant_id, id");
            let rows: Vec<ConnectionRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
            found.extend(super::query::readable(rows.into_iter().map(ConnectionRow::placed)));
        }
        Ok(found)
    }

    async fn put_connection(&mut self, tenant: TenantId, connection: &Connection) -> Result<()> {
        let settings = json(&connection.settings)?;
        sqlx::query(
            r"
                INSERT INTO connections (tenant_id, id, sender_id, channel, kind, settings, sealed, trusted,
                    throttle, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                ON CONFLICT (tenant_id, sender_id, channel) DO UPDATE SET
                    kind = excluded.kind,
                    settings = excluded.settings,
                    sealed = excluded.sealed,
                    trusted = excluded.trusted,
                    throttle = excluded.throttle,
                    updated_at = excluded.updated_at",
        )
        .bind(tenant.0)
        .bind(connection.id.uuid())
        .bind(connection.sender.uuid())
        .bind(connection.channel.number())
        .bind(&connection.kind)
        .bind(settings)
        .bind(connection.sealed.expose().as_slice())
        .bind(i16::from(connection.trusted))
        .bind(connection.throttle.as_ref().map(json).transpose()?)
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
