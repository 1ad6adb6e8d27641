//! Events from providers: receipts, inbound messages, complaints, template decisions.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::Content;
use nuncio_domain::sms::Alphabet;
use nuncio_domain::template::Decision;
use nuncio_domain::{Authentication, Channel, ConnectionId, MessageId, MessageType, TemplateId, TenantId, Timestamp};

use crate::Account;

/// Receives the events of providers.
#[async_trait]
pub trait EventSink: Debug + Send + Sync {
    /// Queues an event in memory, to be applied `after` this delay. Never blocks.
    fn push(&self, event: ProviderEvent, after: Duration);

    /// Stores an event before it returns, for providers that need a reply only then. Idempotent: the same event can be recorded again.
    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded>;
}

/// An event could not be stored now. The provider gets an error and sends it again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the event could not be stored; send it again")]
pub struct Unrecorded;

/// Something that a provider reported.
#[derive(Clone, PartialEq, Debug)]
pub enum ProviderEvent {
    /// The status of an attempt.
    Receipt {
        /// Which attempt.
        target: ReceiptTarget,
        /// The status.
        kind: ReceiptKind,
        /// When it happened, as the provider says.
        at: Timestamp,
        /// The receipt as received, for people; without secrets. `None` if it says no more than the other fields.
        raw: Option<String>,
    },
    /// An inbound message.
    Inbound(Inbound),
    /// One segment of an inbound message.
    Part(Box<InboundPart>),
    /// The recipient complained about a message, or unsubscribed.
    Complaint {
        /// Whose connection.
        tenant: TenantId,
        /// The message complained about.
        message: MessageId,
    },
    /// The recipient does not exist, so later messages cannot arrive either. The status of this one comes as a receipt.
    Bounced {
        /// Whose connection.
        tenant: TenantId,
        /// The message that came back.
        message: MessageId,
    },
    /// A recipient opted out at the provider, for example by blocking the account.
    OptedOut(OptedOut),
    /// The decision on a submitted template.
    TemplateDecided {
        /// The environment.
        tenant: TenantId,
        /// The template.
        template: TemplateId,
        /// What the provider says.
        decision: Decision,
    },
}

impl ProviderEvent {
    /// Returns the tenant of the connection that the event is about.
    pub const fn tenant(&self) -> TenantId {
        match self {
            Self::Receipt { target: ReceiptTarget::Attempt { tenant, .. } | ReceiptTarget::Reference { tenant, .. }, .. }
            | Self::Complaint { tenant, .. }
            | Self::Bounced { tenant, .. }
            | Self::TemplateDecided { tenant, .. } => *tenant,
            Self::Inbound(inbound) => inbound.tenant,
            Self::Part(part) => part.tenant,
            Self::OptedOut(opted) => opted.tenant,
        }
    }
}

/// The connection that an event comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The environment that the connection belongs to.
    pub tenant: TenantId,
    /// The connection.
    pub connection: ConnectionId,
    /// The channel that it carries.
    pub channel: Channel,
}

impl Origin {
    /// The connection of `account`.
    pub const fn of(account: &Account) -> Self {
        Self { tenant: account.tenant, connection: account.id, channel: account.channel }
    }

    /// An attempt by its number from 0, which the provider returned to us.
    pub const fn attempt(self, message: MessageId, attempt: usize) -> ReceiptTarget {
        let Self { tenant, connection, .. } = self;
        ReceiptTarget::Attempt { tenant, message, attempt: Some(attempt), connection }
    }

    /// An attempt by the provider's id.
    pub const fn reference(self, reference: String) -> ReceiptTarget {
        let Self { tenant, connection, .. } = self;
        ReceiptTarget::Reference { tenant, connection, reference }
    }

    /// The event that `from` (in canonical form) wants no more messages from this connection.
    pub const fn opted_out(self, from: String) -> ProviderEvent {
        let Self { tenant, connection, channel } = self;
        ProviderEvent::OptedOut(OptedOut { tenant, connection, channel, from })
    }
}

impl From<(TenantId, ConnectionId, Channel)> for Origin {
    fn from((tenant, connection, channel): (TenantId, ConnectionId, Channel)) -> Self {
        Self { tenant, connection, channel }
    }
}

/// How a receipt names its attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiptTarget {
    /// By our own identifiers, which the provider returned.
    Attempt {
        /// The environment.
        tenant: TenantId,
        /// The message.
        message: MessageId,
        /// The attempt, from 0; the newest when absent.
        attempt: Option<usize>,
        /// The connection that reports.
        connection: ConnectionId,
    },
    /// By an id that the provider returned when it accepted the message, or a part of it. The receipt can arrive before that response.
    Reference {
        /// The environment of the connection.
        tenant: TenantId,
        /// The connection that sent it.
        connection: ConnectionId,
        /// The id.
        reference: String,
    },
}

/// A recipient who opted out of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptedOut {
    /// The environment of the connection.
    pub tenant: TenantId,
    /// The connection that they want nothing from.
    pub connection: ConnectionId,
    /// Its channel.
    pub channel: Channel,
    /// Who, in canonical form.
    pub from: String,
}

/// An inbound message.
#[derive(Clone, PartialEq, Debug)]
pub struct Inbound {
    /// The world of the connection that received it.
    pub tenant: TenantId,
    /// The connection that received it.
    pub connection: ConnectionId,
    /// The channel it came by.
    pub channel: Channel,
    /// The provider's id for it; two with the same connection and id are one.
    pub provider_message_id: String,
    /// Who wrote, in canonical form.
    pub from: String,
    /// What they wrote to, when the provider names it; else it is what the connection sends from.
    pub to: Option<String>,
    /// The name that they go by in the messaging app, when it tells.
    pub profile_name: Option<String>,
    /// What kind of message it is. A button or a row that was chosen is a text, with what was chosen in `content`.
    pub message_type: MessageType,
    /// What they wrote; a caption; the title of what they chose.
    pub text: String,
    /// What is more than text. For a reaction `react_to_message_id` holds the provider's id of the message reacted to.
    pub content: Option<Box<Content>>,
    /// Subject of an email.
    pub subject: Option<String>,
    /// HTML of an email.
    pub html_body: Option<String>,
    /// What came along.
    pub media: Vec<Media>,
    /// The provider's id of our message that it replies to, when it says.
    pub replies_to: Option<String>,
    /// For an email, what proves who wrote it. `None` where the provider vouches for the writer, as all others do.
    pub authentication: Option<Authentication>,
    /// When, as the provider says.
    pub at: Timestamp,
}

impl Inbound {
    /// A text.
    pub fn text(origin: impl Into<Origin>, provider_message_id: String, from: String, text: String, at: Timestamp) -> Self {
        let Origin { tenant, connection, channel } = origin.into();
        Self {
            tenant,
            connection,
            channel,
            provider_message_id,
            from,
            to: None,
            profile_name: None,
            message_type: MessageType::Text,
            text,
            content: None,
            subject: None,
            html_body: None,
            media: Vec::new(),
            replies_to: None,
            authentication: None,
            at,
        }
    }
}

/// One part of a text from outside that comes in several, in any order and over any session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboundPart {
    /// The world of the connection that received it.
    pub tenant: TenantId,
    /// The connection that received it.
    pub connection: ConnectionId,
    /// The channel it came by.
    pub channel: Channel,
    /// Who wrote, in canonical form.
    pub from: String,
    /// What they wrote to, when the provider names it.
    pub to: Option<String>,
    /// What the parts of one message have in common, and those of others of the same time have not.
    pub key: String,
    /// Which part it is, from 1 to `total`.
    pub sequence: u8,
    /// How many parts there are.
    pub total: u8,
    /// How `octets` are read.
    pub alphabet: Alphabet,
    /// Its user data. A character may be cut in two: parts of one alphabet are joined before they are read.
    pub octets: Vec<u8>,
    /// How long the others are waited for.
    pub patience: Duration,
    /// When it came.
    pub at: Timestamp,
}

/// Media of an inbound message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Media {
    /// How [`crate::Adapter::fetch_media`] finds it. Empty when `bytes` are at hand.
    pub reference: String,
    /// File name, when there is one.
    pub filename: Option<String>,
    /// MIME type.
    pub content_type: String,
    /// `Content-ID` without angle brackets, for inline parts of an email.
    pub content_id: Option<String>,
    /// The content, when it came with the message.
    pub bytes: Option<Vec<u8>>,
}
