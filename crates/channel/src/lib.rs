//! The contract between nuncio and its providers.
//!
//! An [`Adapter`] drives one provider account (a *connection*). It translates a [`SendRequest`], makes the call and answers with a
//! [`Verdict`]. It never retries, sleeps, logs what became of a message, or touches the store: retries, throttles, fallback,
//! attempts and metrics belong to dispatch. What a provider tells later (receipts, inbound messages) goes into the [`EventSink`].
//!
//! A new provider is one crate with an [`AdapterFactory`], and one line where the server builds its [`Registry`].

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_domain::config::Connection;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Cost, Failure, Message};
use nuncio_domain::template::{Decision, Template};
use nuncio_domain::{Channel, ConnectionId, FieldError, Ids, MessageId, MessageType, Redacted, TemplateId, TenantId, Timestamp};
use serde_json::{Map, Value};

#[cfg(feature = "contract")]
pub mod contract;
mod profile;
mod registry;
mod settings;

pub use profile::{Picture, ProfileApi, ProfileError};
pub use registry::Registry;
pub use settings::{Field, FieldKind, Settings};

/// One attempt to send one message.
#[derive(Debug)]
pub struct SendRequest<'a> {
    /// The message.
    pub message: &'a Message,
    /// Which attempt this is, from 0. Together with the message id it names the attempt for ever.
    pub attempt: usize,
    /// The channel of this attempt; not always the one that was asked for.
    pub channel: Channel,
    /// Attachments with their bytes, in the order of the request. URLs have been fetched.
    pub attachments: &'a [ResolvedAttachment],
    /// The time of the attempt.
    pub now: Timestamp,
}

/// An attachment that is ready to go out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedAttachment {
    /// File name.
    pub filename: String,
    /// MIME type.
    pub content_type: String,
    /// `Content-ID` without angle brackets, for inline parts.
    pub content_id: Option<String>,
    /// The content.
    pub bytes: Vec<u8>,
}

/// What became of an attempt, as far as the provider's answer tells.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// The provider took it.
    Accepted {
        /// The provider's id for it, under which receipts come.
        provider_message_id: Option<String>,
        /// What it cost, when the answer says.
        cost: Option<Cost>,
    },
    /// Not now. The same route may work later.
    Deferred {
        /// When the provider asks to come back; dispatch chooses when it does not say.
        retry_after: Option<Duration>,
        /// Why.
        failure: Failure,
        /// What it concerns.
        scope: Scope,
    },
    /// Never by this route.
    Rejected {
        /// Why.
        failure: Failure,
    },
    /// It may have gone out: the connection broke after the request was written, or no answer came in time.
    Unknown {
        /// Why nobody can tell.
        failure: Failure,
    },
}

/// What a deferral concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// This message only.
    Message,
    /// The whole connection: it is unreachable, refuses our credentials or asks us to slow down. Others need not try meanwhile.
    Connection,
}

/// What an adapter can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Message types that it carries, natively or degraded.
    pub message_types: &'static [MessageType],
    /// Whether the provider tells what became of a message after taking it.
    pub receipts: bool,
    /// Attempts that may be under way at once.
    pub window: usize,
}

/// Drives one provider account.
#[async_trait]
pub trait Adapter: Debug + Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// Makes one attempt. Returns within a time-out of the adapter's own; every way that a call can end is a [`Verdict`].
    async fn send(&self, request: &SendRequest<'_>) -> Verdict;

    /// Tries to reach the provider and log in, without sending anything. The text says what was found, or what is wrong and what to do.
    async fn check(&self) -> Result<String, String>;

    /// The way to the account's business profile, if the provider has such a thing.
    fn profile(&self) -> Option<&dyn ProfileApi> {
        None
    }

    /// The provider's own templates, if it has any.
    fn templates(&self) -> Option<&dyn TemplateApi> {
        None
    }
}

/// Templates that the provider must approve before they can be sent. What it decides later comes as
/// [`ProviderEvent::TemplateDecided`], or is asked for.
#[async_trait]
pub trait TemplateApi: Debug + Send + Sync {
    /// Hands a template in, and answers the provider's id for it. May be called once more for the same name and language, if the first
    /// answer was lost: then the id is that of the one that is there.
    async fn submit(&self, template: &Template) -> Result<String, Failure>;

    /// What the provider says of a template by now.
    async fn status(&self, template: &Template) -> Result<Decision, Failure>;
}

/// Makes adapters of one kind.
pub trait AdapterFactory: Debug + Send + Sync {
    /// The name under which connections choose it, such as `smtp`.
    fn kind(&self) -> &'static str;

    /// The channels that it can carry.
    fn channels(&self) -> &'static [Channel];

    /// Its settings and secrets, for validation, help texts and the docs.
    fn fields(&self) -> &'static [Field];

    /// Makes an adapter. Opens no connection yet. All faults of the settings are told at once.
    fn open(&self, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>>;
}

/// A provider account as its adapter sees it: a [`Connection`] with its secrets opened.
#[derive(Clone, Debug)]
pub struct Account {
    /// The connection's identifier.
    pub id: ConnectionId,
    /// The world that it belongs to.
    pub tenant: TenantId,
    /// The channel that it carries.
    pub channel: Channel,
    /// Settings that may be shown.
    pub settings: Map<String, Value>,
    /// Settings that may not.
    pub secrets: Redacted<Map<String, Value>>,
}

impl Account {
    /// The account of `connection`, whose sealed secrets are `secrets`.
    pub fn new(connection: &Connection, tenant: TenantId, secrets: Map<String, Value>) -> Self {
        Self {
            id: connection.id,
            tenant,
            channel: connection.channel,
            settings: connection.settings.clone(),
            secrets: Redacted::new(secrets),
        }
    }
}

/// What an adapter is given besides its account.
#[derive(Clone, Debug)]
pub struct Services {
    /// Where receipts and inbound messages go.
    pub events: Arc<dyn EventSink>,
    /// Clock and randomness.
    pub ids: Ids,
}

/// Takes what providers tell later.
pub trait EventSink: Debug + Send + Sync {
    /// Hands an event over, to be applied `after` that long. Never blocks.
    fn push(&self, event: ProviderEvent, after: Duration);
}

/// Something that a provider told.
#[derive(Clone, PartialEq, Debug)]
pub enum ProviderEvent {
    /// What became of an attempt.
    Receipt {
        /// Which attempt.
        target: ReceiptTarget,
        /// What it says.
        kind: ReceiptKind,
        /// When it happened, as the provider says.
        at: Timestamp,
    },
    /// A message from outside.
    Inbound(Inbound),
    /// The recipient complained about a message, or asked to get no more of them.
    Complaint {
        /// Whose connection.
        tenant: TenantId,
        /// The message complained about.
        message: MessageId,
    },
    /// What became of a template that was handed in.
    TemplateDecided {
        /// The world.
        tenant: TenantId,
        /// The template.
        template: TemplateId,
        /// What the provider says.
        decision: Decision,
    },
}

/// How a receipt names its attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReceiptTarget {
    /// By our own identifiers, which the provider carried along.
    Attempt {
        /// The world.
        tenant: TenantId,
        /// The message.
        message: MessageId,
        /// The attempt, from 0; the newest when absent.
        attempt: Option<usize>,
    },
}

/// A message from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
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
    /// The name that they go by in the messaging app, when it tells.
    pub profile_name: Option<String>,
    /// What they wrote.
    pub text: String,
    /// When, as the provider says.
    pub at: Timestamp,
}
