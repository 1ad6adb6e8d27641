//! Webhook deliveries, and how far each environment's log has been read.

use async_trait::async_trait;
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::message::NodeId;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::webhook::DeliveryStatus;
use nuncio_domain::{DeliveryId, EventId, SenderId, TenantId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Result;
use crate::events::Position;

/// How far the log of an environment has been read for its webhooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogReader {
    pub tenant: TenantId,
    /// Everything up to here is delivered or stored as a pending delivery.
    pub read: Position,
    /// The node that reads it.
    pub owner: Option<NodeId>,
    /// Incremented by each change of owner.
    pub fence: i64,
    /// Version of the environment's configuration.
    pub epoch: i64,
    /// Number of the newest transaction in the log.
    pub head: i64,
}

/// One post of an event to its webhook.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeliveryTry {
    /// When it started.
    #[serde(with = "nuncio_domain::time::millis")]
    pub at: Timestamp,
    /// The response status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Duration in milliseconds.
    pub ms: u64,
    /// Why there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The beginning of the response body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// An event on its way to one webhook.
#[derive(Clone, PartialEq, Debug)]
pub struct Delivery {
    pub id: DeliveryId,
    /// The sender whose webhook gets it; `None` means the environment's.
    pub sender: Option<SenderId>,
    pub event: EventId,
    pub event_type: EventType,
    /// Kind of the event's resource.
    pub kind: ResourceKind,
    pub resource: Uuid,
    /// The event's sequence.
    pub sequence: i64,
    /// URL it was, or will be, posted to.
    pub url: String,
    pub status: DeliveryStatus,
    /// Failed tries since it was created or last replayed.
    pub tries: i16,
    /// Time of the next try.
    pub due_at: Option<Timestamp>,
    /// The newest tries, oldest first.
    pub attempts: Vec<DeliveryTry>,
    /// Why it was abandoned before its last try.
    pub reason: Option<String>,
    /// How often it was replayed.
    pub replays: i16,
    pub updated_at: Timestamp,
}

/// Filter of a delivery list. An absent field does not filter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeliveryFilter {
    /// Statuses; empty means all.
    pub status: Vec<DeliveryStatus>,
    /// Event types; empty means all.
    pub event_type: Vec<EventType>,
    /// To the webhook of this sender, or to the environment's (`Some(None)`).
    pub sender: Option<Option<SenderId>>,
    pub resource: Option<Uuid>,
}

/// Updates of deliveries, stored in one transaction.
#[derive(Clone, PartialEq, Debug)]
pub struct DeliveryLog {
    pub tenant: TenantId,
    /// New states of deliveries. A delivered one stays delivered. One that was replayed since it was read only gets the URL and the tries.
    pub deliveries: Vec<Delivery>,
    /// How far the log was read. Stored only while `fence` holds.
    pub read: Option<Position>,
    /// The reader's fence.
    pub fence: i64,
}

/// Deliveries, and who reads the event log for them.
#[async_trait]
pub trait DeliveryRepo {
    /// Starts reading the log of an environment at `from`, unless it is already being read. Its first fence is `now`, in milliseconds, so that
    /// a log that was closed and opened again has other fences than before.
    async fn open_log(&mut self, tenant: TenantId, from: Position, now: Timestamp) -> Result<()>;

    /// Stops reading an environment's log; what is logged until it is opened again is not delivered.
    async fn close_log(&mut self, tenant: TenantId) -> Result<()>;

    /// Returns every log being read.
    async fn log_readers(&mut self) -> Result<Vec<LogReader>>;

    /// Makes `node` the reader of a log if its fence is still `fence`; returns the new fence.
    async fn claim_log(&mut self, tenant: TenantId, fence: i64, node: Option<NodeId>) -> Result<Option<i64>>;

    /// Returns the senders (`None` for the environment) whose webhooks have pending deliveries.
    async fn waiting_webhooks(&mut self, tenant: TenantId) -> Result<Vec<Option<SenderId>>>;

    /// Returns up to `limit` deliveries to a webhook that are due at `now`, longest due first, except those that must wait for an earlier
    /// event of the same resource: one that has not failed `patience` times.
    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        sender: Option<SenderId>,
        now: Timestamp,
        patience: i16,
        limit: u32,
    ) -> Result<Vec<Delivery>>;

    /// Returns when the first delivery to a webhook that is due after `after` is due.
    async fn next_delivery_at(&mut self, tenant: TenantId, sender: Option<SenderId>, after: Timestamp) -> Result<Option<Timestamp>>;

    /// Returns those of `resources` that have pending deliveries to a webhook.
    async fn waiting_resources(&mut self, tenant: TenantId, sender: Option<SenderId>, resources: &[Uuid]) -> Result<Vec<Uuid>>;

    /// Returns those of `deliveries` that are stored.
    async fn known_deliveries(&mut self, tenant: TenantId, deliveries: &[DeliveryId]) -> Result<Vec<DeliveryId>>;

    /// Stores a new delivery.
    async fn insert_delivery(&mut self, tenant: TenantId, delivery: &Delivery) -> Result<()>;

    async fn find_delivery(&mut self, tenant: TenantId, id: DeliveryId) -> Result<Option<Delivery>>;

    /// Lists deliveries, newest event first.
    async fn list_deliveries(&mut self, tenant: TenantId, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>>;

    /// Schedules a delivery again for `now`; `false` if there is none.
    async fn replay_delivery(&mut self, tenant: TenantId, id: DeliveryId, now: Timestamp) -> Result<bool>;

    /// Abandons up to `limit` deliveries to a webhook that are pending, are of none of the types `kept`, and have not changed since `now`.
    /// Returns how many.
    async fn drop_deliveries(
        &mut self,
        tenant: TenantId,
        sender: Option<SenderId>,
        kept: &[EventType],
        reason: &str,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64>;
}
