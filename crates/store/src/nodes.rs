//! Tracks which nodes are alive.
//!
//! A node increments the counter in its row. Another node declares it dead after seeing the counter unchanged for long enough on its own
//! monotonic clock. Clocks of two nodes are never compared.

use async_trait::async_trait;
use nuncio_domain::Timestamp;
use nuncio_domain::message::NodeId;

use crate::error::Result;

/// One run of a server process; a restart is another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Id of this run.
    pub id: NodeId,
    /// Heartbeat counter; increases while the node is alive.
    pub beat: i64,
    /// Whether it was declared dead. A dead node cannot start attempts.
    pub dead: bool,
    /// Wall time of its last heartbeat. Never compared to decide whether a node is alive.
    pub beat_at: Timestamp,
}

/// Nodes and their heartbeats.
#[async_trait]
pub trait NodeRepo {
    /// Registers a node.
    async fn insert_node(&mut self, id: NodeId, now: Timestamp) -> Result<()>;

    /// Increments a node's counter; `false` if it was declared dead or deleted.
    async fn beat(&mut self, id: NodeId, now: Timestamp) -> Result<bool>;

    /// All nodes, dead ones included.
    async fn list_nodes(&mut self) -> Result<Vec<Node>>;

    /// Declares a node dead if its counter is still `beat`; `false` if the counter has changed.
    async fn mark_dead(&mut self, id: NodeId, beat: i64) -> Result<bool>;

    /// Deletes a node if it owns no messages; does nothing otherwise.
    async fn delete_node(&mut self, id: NodeId) -> Result<()>;

    /// Wall time of the database server, in whole milliseconds.
    async fn database_time(&mut self) -> Result<Timestamp>;
}
