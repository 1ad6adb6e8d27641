//! Which processes are alive.
//!
//! A node bumps the counter in its row; others believe it dead when they saw the counter unchanged for long enough on their own
//! monotonic clock. No two clocks are compared.

use async_trait::async_trait;
use nuncio_domain::Timestamp;
use nuncio_domain::lifecycle::NodeId;

use crate::error::Result;

/// One incarnation of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// Its identifier.
    pub id: NodeId,
    /// Grows while it lives.
    pub beat: i64,
    /// Whether it was declared dead; it may not start attempts any more.
    pub dead: bool,
    /// Wall time of its last beat.
    pub beat_at: Timestamp,
}

/// Nodes.
#[async_trait]
pub trait NodeRepo {
    /// Enters a node.
    async fn insert_node(&mut self, id: NodeId, now: Timestamp) -> Result<()>;

    /// Bumps a node's counter; `false` when it was declared dead or removed.
    async fn beat(&mut self, id: NodeId, now: Timestamp) -> Result<bool>;

    /// All nodes.
    async fn list_nodes(&mut self) -> Result<Vec<Node>>;

    /// Declares a node dead if its counter is still `beat`; `false` when it moved.
    async fn mark_dead(&mut self, id: NodeId, beat: i64) -> Result<bool>;

    /// Forgets a node that owns nothing.
    async fn delete_node(&mut self, id: NodeId) -> Result<()>;

    /// The database's own wall time.
    async fn database_time(&mut self) -> Result<Timestamp>;
}
