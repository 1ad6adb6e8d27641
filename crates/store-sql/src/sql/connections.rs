//! Connections of senders.

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_domain::config::Connection;
use nuncio_domain::id::Id as _;
use nuncio_domain::{Channel, ConnectionId, SenderId, TenantId};
use nuncio_store::{ConnectionRepo, ProjectRepo as _, Result};
use sqlx::QueryBuilder;

use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::json;

/// Begins a query for [`ConnectionRow`]s.
const SELECT: &str = r"
    SELECT tenant_id, id, sender_id, channel, kind, settings, sealed, trusted, throttle, updated_at
    FROM connections
    WHERE ";

impl Record for Connection {
    const TABLE: &'static str = "connections";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            sender: row.get("sender_id")?,
            channel: row.get("channel")?,
            kind: row.get("kind")?,
            settings: row.json("settings")?,
            sealed: row.get("sealed")?,
            trusted: row.get("trusted")?,
            throttle: row.optional_json("throttle")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

/// A connection with its tenant.
struct Placed(TenantId, Connection);

impl Record for Placed {
    const TABLE: &'static str = Connection::TABLE;

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self(row.get("tenant_id")?, Connection::read(row)?))
    }
}

/// The connections of a tenant, in the order of their ids.
pub(super) async fn all(tx: &mut SqlTx, tenant: TenantId) -> Result<Vec<Arc<Connection>>> {
    let mut query = QueryBuilder::<Db>::new(SELECT);
    query.push("tenant_id = ").push_bind(tenant.0).push(" ORDER BY id");
    Ok(tx.all(query.build()).await?.into_iter().map(Arc::new).collect())
}

#[async_trait]
impl ConnectionRepo for SqlTx {
    async fn connections_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Connection>> {
        if senders.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(SELECT);
        query.push("tenant_id = ").push_bind(tenant.0);
        dialect::push_in(&mut query, "sender_id", senders.iter().map(|id| id.uuid()));
        query.push(" ORDER BY id");
        self.all(query.build()).await
    }

    async fn find_connection(&mut self, id: ConnectionId) -> Result<Option<(TenantId, Connection)>> {
        let mut query = QueryBuilder::<Db>::new(SELECT);
        query.push("id = ").push_bind(id.uuid());
        Ok(self.optional(query.build()).await?.map(|Placed(tenant, connection)| (tenant, connection)))
    }

    async fn connections_of_kinds(&mut self, kinds: &[&str]) -> Result<Vec<(TenantId, Connection)>> {
        let mut found = Vec::new();
        for kind in kinds {
            let mut query = QueryBuilder::<Db>::new(SELECT);
            query.push("kind = ").push_bind((*kind).to_owned()).push(" ORDER BY tenant_id, id");
            found.extend(self.readable(query.build()).await?.into_iter().map(|Placed(tenant, connection)| (tenant, connection)));
        }
        Ok(found)
    }

    async fn put_connection(&mut self, tenant: TenantId, connection: &Connection) -> Result<()> {
        let (settings, throttle) = (json(&connection.settings)?, connection.throttle.as_ref().map(json).transpose()?);
        self.run(sql!(
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
            [
                tenant, connection.id, connection.sender, connection.channel, &connection.kind, settings, &connection.sealed,
                connection.trusted, throttle, connection.updated_at
            ]
        ))
        .await?;
        self.raise_epoch(tenant).await
    }

    async fn delete_connection(&mut self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<bool> {
        let deleted = self
            .changes(sql!("DELETE FROM connections WHERE tenant_id = $1 AND sender_id = $2 AND channel = $3", [tenant, sender, channel]))
            .await?;
        self.raise_epoch(tenant).await?;
        Ok(deleted)
    }
}
