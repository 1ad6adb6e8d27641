//! Connections of senders.

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_domain::config::Connection;
use nuncio_domain::id::Id as _;
use nuncio_domain::{Channel, ConnectionId, Redacted, SenderId, TenantId, Timestamp};
use nuncio_store::{ConnectionRepo, ProjectRepo as _, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::readable;
use super::{Db, SqlTx, dialect};
use crate::row::{corrupt, from_row, json};

/// Begins a query for [`ConnectionRow`]s.
const SELECT: &str = r"
    SELECT tenant_id, id, sender_id, channel, kind, settings, sealed, trusted, throttle, updated_at
    FROM connections
    WHERE ";

from_row! {
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

/// The connections of a tenant, in the order of their ids.
pub(super) async fn all(tx: &mut SqlTx, tenant: TenantId) -> Result<Vec<Arc<Connection>>> {
    let mut query = QueryBuilder::<Db>::new(SELECT);
    query.push("tenant_id = ").push_bind(tenant.0).push(" ORDER BY id");
    let rows: Vec<ConnectionRow> = tx.all(query.build()).await?;
    rows.into_iter().map(|row| row.decode().map(Arc::new)).collect()
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
        let rows: Vec<ConnectionRow> = self.all(query.build()).await?;
        rows.into_iter().map(ConnectionRow::decode).collect()
    }

    async fn find_connection(&mut self, id: ConnectionId) -> Result<Option<(TenantId, Connection)>> {
        let mut query = QueryBuilder::<Db>::new(SELECT);
        query.push("id = ").push_bind(id.uuid());
        let row: Option<ConnectionRow> = self.optional(query.build()).await?;
        row.map(ConnectionRow::placed).transpose()
    }

    async fn connections_of_kinds(&mut self, kinds: &[&str]) -> Result<Vec<(TenantId, Connection)>> {
        let mut found = Vec::new();
        for kind in kinds {
            let mut query = QueryBuilder::<Db>::new(SELECT);
            query.push("kind = ").push_bind((*kind).to_owned()).push(" ORDER BY tenant_id, id");
            let rows: Vec<ConnectionRow> = self.all(query.build()).await?;
            found.extend(readable(rows.into_iter().map(ConnectionRow::placed)));
        }
        Ok(found)
    }

    async fn put_connection(&mut self, tenant: TenantId, connection: &Connection) -> Result<()> {
        let settings = json(&connection.settings)?;
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
                tenant.0,
                connection.id.uuid(),
                connection.sender.uuid(),
                connection.channel.number(),
                &connection.kind,
                settings,
                connection.sealed.expose().as_slice(),
                i16::from(connection.trusted),
                connection.throttle.as_ref().map(json).transpose()?,
                connection.updated_at.millis()
            ]
        ))
        .await?;
        self.raise_epoch(tenant).await
    }

    async fn delete_connection(&mut self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<bool> {
        let changed = self
            .run(sql!(
                "DELETE FROM connections WHERE tenant_id = $1 AND sender_id = $2 AND channel = $3",
                [tenant.0, sender.uuid(), channel.number()]
            ))
            .await?;
        self.raise_epoch(tenant).await?;
        Ok(changed == 1)
    }
}
