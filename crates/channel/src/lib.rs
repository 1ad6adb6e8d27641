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
use nuncio_domain::message::{Cost, Failure, FailureCode, Message};
use nuncio_domain::template::{Decision, Template};
use nuncio_domain::{Channel, ConnectionId, FieldError, Ids, MessageType, Redacted, TenantId, Timestamp};
use serde_json::{Map, Value};

mod callback;
#[cfg(feature = "contract")]
pub mod contract;
mod event;
mod profile;
mod registry;
#[cfg(feature = "contract")]
pub mod scripted;
mod session;
mod settings;
pub mod sms;
#[cfg(feature = "contract")]
pub mod testing;
mod tokens;

pub use nuncio_domain::lifecycle::Receipts;

pub use callback::{CallError, CallbackReply, CallbackRequest, ParsedCallback};
pub use event::{EventSink, Inbound, InboundPart, Media, OptedOut, Origin, ProviderEvent, ReceiptTarget, Unrecorded};
pub use profile::{Picture, ProfileApi, ProfileError};
pub use registry::Registry;
pub use session::{Sessions, Stop, stop};
pub use settings::{Field, FieldKind, Settings};
pub use tokens::Tokens;

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
        /// The provider's ids for it, under which receipts come: one for each part that it was sent in, in order.
        refs: Vec<String>,
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
        /// The provider's ids for the parts that it did take, in order.
        refs: Vec<String>,
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
    /// How the provider tells what became of a message after taking it: by [`ReceiptTarget::Attempt`], or [`ReceiptTarget::Reference`].
    pub receipts: Receipts,
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

    /// Tells once more, through the event sink, what became of an attempt that it took. Asked only where
    /// [`AdapterFactory::forgets_receipts`]; has neither attachments nor HTML.
    async fn tell_again(&self, request: &SendRequest<'_>) {
        let _ = request;
    }

    /// What the account's sessions are like.
    fn sessions(&self) -> Sessions {
        Sessions::None
    }

    /// Keeps the account's session open, opens it again after it broke, and returns when `stop` asks for it. Called once at a time for an
    /// adapter whose [`Adapter::sessions`] are not [`Sessions::None`].
    async fn run(&self, stop: Stop) {
        drop(stop);
    }

    /// What is wrong with the session now, in plain words.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Reads what the provider posted to the connection's callback address: checks that it is the provider's first, parses then.
    /// Unknown fields and events are passed over.
    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        let _ = call;
        Err(CallError::NotCalled)
    }

    /// The address that people write to, when mail for it comes by the server's own listener; in small letters.
    fn mailbox(&self) -> Option<String> {
        None
    }

    /// Fetches media of an inbound message by its [`Media::reference`]; at most `most` bytes.
    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let _ = (reference, most);
        Err(Failure::own(FailureCode::Undeliverable, "this provider keeps no media"))
    }

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

    /// Whether its adapters keep sessions, so that they are opened before there is anything to send.
    fn has_sessions(&self) -> bool {
        false
    }

    /// Whether receipts that its adapters have not told yet are lost when the process ends, since there is no provider outside who keeps
    /// them. [`Adapter::tell_again`] then is asked for them after a start.
    fn forgets_receipts(&self) -> bool {
        false
    }

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
    /// Whether the operator set it up, not a caller of the API: it may then lead into the operator's own network.
    pub trusted: bool,
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
            trusted: connection.trusted,
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
    /// Where this server is reached from outside, without a slash at its end, such as `https://msg.example.com`.
    pub public_url: Arc<str>,
}

impl Services {
    /// Where the provider of a connection posts to.
    pub fn callback_url(&self, kind: &str, connection: ConnectionId) -> String {
        format!("{}/providers/{kind}/{connection}", self.public_url)
    }
}
