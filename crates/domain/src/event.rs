//! Types of events in the event log.

use serde::{Deserialize, Serialize};

use crate::channel::named;

named! {
    /// Kind of resource an event is about.
    ResourceKind {
        /// A message.
        Message = 1 "message",
        /// A contact.
        Contact = 2 "contact",
        /// A broadcast.
        Broadcast = 3 "broadcast",
        /// A template.
        Template = 4 "template",
        /// An invitation.
        Invitation = 5 "invitation",
        /// A test of a webhook.
        Webhook = 6 "webhook",
    }
}

/// Type of an event in webhooks and the event log.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum EventType {
    /// A message was accepted.
    #[serde(rename = "message.queued")]
    MessageQueued,
    /// Its first attempt started.
    #[serde(rename = "message.sending")]
    MessageSending,
    /// A provider accepted it.
    #[serde(rename = "message.sent")]
    MessageSent,
    /// Delivered.
    #[serde(rename = "message.delivered")]
    MessageDelivered,
    #[serde(rename = "message.read")]
    MessageRead,
    /// It failed permanently, or was cancelled.
    #[serde(rename = "message.failed")]
    MessageFailed,
    /// An inbound message arrived.
    #[serde(rename = "message.inbound")]
    MessageInbound,
    /// The first inbound message of a contact, or the first after 24 hours of silence.
    #[serde(rename = "conversation.new")]
    ConversationNew,
    /// A broadcast changed its status.
    #[serde(rename = "broadcast.status_changed")]
    BroadcastStatusChanged,
    /// A template changed its status.
    #[serde(rename = "template.status_changed")]
    TemplateStatusChanged,
    /// An invitation changed its status.
    #[serde(rename = "invitation.status_changed")]
    InvitationStatusChanged,
    /// Two contacts were merged.
    #[serde(rename = "contact.merged")]
    ContactMerged,
    /// A contact opted out.
    #[serde(rename = "contact.opted_out")]
    ContactOptedOut,
    /// A webhook was tested.
    #[serde(rename = "webhook.test")]
    WebhookTest,
}

impl EventType {
    /// All types.
    pub const ALL: &'static [Self] = &[
        Self::MessageQueued,
        Self::MessageSending,
        Self::MessageSent,
        Self::MessageDelivered,
        Self::MessageRead,
        Self::MessageFailed,
        Self::MessageInbound,
        Self::ConversationNew,
        Self::BroadcastStatusChanged,
        Self::TemplateStatusChanged,
        Self::InvitationStatusChanged,
        Self::ContactMerged,
        Self::ContactOptedOut,
        Self::WebhookTest,
    ];

    /// Returns the JSON name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MessageQueued => "message.queued",
            Self::MessageSending => "message.sending",
            Self::MessageSent => "message.sent",
            Self::MessageDelivered => "message.delivered",
            Self::MessageRead => "message.read",
            Self::MessageFailed => "message.failed",
            Self::MessageInbound => "message.inbound",
            Self::ConversationNew => "conversation.new",
            Self::BroadcastStatusChanged => "broadcast.status_changed",
            Self::TemplateStatusChanged => "template.status_changed",
            Self::InvitationStatusChanged => "invitation.status_changed",
            Self::ContactMerged => "contact.merged",
            Self::ContactOptedOut => "contact.opted_out",
            Self::WebhookTest => "webhook.test",
        }
    }

    /// Parses the name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|t| t.as_str() == text)
    }
}

impl std::fmt::Display for EventType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
