//! Messages from outside of which some parts have come.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::{ConnectionId, TenantId, Timestamp};
use nuncio_store::{Reassembly, ReassemblyRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};
use crate::row::{corrupt, from_row, json};

from_row! {
    struct Row {
        tenant_id: i64,
        connection_id: Uuid,
        part_key: String,
        reference: String,
        due_at: i64,
        parts: String,
    }
}

impl Row {
    fn decode(self) -> Result<Reassembly> {
        Ok(Reassembly {
            tenant: TenantId(self.tenant_id),
            connection: ConnectionId::from_uuid(self.connection_id),
            key: self.part_key,
            reference: self.reference,
            due_at: Timestamp::from_millis(self.due_at),
            parts: serde_json::from_str(&self.parts).map_err(|e| corrupt("reassemblies", e))?,
        })
    }
}

#[async_trait]
impl ReassemblyRepo for SqlTx {
    async fn lock_reassembly(&mut self, fresh: &Reassembly) -> Result<Reassembly> {
        self.run(sql!(
            r"
                INSERT INTO reassemblies (tenant_id, connection_id, part_key, reference, sender, due_at,
                    parts)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                ON CONFLICT DO NOTHING",
            [
                fresh.tenant.0,
                fresh.connection.uuid(),
                &fresh.key,
                &fresh.reference,
                &fresh.parts.from,
                fresh.due_at.millis(),
                json(&fresh.parts)?
            ]
        ))
        .await?;
        let mut query = QueryBuilder::<Db>::new(
            r"
                SELECT tenant_id, connection_id, part_key, reference, due_at, parts
                FROM reassemblies",
        );
        query.push(" WHERE tenant_id = ").push_bind(fresh.tenant.0);
        query.push(" AND connection_id = ").push_bind(fresh.connection.uuid());
        query.push(" AND part_key = ").push_bind(&fresh.key).push(dialect::LOCK);
        let row: Row = self.one(query.build()).await?;
        row.decode()
    }

    async fn put_reassembly(&mut self, reassembly: &Reassembly) -> Result<()> {
        self.write(sql!(
            r"
                UPDATE reassemblies
                SET reference = $4, sender = $5, due_at = $6, parts = $7
                WHERE tenant_id = $1 AND connection_id = $2 AND part_key = $3",
            [
                reassembly.tenant.0,
                reassembly.connection.uuid(),
                &reassembly.key,
                &reassembly.reference,
                &reassembly.parts.from,
                reassembly.due_at.millis(),
                json(&reassembly.parts)?
            ]
        ))
        .await
    }

    async fn due_reassemblies(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Reassembly>> {
        let rows: Vec<Row> = self
            .all(sql!(
                r"
                SELECT tenant_id, connection_id, part_key, reference, due_at, parts
                FROM reassemblies
                WHERE due_at <= $1
                ORDER BY due_at
                LIMIT $2",
                [now.millis(), i64::from(limit)]
            ))
            .await?;
        Ok(super::query::readable(rows.into_iter().map(Row::decode)))
    }

    async fn delete_reassembly(&mut self, reassembly: &Reassembly) -> Result<()> {
        self.write(sql!(
            r"
                DELETE FROM reassemblies
                WHERE tenant_id = $1
                  AND connection_id = $2
                  AND part_key = $3
                  AND reference = $4",
            [reassembly.tenant.0, reassembly.connection.uuid(), &reassembly.key, &reassembly.reference]
        ))
        .await
    }
}
