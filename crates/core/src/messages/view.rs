//! Public representation of messages.

use nuncio_domain::id::Id as _;
use nuncio_domain::message::{
    Attempt, AttemptStatus, Considered, Content, Detail, Direction, FailureCode, HeldReason, Message, OnUnknown, Request, Status, Wait,
};
use nuncio_domain::{
    Authentication, BroadcastId, Channel, ContactId, Environment, MessageId, MessageType, Micros, RequestedChannel, SenderId, Timestamp,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::command::validity;

/// A message.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Message)]
pub struct MessageView {
    /// Its identifier.
    pub id: MessageId,
    /// The recipient, or your number or address for an inbound message, in canonical form.
    pub to: String,
    /// Your number or address on the channel of the newest attempt, or the author of an inbound message.
    pub from: Option<String>,
    /// The sender profile.
    pub sender_id: SenderId,
    /// The channel of the newest attempt.
    pub channel: Channel,
    /// Content type.
    pub message_type: MessageType,
    /// Its status.
    pub status: Status,
    /// `outbound` or `inbound`.
    pub direction: Direction,
    /// `live` or `test`.
    pub environment: Environment,
    /// The contact.
    pub contact_id: Option<ContactId>,
    /// The broadcast that it belongs to.
    pub broadcast_id: Option<BroadcastId>,
    /// Text, caption or spoken words.
    pub text: Option<String>,
    /// Extra content.
    pub content: Option<Box<Content>>,
    /// Email subject.
    pub subject: Option<String>,
    /// HTML of an email; only in `GET /v1/messages/{id}`.
    pub html_body: Option<String>,
    /// Reply-to address of an email.
    pub reply_to: Option<String>,
    /// Language to speak, if set.
    pub voice_language: Option<String>,
    /// Whether a message that fails on WhatsApp goes by SMS instead. Absent for inbound messages.
    pub fallback_enabled: Option<bool>,
    /// Falls back after this many seconds without a receipt.
    pub fallback_after_seconds: Option<u64>,
    /// What happens after an attempt with an unknown outcome. Absent for inbound messages.
    pub on_unknown: Option<OnUnknown>,
    /// Validity in seconds. Absent for inbound messages.
    pub validity_seconds: Option<u64>,
    /// When its validity ends. Absent for inbound messages.
    pub expires_at: Option<Timestamp>,
    /// The provider's id of the newest attempt by the current channel that got one; of a text in several parts, that of the first.
    pub provider_message_id: Option<String>,
    /// For an inbound email, whether its `From` is proven.
    pub authentication: Option<Authentication>,
    /// Why it failed, from a closed list.
    pub error_code: Option<FailureCode>,
    /// Why it failed, as text.
    pub error_message: Option<String>,
    /// Platform fee in US dollars; absent until known.
    pub cost: Option<Micros>,
    /// Carrier's price in US dollars.
    pub cost_provider: Option<Micros>,
    /// Sum of both.
    pub cost_total: Option<Micros>,
    /// SMS segments.
    pub segments: Option<u16>,
    /// Your own data.
    pub metadata: Option<Map<String, Value>>,
    /// All provider calls, oldest first.
    pub attempts: Vec<AttemptView>,
    /// Why it took its route.
    pub routing: RoutingView,
    /// Whether the recipient might have received it more than once.
    pub possible_duplicate: bool,
    /// Why it is held for a human decision.
    pub held_reason: Option<HeldReason>,
    /// When it should be sent.
    pub scheduled_at: Option<Timestamp>,
    /// When a provider accepted it.
    pub sent_at: Option<Timestamp>,
    /// When it was delivered.
    pub delivered_at: Option<Timestamp>,
    /// When it was read.
    pub read_at: Option<Timestamp>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When the next attempt starts, for pages.
    #[serde(skip)]
    pub next_attempt_at: Option<Timestamp>,
}

/// One provider call.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attempt)]
pub struct AttemptView {
    /// The channel that was used.
    pub channel: Channel,
    /// The kind of provider.
    pub provider: String,
    /// `started`, `accepted`, `delivered`, `failed` or `unknown`.
    pub status: AttemptStatus,
    /// When its start was stored.
    pub started_at: Timestamp,
    /// When its result was known.
    pub finished_at: Option<Timestamp>,
    /// The provider's id; of a text in several parts, that of the first.
    pub provider_message_id: Option<String>,
    /// Why it failed, from a closed list.
    pub error_code: Option<FailureCode>,
    /// The provider's own code.
    pub provider_error_code: Option<String>,
    /// As text.
    pub error_message: Option<String>,
}

/// Why a message took its route.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Routing)]
pub struct RoutingView {
    /// The requested channel.
    pub requested_channel: RequestedChannel,
    /// The deciding rule.
    pub reason: String,
    /// Every channel considered.
    pub considered: Vec<ConsideredView>,
    /// Warnings about the recipient or the content.
    pub warnings: Vec<String>,
}

/// A channel considered during routing.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ConsideredChannel)]
pub struct ConsideredView {
    /// The channel.
    pub channel: Channel,
    /// Whether it can carry the message.
    pub usable: bool,
    /// Reason for the result.
    pub reason: String,
    /// Price on this channel in US dollars; absent without a price.
    pub price: Option<Micros>,
    /// Estimated chance of delivery, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    pub probability: Option<f64>,
}

impl From<&Considered> for ConsideredView {
    fn from(considered: &Considered) -> Self {
        Self {
            channel: considered.channel,
            usable: considered.usable,
            reason: considered.reason.clone(),
            price: considered.price,
            probability: considered.chance.map(|thousandths| f64::from(thousandths) / 1_000.0),
        }
    }
}

impl RoutingView {
    pub(super) fn new(request: &Request) -> Self {
        let routing = &request.routing;
        Self {
            requested_channel: request.requested_channel,
            reason: routing.reason.clone(),
            considered: routing.considered.iter().map(Into::into).collect(),
            warnings: routing.warnings.clone(),
        }
    }
}

impl AttemptView {
    fn new(attempt: &Attempt) -> Self {
        let error = attempt.error.as_ref();
        Self {
            channel: attempt.channel,
            provider: attempt.provider.clone(),
            status: attempt.status,
            started_at: attempt.started_at,
            finished_at: attempt.finished_at,
            provider_message_id: attempt.provider_message_id.clone(),
            error_code: error.map(|e| e.code),
            provider_error_code: error.and_then(|e| e.provider_code.clone()),
            error_message: error.map(|e| e.message.clone()),
        }
    }
}

/// Returns the id of an inbound message, or that of the newest attempt by the channel of the last one: an attempt that was repeated after
/// an unknown outcome may have one.
fn provider_id(detail: &Detail) -> Option<&str> {
    let Some(last) = detail.attempts.last() else { return detail.provider_id.as_deref() };
    let of_channel = detail.attempts.iter().rev().filter(|attempt| attempt.channel == last.channel);
    of_channel.filter_map(|attempt| attempt.provider_message_id.as_deref()).next()
}

impl MessageView {
    pub fn new(message: &Message, environment: Environment, contact: Option<ContactId>) -> Self {
        let (request, state, detail) = (&message.request, &message.state, &message.state.detail);
        let outbound = message.direction == Direction::Outbound;
        let failure = detail.failure.as_ref().filter(|_| matches!(state.status, Status::Failed | Status::Cancelled));
        Self {
            id: message.id,
            to: message.to.clone(),
            from: Some(detail.taken_fallback_from().unwrap_or(&message.from).to_owned()).filter(|from| !from.is_empty()),
            sender_id: message.sender,
            channel: state.channel(),
            message_type: message.message_type,
            status: state.status,
            direction: message.direction,
            environment,
            contact_id: contact,
            broadcast_id: detail.broadcast.map(|part| part.broadcast),
            text: request.text.clone(),
            content: request.content.clone(),
            subject: request.subject.clone(),
            html_body: None,
            reply_to: request.reply_to.clone(),
            voice_language: request.voice_language.clone(),
            fallback_enabled: outbound.then_some(request.fallback_enabled),
            fallback_after_seconds: request.fallback_after_seconds,
            on_unknown: outbound.then_some(detail.on_unknown),
            validity_seconds: outbound.then(|| request.validity_seconds.unwrap_or_else(|| validity(state.channel()))),
            expires_at: outbound.then_some(state.expires_at),
            provider_message_id: provider_id(detail).map(str::to_owned),
            authentication: detail.authentication,
            error_code: failure.map(|f| f.code),
            error_message: failure.map(|f| f.message.clone()),
            cost: detail.cost.map(|c| c.fee),
            cost_provider: detail.cost.map(|c| c.provider),
            cost_total: detail.cost.and_then(|c| c.fee.checked_add(c.provider)),
            segments: detail.segments.filter(|_| state.channel().is_sms()),
            metadata: request.metadata.clone(),
            attempts: detail.attempts.iter().map(AttemptView::new).collect(),
            routing: RoutingView::new(request),
            possible_duplicate: detail.possible_duplicate,
            held_reason: if let Wait::Held { reason, .. } = state.wait { Some(reason) } else { None },
            scheduled_at: request.scheduled_at,
            sent_at: detail.sent_at,
            delivered_at: detail.delivered_at,
            read_at: detail.read_at,
            created_at: message.id.created_at(),
            updated_at: state.updated_at,
            next_attempt_at: if let Wait::Attempt { due_at } = state.wait { Some(due_at) } else { None },
        }
    }
}
