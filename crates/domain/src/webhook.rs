//! Where events are posted to.

use serde::{Deserialize, Serialize};

use crate::channel::named;
use crate::event::EventType;
use crate::id::SenderId;
use crate::redacted::Redacted;
use crate::time::Timestamp;

/// The webhook of a sender, or of a world for events without a sender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Webhook {
    /// The sender; the world itself when absent. One webhook each.
    pub sender: Option<SenderId>,
    /// Where to post to.
    pub url: String,
    /// Which events.
    pub events: Vec<EventType>,
    /// Whether anything is posted.
    pub active: bool,
    /// The signing secrets, sealed: `{"current": "whsec_…", "previous": "whsec_…"}`.
    pub sealed: Redacted<Vec<u8>>,
    /// Until when the previous secret signs too.
    pub previous_until: Option<Timestamp>,
    /// Since when nothing but failure was seen.
    pub failing_since: Option<Timestamp>,
    /// Why it was switched off, if not by a person.
    pub disabled_reason: Option<String>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

named! {
    /// Where a delivery stands.
    #[cfg_attr(feature = "openapi", schema(as = WebhookDeliveryStatus))]
    DeliveryStatus {
        /// Not tried yet.
        Pending = 1 "pending",
        /// The endpoint took it.
        Delivered = 2 "delivered",
        /// The last try failed; there will be another.
        Failed = 3 "failed",
        /// Given up.
        Dead = 4 "dead",
    }
}

impl Webhook {
    /// The events of a webhook that names none.
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
