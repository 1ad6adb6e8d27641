//! The event log.

use async_trait::async_trait;
use nuncio_domain::lifecycle::Change;
use nuncio_domain::{MessageId, TenantId, Timestamp};

use crate::error::Result;

/// One row of the event log: what one commit changed about one message.
#[derive(Clone, PartialEq, Debug)]
pub struct EventRecord {
    /// The message.
    pub message: MessageId,
    /// The message's version after the first of the changes; the next ones follow without a gap.
    pub sequence: i64,
    /// What changed, in order.
    pub changes: Vec<Change>,
    /// When the row was written.
    pub recorded_at: Timestamp,
}

/// The event log.
#[async_trait]
pub trait EventRepo {
    /// All events of a message, oldest first.
    async fn list_message_events(&mut self, tenant: TenantId, id: MessageId) -> Result<Vec<EventRecord>>;
}
