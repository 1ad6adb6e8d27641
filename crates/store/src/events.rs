//! The event log.

use async_trait::async_trait;
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::lifecycle::Change;
use nuncio_domain::{MessageId, SenderId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::error::Result;

/// A position in the event log of an environment: after every entry at or before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Position {
    /// Number of the transaction; consecutive, in commit order.
    pub commit: i64,
    /// Number of the entry in its transaction.
    pub entry: i64,
}

/// An entry of the event log: the changes of one resource by one transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct LogEntry {
    pub position: Position,
    pub resource: Uuid,
    /// The resource's version after the first change; the following ones are consecutive.
    pub sequence: i64,
    pub recorded_at: Timestamp,
    pub payload: LogPayload,
}

/// Payload of an entry of the event log.
#[derive(Clone, PartialEq, Debug)]
pub enum LogPayload {
    /// Changes of a message; the message's row has the rest.
    Message(Vec<Change>),
    /// Events of another resource.
    Other(ResourceKind, Vec<Occurrence>),
}

/// The changes of one message by one transaction.
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

/// The event log.
#[async_trait]
pub trait EventRepo {
    /// Stores an event in the transaction that causes it.
    async fn insert_event(&mut self, tenant: TenantId, event: &NewEvent, now: Timestamp) -> Result<()>;

    /// Returns up to `limit` entries of a tenant's log after `after`, in order.
    async fn read_log(&mut self, tenant: TenantId, after: Position, limit: u32) -> Result<Vec<LogEntry>>;

    /// Returns up to `limit` entries of an environment's log before `before`, newest first; only of `resource`, if given.
    async fn list_log(&mut self, tenant: TenantId, resource: Option<Uuid>, before: Option<Position>, limit: u32) -> Result<Vec<LogEntry>>;

    /// Returns the position in an environment's log after the entries written before `at`, as far as clocks agree. Uses binary search.
    async fn log_place(&mut self, tenant: TenantId, at: Timestamp) -> Result<Position>;

    /// Returns the log entry with a resource's `sequence`.
    async fn find_log_entry(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid, sequence: i64) -> Result<Option<LogEntry>>;

    /// Returns the end of an environment's log; no later commit is before it.
    async fn log_end(&mut self, tenant: TenantId) -> Result<Position>;

    /// Returns all events of a resource other than a message, oldest first: the sequence of the first occurrence, and the occurrences.
    async fn list_resource_events(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid) -> Result<Vec<(i64, Vec<Occurrence>)>>;

    /// Returns all events of a message, oldest first.
    async fn list_message_events(&mut self, tenant: TenantId, id: MessageId) -> Result<Vec<EventRecord>>;
}
