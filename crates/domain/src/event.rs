//! What the event log tells of.

use serde::{Deserialize, Serialize};

use crate::channel::named;

named! {
    /// What kind of resource an event is about.
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
        /// A webhook that is being tried out.
        Webhook = 6 "webhook",
    }
}

/// The type of an event, as webhooks and the event log name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum EventType {
    /// A message was accepted.
    #[serde(rename = "message.queued")]
    MessageQueued,
    /// Its first attempt began.
    #[serde(rename = "message.sending")]
    MessageSending,
    /// A provider took it.
    #[serde(rename = "message.sent")]
    MessageSent,
    /// It arrived.
    #[serde(rename = "message.delivered")]
    MessageDelivered,
    /// It was read.
    #[serde(rename = "message.read")]
    MessageRead,
    /// It will not arrive, or was cancelled.
    #[serde(rename = "message.failed")]
    MessageFailed,
    /// Somebody wrote to a sender.
    #[serde(rename = "message.inbound")]
    MessageInbound,
    /// Somebody wrote for the first time, or after 24 hours of silence.
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
    /// Two contacts became one.
    #[serde(rename = "contact.merged")]
    ContactMerged,
    /// A contact opted out.
    #[serde(rename = "contact.opted_out")]
    ContactOptedOut,
    /// A webhook was tried out.
    #[serde(rename = "webhook.test")]
    WebhookTest,
}

impl EventType {
    /// Every type.
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

    /// The name that stands in JSON.
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

    /// From the name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|t| t.as_str() == text)
    }
}

impl std::fmt::Display for EventType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
