//! Which processes are alive.

use async_trait::async_trait;
use nuncio_domain::Timestamp;
use nuncio_domain::lifecycle::NodeId;
use nuncio_store::{Node, NodeRepo, Result};

use super::{SqlTx, dialect};
use crate::SqlxResult as _;

#[async_trait]
impl NodeRepo for SqlTx {
    async fn insert_node(&mut self, id: NodeId, now: Timestamp) -> Result<()> {
        sqlx::query("INSERT INTO nodes (id, beat, dead, beat_at) VALUES ($1, 1, 0, $2)")
            .bind(id.0)
            .bind(now.millis())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(())
    }

    async fn beat(&mut self, id: NodeId, now: Timestamp) -> Result<bool> {
        let done = sqlx::query("UPDATE nodes SET beat = beat + 1, beat_at = $2 WHERE id = $1 AND dead = 0")
            .bind(id.0)
            .bind(now.millis())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn list_nodes(&mut self) -> Result<Vec<Node>> {
        let rows: Vec<(i64, i64, i16, i64)> =
            sqlx::query_as("SELECT id, beat, dead, beat_at FROM nodes ORDER BY id").fetch_all(self.conn()).await.or_end(self)?;
        Ok(rows
            .into_iter()
            .map(|(id, beat, dead, at)| Node { id: NodeId(id), beat, dead: dead != 0, beat_at: Timestamp::from_millis(at) })
            .collect())
    }

    async fn mark_dead(&mut self, id: NodeId, beat: i64) -> Result<bool> {
        let done = sqlx::query("UPDATE nodes SET dead = 1 WHERE id = $1 AND beat = $2 AND dead = 0")
            .bind(id.0)
            .bind(beat)
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn delete_node(&mut self, id: NodeId) -> Result<()> {
        self.prune_agenda_of(id).await?;
        sqlx::query("DELETE FROM nodes WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM agenda WHERE owner = $1)")
            .bind(id.0)
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(())
    }

    async fn database_time(&mut self) -> Result<Timestamp> {
        let (millis,): (i64,) = sqlx::query_as(dialect::NOW_MILLIS).fetch_one(self.conn()).await.or_end(self)?;
        Ok(Timestamp::from_millis(millis))
    }
}
