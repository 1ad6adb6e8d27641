//! Statuses, channels and content types of broadcasts.

use crate::channel::{Channel, MessageType, RequestedChannel, named};

named! {
    /// Status of a broadcast.
    #[cfg_attr(feature = "openapi", schema(as = BroadcastStatus, description = "Status of a broadcast."))]
    Status {
        Draft = 1 "draft",
        /// Waits for the automated review.
        PendingReview = 2 "pending_review",
        /// Passed the review; moves on at once to `scheduled` or `sending`.
        Approved = 3 "approved",
        /// Failed the review. Can be edited, escalated or cancelled.
        Rejected = 4 "rejected",
        /// Waits for a human reviewer.
        Escalated = 5 "escalated",
        /// Rejected by a human reviewer. Final.
        RejectedFinal = 6 "rejected_final",
        /// Waits for its scheduled time.
        Scheduled = 7 "scheduled",
        /// Messages are being sent.
        Sending = 8 "sending",
        /// Stopped until it is resumed.
        Paused = 9 "paused",
        /// Complete. Final.
        Completed = 10 "completed",
        /// Stopped permanently. Final.
        Cancelled = 11 "cancelled",
        /// No provider accepted any message. Final.
        Failed = 12 "failed",
    }
}

impl Status {
    /// Returns whether no transition leaves this status.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::RejectedFinal | Self::Completed | Self::Cancelled | Self::Failed)
    }

    /// Returns whether pending and queued recipients will get nothing: none is enqueued any more, and queued messages are withdrawn.
    pub const fn skips_pending(self) -> bool {
        matches!(self, Self::RejectedFinal | Self::Cancelled)
    }

    /// Returns why its messages must not start an attempt, if they must not.
    pub const fn halt(self) -> Option<Halt> {
        match self {
            Self::Paused => Some(Halt::Paused),
            Self::Cancelled => Some(Halt::Cancelled),
            _ => None,
        }
    }
}

named! {
    /// How a broadcast reaches its recipients.
    #[cfg_attr(feature = "openapi", schema(as = BroadcastChannel, description = "One channel, or `smart` to choose for each recipient, as `auto` does for messages."))]
    BroadcastChannel {
        /// Chosen for each recipient.
        #[serde(alias = "auto")]
        Smart = 1 "smart",
        /// SMS with replies.
        Sms = 2 "sms",
        /// SMS without replies.
        SmsOneway = 3 "sms_oneway",
        Whatsapp = 4 "whatsapp",
        Telegram = 5 "telegram",
        Email = 6 "email",
        Instagram = 7 "instagram",
        /// A call.
        Voice = 8 "voice",
    }
}

impl BroadcastChannel {
    /// Returns the channel its messages request.
    pub const fn requested(self) -> RequestedChannel {
        match self {
            Self::Smart => RequestedChannel::Auto,
            Self::Sms => RequestedChannel::Only(Channel::Sms),
            Self::SmsOneway => RequestedChannel::Only(Channel::SmsOneway),
            Self::Whatsapp => RequestedChannel::Only(Channel::Whatsapp),
            Self::Telegram => RequestedChannel::Only(Channel::Telegram),
            Self::Email => RequestedChannel::Only(Channel::Email),
            Self::Instagram => RequestedChannel::Only(Channel::Instagram),
            Self::Voice => RequestedChannel::Only(Channel::Voice),
        }
    }
}

named! {
    /// Content type of a broadcast.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", schema(as = BroadcastMessageType))]
    BroadcastType {
        /// Plain text.
        #[default]
        Text = 1 "text",
        /// A picture.
        Image = 2 "image",
        Video = 3 "video",
        /// A sound.
        Audio = 4 "audio",
        /// A file.
        Document = 5 "document",
        /// A template with variables.
        Template = 6 "template",
    }
}

impl BroadcastType {
    pub const fn message_type(self) -> MessageType {
        match self {
            Self::Text => MessageType::Text,
            Self::Image => MessageType::Image,
            Self::Video => MessageType::Video,
            Self::Audio => MessageType::Audio,
            Self::Document => MessageType::Document,
            Self::Template => MessageType::Template,
        }
    }
}

named! {
    /// Status of one recipient of a broadcast.
    #[cfg_attr(feature = "openapi", schema(as = BroadcastContactStatus))]
    ContactStatus {
        /// No message yet.
        Pending = 1 "pending",
        /// Its message waits for the first attempt.
        Queued = 2 "queued",
        /// An attempt was started, or a provider accepted the message without a further report.
        Sending = 3 "sending",
        Delivered = 4 "delivered",
        /// Not delivered.
        Failed = 5 "failed",
        /// Not sent: the recipient is suppressed, or the broadcast was cancelled or finally rejected.
        Skipped = 6 "skipped",
    }
}

impl ContactStatus {
    /// Returns the status of a recipient whose broadcast has this status.
    #[must_use]
    pub const fn within(self, broadcast: Status) -> Self {
        match self {
            Self::Pending | Self::Queued if broadcast.skips_pending() => Self::Skipped,
            own => own,
        }
    }
}

/// Why messages of a broadcast must not start an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halt {
    Paused,
    Cancelled,
}
