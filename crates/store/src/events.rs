//! The event log.

use async_trait::async_trait;
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::lifecycle::Change;
use nuncio_domain::{MessageId, SenderId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::Result;

/// An entry of the event log: the changes of one message by one transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct EventRecord {
    pub message: MessageId,
    /// The message's version after the first change; the following ones are consecutive.
    pub sequence: i64,
    /// Changes, in order.
    pub changes: Vec<Change>,
    pub recorded_at: Timestamp,
}

/// A published event of a resource other than a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Occurrence {
    /// Type of the event.
    #[serde(rename = "type")]
    pub kind: EventType,
    /// The sender whose webhook gets it; `None` means the environment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<SenderId>,
    /// The resource, under its name, as of the event, and related data: `{"broadcast": {…}, "previousStatus": "draft"}`.
    pub data: Map<String, Value>,
}

/// The events of one resource other than a message, caused by one transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct NewEvent {
    pub kind: ResourceKind,
    pub resource: Uuid,
    /// The resource's version after the first occurrence; the following ones are consecutive. Incremented under the lock of its row.
    pub sequence: i64,
    /// Occurrences, in order.
    pub occurrences: Vec<Occurrence>,
}

#[async_trait]
pub trait EventRepo {
    /// Stores an event in the transaction that causes it.
    async fn insert_event(&mut self, tenant: TenantId, event: &NewEvent, now: Timestamp) -> Result<()>;

    /// Returns all events of a resource other than a message, oldest first: the sequence of the first occurrence, and the occurrences.
    async fn list_resource_events(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid) -> Result<Vec<(i64, Vec<Occurrence>)>>;

    /// Returns all events of a message, oldest first.
    async fn list_message_events(&mut self, tenant: TenantId, id: MessageId) -> Result<Vec<EventRecord>>;
}
