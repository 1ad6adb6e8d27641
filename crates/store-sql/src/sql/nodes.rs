//! Which processes are alive.

use async_trait::async_trait;
use nuncio_domain::Timestamp;
use nuncio_domain::message::NodeId;
use nuncio_store::{Node, NodeRepo, Result};

use super::{SqlTx, dialect};

#[async_trait]
impl NodeRepo for SqlTx {
    async fn insert_node(&mut self, id: NodeId, now: Timestamp) -> Result<()> {
        self.write(sql!("INSERT INTO nodes (id, beat, dead, beat_at) VALUES ($1, 1, 0, $2)", [id, now])).await
    }

    async fn beat(&mut self, id: NodeId, now: Timestamp) -> Result<bool> {
        self.changes(sql!("UPDATE nodes SET beat = beat + 1, beat_at = $2 WHERE id = $1 AND dead = 0", [id, now])).await
    }

    async fn list_nodes(&mut self) -> Result<Vec<Node>> {
        let rows = self.all(sql!("SELECT id, beat, dead, beat_at FROM nodes ORDER BY id")).await?;
        Ok(rows.into_iter().map(|(id, beat, dead, beat_at)| Node { id, beat, dead, beat_at }).collect())
    }

    async fn mark_dead(&mut self, id: NodeId, beat: i64) -> Result<bool> {
        self.changes(sql!("UPDATE nodes SET dead = 1 WHERE id = $1 AND beat = $2 AND dead = 0", [id, beat])).await
    }

    async fn delete_node(&mut self, id: NodeId) -> Result<()> {
        self.prune_agenda_of(id).await?;
        self.write(sql!("DELETE FROM nodes WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM agenda WHERE owner = $1)", [id])).await
    }

    async fn database_time(&mut self) -> Result<Timestamp> {
        let (now,) = self.one(sql!(dialect::NOW_MILLIS)).await?;
        Ok(now)
    }
}
