//! Messages from outside of which some parts have come.

use async_trait::async_trait;
use nuncio_domain::Timestamp;
use nuncio_domain::id::Id as _;
use nuncio_store::{Reassembly, ReassemblyRepo, Result};
use sqlx::QueryBuilder;

use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::json;

impl Record for Reassembly {
    const TABLE: &'static str = "reassemblies";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            tenant: row.get("tenant_id")?,
            connection: row.get("connection_id")?,
            key: row.get("part_key")?,
            reference: row.get("reference")?,
            due_at: row.get("due_at")?,
            parts: row.json("parts")?,
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
            [fresh.tenant, fresh.connection, &fresh.key, &fresh.reference, &fresh.parts.from, fresh.due_at, json(&fresh.parts)?]
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
        self.one(query.build()).await
    }

    async fn put_reassembly(&mut self, reassembly: &Reassembly) -> Result<()> {
        let parts = json(&reassembly.parts)?;
        self.write(sql!(
            r"
                UPDATE reassemblies
                SET reference = $4, sender = $5, due_at = $6, parts = $7
                WHERE tenant_id = $1 AND connection_id = $2 AND part_key = $3",
            [
                reassembly.tenant, reassembly.connection, &reassembly.key, &reassembly.reference, &reassembly.parts.from,
                reassembly.due_at, parts
            ]
        ))
        .await
    }

    async fn due_reassemblies(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Reassembly>> {
        self.readable(sql!(
            r"
                SELECT tenant_id, connection_id, part_key, reference, due_at, parts
                FROM reassemblies
                WHERE due_at <= $1
                ORDER BY due_at
                LIMIT $2",
            [now, limit]
        ))
        .await
    }

    async fn delete_reassembly(&mut self, reassembly: &Reassembly) -> Result<()> {
        self.write(sql!(
            r"
                DELETE FROM reassemblies
                WHERE tenant_id = $1
                  AND connection_id = $2
                  AND part_key = $3
                  AND reference = $4",
            [reassembly.tenant, reassembly.connection, &reassembly.key, &reassembly.reference]
        ))
        .await
    }
}
