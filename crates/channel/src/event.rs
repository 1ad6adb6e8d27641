//! Events from providers: receipts, inbound messages, complaints, template decisions.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Receipts, bounded_reference};
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

    /// Stores an event before it returns, for providers that need a reply only then. The same event can be recorded again: the message
    /// changes once, while each receipt is stored.
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
        target: ReceiptTarget,
        kind: ReceiptKind,
        /// Time as reported by the provider, otherwise of arrival.
        at: Timestamp,
        /// The receipt as received, without secrets. `None` if it has no further information.
        raw: Option<String>,
    },
    /// The result of an attempt whose outcome was unknown.
    LateResult(Box<LateResult>),
    /// An inbound message.
    Inbound(Inbound),
    /// One segment of an inbound message.
    Part(Box<InboundPart>),
    /// The recipient complained about a message, or unsubscribed.
    Complaint { tenant: TenantId, message: MessageId },
    /// The recipient does not exist, so later messages cannot be delivered either. This message gets a separate receipt.
    Bounced {
        tenant: TenantId,
        /// The message that bounced.
        message: MessageId,
        /// The recipient that does not exist, where the provider names it: behind an alias, it is not that of the message.
        recipient: Option<String>,
    },
    /// A recipient opted out at the provider, for example by blocking the account.
    OptedOut(OptedOut),
    /// The decision on a submitted template.
    TemplateDecided { tenant: TenantId, template: TemplateId, decision: Decision },
}

impl ProviderEvent {
    /// Returns the tenant of the connection that the event is about.
    pub const fn tenant(&self) -> TenantId {
        match self {
            Self::Receipt { target: ReceiptTarget::Attempt { tenant, .. } | ReceiptTarget::Reference { tenant, .. }, .. }
            | Self::Complaint { tenant, .. }
            | Self::Bounced { tenant, .. }
            | Self::TemplateDecided { tenant, .. } => *tenant,
            Self::LateResult(result) => result.origin.tenant,
            Self::Inbound(inbound) => inbound.tenant,
            Self::Part(part) => part.tenant,
            Self::OptedOut(opted) => opted.tenant,
        }
    }
}

/// The connection that an event comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    pub tenant: TenantId,
    pub connection: ConnectionId,
    pub channel: Channel,
}

impl Origin {
    /// Returns the origin of events of `account`.
    pub const fn of(account: &Account) -> Self {
        Self { tenant: account.tenant, connection: account.id, channel: account.channel }
    }

    /// Names an attempt by its number from 0, which the provider echoed.
    pub const fn attempt(self, message: MessageId, attempt: usize) -> ReceiptTarget {
        let Self { tenant, connection, .. } = self;
        ReceiptTarget::Attempt { tenant, message, attempt: Some(attempt), connection }
    }

    /// Names an attempt by the provider's id, which is bounded as that of the response was.
    pub fn reference(self, reference: String) -> ReceiptTarget {
        let Self { tenant, connection, .. } = self;
        ReceiptTarget::Reference { tenant, connection, reference: bounded_reference(reference) }
    }

    /// Returns the event that `from` (in canonical form) opted out of this connection; `at` is the time as reported by the provider.
    pub const fn opted_out(self, from: String, at: Option<Timestamp>) -> ProviderEvent {
        let Self { tenant, connection, channel } = self;
        ProviderEvent::OptedOut(OptedOut { tenant, connection, channel, from, at })
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
    /// By our own identifiers, echoed by the provider.
    Attempt {
        tenant: TenantId,
        message: MessageId,
        /// Index of the attempt; `None` means the newest.
        attempt: Option<usize>,
        /// The connection that received the receipt.
        connection: ConnectionId,
    },
    /// By an id that the provider returned when it accepted the message, or a part of it. The receipt can arrive before that response.
    Reference { tenant: TenantId, connection: ConnectionId, reference: String },
}

/// The provider's response to an attempt that had already returned [`Outcome::Unknown`].
#[derive(Clone, PartialEq, Debug)]
pub struct LateResult {
    pub origin: Origin,
    pub message: MessageId,
    /// Index of the attempt.
    pub attempt: usize,
    pub outcome: Outcome,
    /// How the provider will report delivery.
    pub receipts: Receipts,
}

/// A recipient who opted out of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptedOut {
    pub tenant: TenantId,
    pub connection: ConnectionId,
    pub channel: Channel,
    /// The recipient, in canonical form.
    pub from: String,
    /// Time as reported by the provider.
    pub at: Option<Timestamp>,
}

/// An inbound message.
#[derive(Clone, PartialEq, Debug)]
pub struct Inbound {
    pub tenant: TenantId,
    pub connection: ConnectionId,
    pub channel: Channel,
    /// The provider's id; two events with the same connection and id are one message.
    pub provider_message_id: String,
    /// The author, in canonical form.
    pub from: String,
    /// The address they wrote to, if the provider reports it; otherwise the connection's own.
    pub to: Option<String>,
    /// The author's name in the messaging app, if reported.
    pub profile_name: Option<String>,
    /// Content type. A chosen button or row is a text, with the choice in `content`.
    pub message_type: MessageType,
    /// The text, caption, or title of what they chose.
    pub text: String,
    /// Content beyond text. For a reaction, `react_to_message_id` is the provider's id of the message.
    pub content: Option<Box<Content>>,
    /// Subject of an email.
    pub subject: Option<String>,
    /// HTML of an email.
    pub html_body: Option<String>,
    /// Attached media.
    pub media: Vec<Media>,
    /// What the author asks for, if the provider has recognised and answered it.
    pub answered: Option<Wish>,
    /// The provider's id of our message it replies to, if reported.
    pub replies_to: Option<String>,
    /// Authentication of an email's author. `None` for all other channels, where the provider vouches for the author.
    pub authentication: Option<Authentication>,
    /// Time as reported by the provider.
    pub at: Timestamp,
}

/// Request of a person about the messages of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Unsubscribe.
    Stop,
    /// Subscribe again.
    Start,
    /// Get information.
    Help,
}

impl Inbound {
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
            answered: None,
            replies_to: None,
            authentication: None,
            at,
        }
    }
}

/// One segment of an inbound text. Segments arrive in any order and over any session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboundPart {
    pub tenant: TenantId,
    pub connection: ConnectionId,
    pub channel: Channel,
    /// The author, in canonical form.
    pub from: String,
    /// The address they wrote to, if the provider reports it.
    pub to: Option<String>,
    /// Identifies the message among others of the same time.
    pub key: String,
    /// Number of the segment, from 1 to `total`.
    pub sequence: u8,
    /// Number of segments.
    pub total: u8,
    /// Encoding of `octets`.
    pub alphabet: Alphabet,
    /// User data. A character can be split across segments: segments of one alphabet are joined before decoding.
    pub octets: Vec<u8>,
    /// How long to wait for the other segments.
    pub patience: Duration,
    pub at: Timestamp,
}

/// Media of an inbound message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Media {
    /// Reference for [`crate::Adapter::fetch_media`]. Empty if `bytes` is set.
    pub reference: String,
    /// File name, if there is one.
    pub filename: Option<String>,
    /// MIME type.
    pub content_type: String,
    /// `Content-ID` without angle brackets, for inline parts of an email.
    pub content_id: Option<String>,
    /// The content, if it arrived with the message.
    pub bytes: Option<Vec<u8>>,
}
