//! Reads and replays deliveries.

use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::{DeliveryId, Error, EventId, Result, SenderId, Timestamp, id::Id as _, page::PageRequest, webhook::DeliveryStatus};
use nuncio_store::{Delivery, DeliveryFilter, LogEntry, LogPayload, NewEvent, Occurrence, Position};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Webhooks;
use super::resource_id::{asked_resource, resource_id};
use crate::base::list::{Listed, asked, words};
use crate::base::{Caller, Change, UseCase, list, parse_id};
use crate::webhooks::events::{Event, derived_uuid};

/// An event on its way to a webhook.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookDelivery)]
pub struct DeliveryView {
    /// Its identifier.
    pub id: DeliveryId,
    /// The event.
    pub event_id: EventId,
    /// Event type.
    pub event_type: EventType,
    /// The sender whose webhook gets it; null for the environment's webhook.
    #[schema(required)]
    pub sender_id: Option<SenderId>,
    /// The resource that the event is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_id: Option<String>,
    /// Incremented by each event of the same resource.
    pub sequence: i64,
    /// URL it was, or will be, posted to.
    pub url: String,
    /// Its status.
    pub status: DeliveryStatus,
    /// The newest attempts, oldest first.
    pub attempts: Vec<DeliveryAttemptView>,
    /// Time of the next attempt; absent if it is in flight or overdue, and made as soon as the endpoint takes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// Why it is dead although it had attempts left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the event happened.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// One attempt of a delivery.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookDeliveryAttempt)]
pub struct DeliveryAttemptView {
    /// When it started.
    pub at: Timestamp,
    /// The response status.
    pub response_status: Option<u16>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Why there was no response.
    pub error: Option<String>,
    /// The response body, truncated to 4 KB.
    pub response_body: Option<String>,
}

impl DeliveryView {
    fn new(delivery: Delivery, now: Timestamp) -> Self {
        let attempts = delivery.attempts.into_iter().map(|a| DeliveryAttemptView {
            at: a.at,
            response_status: a.status,
            duration_ms: a.ms,
            error: a.error,
            response_body: a.body,
        });
        Self {
            id: delivery.id,
            event_id: delivery.event,
            event_type: delivery.event_type,
            sender_id: delivery.sender,
            resource_id: resource_id(delivery.kind, delivery.resource),
            sequence: delivery.sequence,
            url: delivery.url,
            status: delivery.status,
            attempts: attempts.collect(),
            // One that was not tried yet waits for its turn, or is in flight.
            next_attempt_at: delivery.due_at.filter(|at| delivery.status == DeliveryStatus::Failed && *at > now),
            reason: delivery.reason,
            created_at: delivery.event.created_at(),
            updated_at: delivery.updated_at,
        }
    }
}

/// Returns the delivery of an event to the webhook of a sender, or of the environment; not tried yet.
pub fn new_delivery(event: &Event, sender: Option<SenderId>, url: &str, now: Timestamp) -> Delivery {
    Delivery {
        id: delivery_id(event, sender),
        sender,
        event: event.view.id,
        event_type: event.view.event_type,
        kind: event.kind,
        resource: event.resource,
        sequence: event.view.sequence,
        url: url.to_owned(),
        status: DeliveryStatus::Pending,
        tries: 0,
        due_at: None,
        attempts: Vec::new(),
        reason: None,
        replays: 0,
        updated_at: now,
    }
}

/// Derived, so that every node computes the same.
fn delivery_id(event: &Event, sender: Option<SenderId>) -> DeliveryId {
    let mut hasher = Sha256::new();
    hasher.update(event.view.id.uuid().as_bytes());
    hasher.update(sender.map_or(Uuid::nil(), |s| s.uuid()).as_bytes());
    DeliveryId::from_uuid(derived_uuid(hasher, event.view.id.created_at(), event.view.sequence))
}

list::list_query! {
    /// Query of `GET /v1/webhooks/deliveries`.
    ListDeliveries {
        /// Statuses, repeated or comma-separated.
        #[param(value_type = Option<Vec<DeliveryStatus>>, style = Form, explode, min_items = 1)]
        pub status: Option<String>,
        /// Event types, repeated or comma-separated.
        #[param(value_type = Option<Vec<EventType>>, style = Form, explode, min_items = 1)]
        pub event_type: Option<String>,
        /// To the webhook of this sender.
        pub sender_id: Option<String>,
        /// About this message, contact, broadcast, template or invitation.
        pub resource_id: Option<String>,
    }
}

impl Webhooks<'_> {
    /// `GET /v1/webhooks/deliveries`.
    pub async fn list_deliveries(&self, caller: &Caller, asked: &ListDeliveries) -> Result<Listed<DeliveryView>> {
        caller.require(UseCase::ListWebhookDeliveries)?;
        let (range, mut errors) = asked!(asked);
        let resource = asked_resource(asked.resource_id.as_deref(), &mut errors);
        let filter = DeliveryFilter {
            status: words(asked.status.as_deref(), "query.status", DeliveryStatus::parse, DeliveryStatus::ALL, &mut errors),
            event_type: words(asked.event_type.as_deref(), "query.eventType", EventType::parse, EventType::ALL, &mut errors),
            sender: list::id(asked.sender_id.as_deref(), "query.senderId", "sender", &mut errors).map(Some),
            resource,
        };
        let listing = self.listing(caller.tenant, &format!("deliveries?{filter:?}"), &range, errors)?;
        let page = self.inner.store.read().await?.list_deliveries(caller.tenant, &filter, listing.page).await?;
        let now = self.ids().clock.now();
        Ok((
            page.items.into_iter().map(|delivery| DeliveryView::new(delivery, now)).collect(),
            self.next_cursor(caller.tenant, &listing, page.next),
        ))
    }

    /// Returns the newest deliveries to the webhook of a sender, or to the environment's.
    pub async fn newest_deliveries(&self, caller: &Caller, sender: Option<SenderId>, limit: u32) -> Result<Vec<DeliveryView>> {
        caller.require(UseCase::ListWebhookDeliveries)?;
        let filter = DeliveryFilter { sender: Some(sender), ..DeliveryFilter::default() };
        let found = self.inner.store.read().await?.list_deliveries(caller.tenant, &filter, PageRequest::newest(limit)).await?;
        let now = self.ids().clock.now();
        Ok(found.items.into_iter().map(|delivery| DeliveryView::new(delivery, now)).collect())
    }

    /// `GET /v1/webhooks/deliveries/{id}`.
    pub async fn get_delivery(&self, caller: &Caller, id: &str) -> Result<DeliveryView> {
        caller.require(UseCase::GetWebhookDelivery)?;
        self.delivery(caller, parse_id(id, "delivery")?).await
    }

    /// `POST /v1/webhooks/deliveries/{id}/replay`: delivers it again, with a new set of tries.
    pub async fn replay_delivery(&self, caller: &Caller, id: &str) -> Result<DeliveryView> {
        caller.require(UseCase::ReplayWebhookDelivery)?;
        let id = parse_id(id, "delivery")?;
        let mut tx = self.inner.store.begin().await?;
        let Some(delivery) = tx.find_delivery(caller.tenant, id).await? else { return Err(Error::not_found("delivery")) };
        let webhook = tx.find_webhook(caller.tenant, delivery.sender).await?;
        if !webhook.is_some_and(|w| w.active) {
            return Err(Error::wrong_state("the webhook of this delivery is not active", "inactive", &["active"]));
        }
        tx.replay_delivery(caller.tenant, id, self.ids().clock.now()).await?;
        Change::new("delivery", "replay", id).commit(tx, caller.tenant).await?;
        self.inner.dispatch.log_signals().changed(caller.tenant);
        self.delivery(caller, id).await
    }

    /// `POST /v1/senders/{id}/webhook/test` and, without a sender, `POST /v1/webhook/test`: posts `webhook.test` to the webhook of the
    /// sender or of the environment. Returns the event and its delivery.
    pub async fn test(&self, caller: &Caller, sender: Option<&str>) -> Result<(EventId, DeliveryId)> {
        caller.require(UseCase::TestWebhook)?;
        let sender: Option<SenderId> = sender.map(|id| parse_id(id, "sender")).transpose()?;
        let config = self.tenant_config(caller.tenant).await?;
        if sender.is_some_and(|id| config.sender(id).is_none()) {
            return Err(Error::not_found("sender"));
        }
        let (now, resource) = (self.ids().clock.now(), self.ids().next::<EventId>().uuid());
        let mut tx = self.inner.store.begin().await?;
        let Some(webhook) = tx.find_webhook(caller.tenant, sender).await?.filter(|webhook| webhook.active) else {
            let message = match sender {
                Some(_) => "the sender has no active webhook; set its webhookUrl and webhookActive",
                None => "this environment has no active webhook; set url and active with PUT /v1/webhook",
            };
            return Err(Error::wrong_state(message, "inactive", &["active"]));
        };
        let mut data = Map::new();
        let of = sender.map(|id| ("senderId", Value::from(id.to_string())));
        data.insert("webhook".to_owned(), Value::from_iter(of));
        let occurrence = Occurrence { kind: EventType::WebhookTest, sender, data };
        let event = NewEvent { kind: ResourceKind::Webhook, resource, sequence: 1, occurrences: vec![occurrence] };
        tx.insert_event(caller.tenant, &event, now).await?;
        let payload = LogPayload::Other(event.kind, event.occurrences);
        let entry = LogEntry { position: Position::default(), resource, sequence: event.sequence, recorded_at: now, payload };
        let event = crate::webhooks::events::build_events(&mut *tx, &config, &[entry], |_| true).await?.pop();
        let event = event.ok_or_else(|| Error::internal("a test has no event"))?;
        // Before all that waits: an endpoint that fails gets single tries.
        let due_at = Some(Timestamp::from_millis(0));
        let delivery = Delivery { due_at, ..new_delivery(&event, sender, &webhook.url, now) };
        tx.insert_delivery(caller.tenant, &delivery).await?;
        let of = sender.map_or_else(|| "webhook".to_owned(), |sender| sender.to_string());
        Change::new("webhook", "test", of).commit(tx, caller.tenant).await?;
        self.inner.dispatch.log_signals().changed(caller.tenant);
        Ok((delivery.event, delivery.id))
    }

    async fn delivery(&self, caller: &Caller, id: DeliveryId) -> Result<DeliveryView> {
        let found = self.inner.store.read().await?.find_delivery(caller.tenant, id).await?;
        found.map(|found| DeliveryView::new(found, self.ids().clock.now())).ok_or_else(|| Error::not_found("delivery"))
    }
}
