//! Webhooks and their deliveries.

use crate::{channel::named, event::EventType, id::SenderId, redacted::Redacted, time::Timestamp};

/// The webhook of a sender, or of the environment for events without a sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Webhook {
    /// `None` for the environment's webhook.
    pub sender: Option<SenderId>,
    pub url: String,
    pub events: Vec<EventType>,
    /// Whether events are posted.
    pub active: bool,
    /// Sealed signing secrets: `{"current": "whsec_…", "previous": [["whsec_…", end in Unix milliseconds], …]}`.
    pub sealed: Redacted<Vec<u8>>,
    /// Start of the current run of failures.
    pub failing_since: Option<Timestamp>,
    /// Why it was disabled automatically.
    pub disabled_reason: Option<String>,
    /// Replacing a webhook that exists keeps this.
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

named! {
    /// Status of a delivery.
    #[cfg_attr(feature = "openapi", schema(as = WebhookDeliveryStatus))]
    DeliveryStatus {
        /// Not tried yet.
        Pending = 1 "pending",
        /// The endpoint accepted it.
        Delivered = 2 "delivered",
        /// The last try failed; it will be retried.
        Failed = 3 "failed",
        /// Abandoned.
        Dead = 4 "dead",
    }
}

impl Webhook {
    /// Events that can be without a sender, which the webhook of an environment gets.
    pub const EVENTS_WITHOUT_SENDER: &'static [EventType] =
        &[EventType::TemplateStatusChanged, EventType::InvitationStatusChanged, EventType::ContactMerged, EventType::ContactOptedOut];

    /// Default events of a sender's webhook.
    pub const DEFAULT_EVENTS: &'static [EventType] = &[
        EventType::MessageQueued,
        EventType::MessageSending,
        EventType::MessageSent,
        EventType::MessageDelivered,
        EventType::MessageRead,
        EventType::MessageFailed,
        EventType::MessageInbound,
        EventType::ConversationNew,
        EventType::BroadcastStatusChanged,
        EventType::TemplateStatusChanged,
        EventType::InvitationStatusChanged,
    ];
}
