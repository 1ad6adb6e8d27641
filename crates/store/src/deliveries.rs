//! Deliveries of events to webhooks, and how far each world's log was read.

use async_trait::async_trait;
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::lifecycle::{Change, NodeId};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::webhook::DeliveryStatus;
use nuncio_domain::{DeliveryId, EventId, SenderId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Result;
use crate::events::Occurrence;

/// A place in the event log of a world: after everything that stands at or before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Position {
    /// The number of the transaction: counts without a gap, in the order of commits.
    pub commit: i64,
    /// The number of the entry in its transaction.
    pub entry: i64,
}

/// A row of the event log: what one transaction changed about one resource.
#[derive(Clone, PartialEq, Debug)]
pub struct LogEntry {
    /// Where it stands.
    pub position: Position,
    /// The resource.
    pub resource: Uuid,
    /// The resource's version after the first thing that is told; the next ones follow without a gap.
    pub sequence: i64,
    /// When the row was written.
    pub recorded_at: Timestamp,
    /// What is told.
    pub told: Told,
}

/// What a row of the event log tells.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// Changes of a message; the message's row holds the rest.
    Message(Vec<Change>),
    /// What happened to another resource.
    Other(ResourceKind, Vec<Occurrence>),
}

/// How far the log of a world was read for its webhooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogReader {
    /// The world.
    pub tenant: TenantId,
    /// Everything up to here was delivered, or is kept as a delivery to come.
    pub read: Position,
    /// The node that reads.
    pub owner: Option<NodeId>,
    /// Grows with every change of owner.
    pub fence: i64,
}

/// One try of a delivery.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeliveryTry {
    /// When it began.
    #[serde(with = "nuncio_domain::time::millis")]
    pub at: Timestamp,
    /// The status that was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// Why there was no answer, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The beginning of the answer's body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// One event on its way to one webhook.
#[derive(Clone, PartialEq, Debug)]
pub struct Delivery {
    /// Its identifier.
    pub id: DeliveryId,
    /// The sender whose webhook it is for; the world's when absent.
    pub sender: Option<SenderId>,
    /// The event.
    pub event: EventId,
    /// The event's type.
    pub event_type: EventType,
    /// What the event is about.
    pub kind: ResourceKind,
    /// The resource.
    pub resource: Uuid,
    /// The event's sequence.
    pub sequence: i64,
    /// Where it was, or will be, posted to.
    pub url: String,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// Tries since it was made, or since it was last replayed.
    pub tries: i16,
    /// When it is tried next.
    pub due_at: Option<Timestamp>,
    /// The newest tries, oldest first.
    pub attempts: Vec<DeliveryTry>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Which deliveries a list holds. An absent field does not filter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliveryFilter {
    /// Any of these statuses; empty for all.
    pub status: Vec<DeliveryStatus>,
    /// Any of these types; empty for all.
    pub event_type: Vec<EventType>,
    /// To the webhook of this sender.
    pub sender: Option<SenderId>,
    /// About this resource.
    pub resource: Option<Uuid>,
}

/// What is written of deliveries by one transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct DeliveryLog {
    /// The world.
    pub tenant: TenantId,
    /// What became of deliveries, or is to come. Written whoever brings it; a delivered one stays delivered.
    pub deliveries: Vec<Delivery>,
    /// How far the log was read. Written only while `fence` holds.
    pub read: Option<Position>,
    /// The fence that the reader got with the log.
    pub fence: i64,
}

/// The event log as it is read forward, and deliveries.
#[async_trait]
pub trait DeliveryRepo {
    /// Up to `limit` entries of a tenant's log after `after`, in order.
    async fn read_log(&mut self, tenant: TenantId, after: Position, limit: u32) -> Result<Vec<LogEntry>>;

    /// Up to `limit` rows of a world's log before `before`, newest first; of one resource, if given.
    async fn list_log(&mut self, tenant: TenantId, resource: Option<Uuid>, before: Option<Position>, limit: u32) -> Result<Vec<LogEntry>>;

    /// The place of a world's log behind the rows that were written before `at`, as far as clocks agree. Costs a look for each halving of
    /// the log.
    async fn log_place(&mut self, tenant: TenantId, at: Timestamp) -> Result<Position>;

    /// The row of the log that tells of a resource's `sequence`.
    async fn find_log_entry(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid, sequence: i64) -> Result<Option<LogEntry>>;

    /// The end of a world's log: nothing that commits from now on stands before it.
    async fn log_end(&mut self, tenant: TenantId) -> Result<Position>;

    /// Has the log of a world read from `from` on, unless it is read already.
    async fn open_log(&mut self, tenant: TenantId, from: Position) -> Result<()>;

    /// Ends the reading of a world's log; what comes until it is opened again is not delivered.
    async fn close_log(&mut self, tenant: TenantId) -> Result<()>;

    /// Every log that is read.
    async fn log_readers(&mut self) -> Result<Vec<LogReader>>;

    /// Makes `node` the reader of a log, if its fence is still `fence`; answers the new fence.
    async fn claim_log(&mut self, tenant: TenantId, fence: i64, node: Option<NodeId>) -> Result<Option<i64>>;

    /// Senders (`None` for the world) whose webhooks have deliveries to come.
    async fn waiting_webhooks(&mut self, tenant: TenantId) -> Result<Vec<Option<SenderId>>>;

    /// Up to `limit` deliveries to a webhook that are due at `now`, longest due first, but for those that must let an earlier event of
    /// the same resource go first: one that has not failed `patience` times.
    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        sender: Option<SenderId>,
        now: Timestamp,
        patience: i16,
        limit: u32,
    ) -> Result<Vec<Delivery>>;

    /// Of `resources`, those with deliveries to come to a webhook.
    async fn waiting_resources(&mut self, tenant: TenantId, sender: Option<SenderId>, resources: &[Uuid]) -> Result<Vec<Uuid>>;

    /// Of `deliveries`, those that are written.
    async fn known_deliveries(&mut self, tenant: TenantId, deliveries: &[DeliveryId]) -> Result<Vec<DeliveryId>>;

    /// One delivery.
    async fn find_delivery(&mut self, tenant: TenantId, id: DeliveryId) -> Result<Option<Delivery>>;

    /// Deliveries, newest event first.
    async fn list_deliveries(&mut self, tenant: TenantId, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>>;

    /// Has a delivery tried anew at `now`; `false` when there is none.
    async fn replay_delivery(&mut self, tenant: TenantId, id: DeliveryId, now: Timestamp) -> Result<bool>;

    /// Gives up up to `limit` deliveries to come to a webhook. Returns how many.
    async fn drop_deliveries(&mut self, tenant: TenantId, sender: Option<SenderId>, now: Timestamp, limit: u32) -> Result<u64>;
}
