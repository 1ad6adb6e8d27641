//! The event log.

use async_trait::async_trait;
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::lifecycle::Change;
use nuncio_domain::{MessageId, SenderId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

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

/// Something that happened to a resource other than a message, as the outside is told of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Occurrence {
    /// What happened.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The sender whose webhook hears of it; the world's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<SenderId>,
    /// The resource under its name as it was then, and what else belongs to it: `{"broadcast": {…}, "previousStatus": "draft"}`.
    pub data: Map<String, Value>,
}

/// What one transaction tells of one resource other than a message.
#[derive(Clone, PartialEq, Debug)]
pub struct NewEvent {
    /// The kind of the resource.
    pub kind: ResourceKind,
    /// Its identifier.
    pub resource: Uuid,
    /// The resource's version after the first occurrence; the next ones follow without a gap. Raised under the lock of its row.
    pub sequence: i64,
    /// What happened, in order.
    pub occurrences: Vec<Occurrence>,
}

/// The event log.
#[async_trait]
pub trait EventRepo {
    /// Writes an event, in the transaction that causes it.
    async fn insert_event(&mut self, tenant: TenantId, event: &NewEvent, now: Timestamp) -> Result<()>;

    /// All events of one resource other than a message, oldest first: sequence of the first occurrence, and what happened.
    async fn list_resource_events(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid) -> Result<Vec<(i64, Vec<Occurrence>)>>;

    /// All events of a message, oldest first.
    async fn list_message_events(&mut self, tenant: TenantId, id: MessageId) -> Result<Vec<EventRecord>>;
}
