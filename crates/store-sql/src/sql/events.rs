//! The event log.

use async_trait::async_trait;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::{MessageId, TenantId, Timestamp};
use nuncio_store::{EventRecord, EventRepo, NewEvent, Occurrence, Result};
use uuid::Uuid;

use super::{SqlTx, dialect};
use crate::SqlxResult as _;
use crate::row::{corrupt, json};

#[async_trait]
impl EventRepo for SqlTx {
    async fn insert_event(&mut self, tenant: TenantId, event: &NewEvent, now: Timestamp) -> Result<()> {
        sqlx::query(dialect::INSERT_EVENT)
            .bind(tenant.0)
            .bind(event.resource)
            .bind(event.sequence)
            .bind(now.millis())
            .bind(json(&event.occurrences)?)
            .bind(event.kind.number())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(())
    }

    async fn list_resource_events(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid) -> Result<Vec<(i64, Vec<Occurrence>)>> {
        let rows: Vec<(i64, String)> = sqlx::query_as(
            "SELECT sequence, changes FROM events WHERE tenant_id = $1 AND resource_id = $2 AND kind = $3 ORDER BY sequence",
        )
        .bind(tenant.0)
        .bind(resource)
        .bind(kind.number())
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        rows.into_iter()
            .map(|(sequence, changes)| Ok((sequence, serde_json::from_str(&changes).map_err(|e| corrupt("events", e))?)))
            .collect()
    }

    async fn list_message_events(&mut self, tenant: TenantId, id: MessageId) -> Result<Vec<EventRecord>> {
        let rows: Vec<(i64, i64, String)> =
            sqlx::query_as("SELECT sequence, recorded_at, changes FROM events WHERE tenant_id = $1 AND resource_id = $2 ORDER BY sequence")
                .bind(tenant.0)
                .bind(id.uuid())
                .fetch_all(self.conn())
                .await
                .or_end(self)?;
        rows.into_iter()
            .map(|(sequence, recorded_at, changes)| {
                Ok(EventRecord {
                    message: id,
                    sequence,
                    changes: serde_json::from_str(&changes).map_err(|e| corrupt("events", e))?,
                    recorded_at: Timestamp::from_millis(recorded_at),
                })
            })
            .collect()
    }
}
