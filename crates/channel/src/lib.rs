//! The contract between nuncio and its providers.
//!
//! An [`Adapter`] drives one provider account (a *connection*). It translates a [`SendRequest`], makes the call and returns a
//! [`Outcome`]. It never retries, sleeps, logs the outcome of a message, or touches the store: retries, throttles, fallback,
//! attempts and metrics belong to dispatch. Later events of a provider (receipts, inbound messages) go to the [`EventSink`].
//!
//! A new provider is one crate with an [`AdapterFactory`], and one line where the server builds its [`Registry`].

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use nuncio_domain::config::Connection;
use nuncio_domain::message::{Failure, FailureCode, Message};
use nuncio_domain::template::{Decision, Template};
use nuncio_domain::{Channel, ConnectionId, Ids, MessageType, Redacted, TenantId, Timestamp};
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

pub use nuncio_domain::lifecycle::{Outcome, Receipts, Scope};

pub use callback::{CallError, CallbackReply, CallbackRequest, ParsedCallback};
pub use event::{EventSink, Inbound, InboundPart, LateResult, Media, OptedOut, Origin, ProviderEvent, ReceiptTarget, Unrecorded, Wish};
pub use profile::{Picture, ProfileApi, ProfileError};
pub use registry::{AdapterFactory, Opened, Registry};
pub use session::{Sessions, Stop, stop};
pub use settings::{Field, FieldKind, Settings};
pub use tokens::Tokens;

/// One attempt to send one message.
#[derive(Debug)]
pub struct SendRequest<'a> {
    pub message: &'a Message,
    /// Number of the attempt, from 0. Unique together with the message id.
    pub attempt: usize,
    /// The channel of this attempt; can differ from the requested one.
    pub channel: Channel,
    /// Attachments with their bytes, in the order of the request. URLs are already fetched.
    pub attachments: &'a [ResolvedAttachment],
    /// The time of the attempt.
    pub now: Timestamp,
}

/// An attachment ready to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedAttachment {
    pub filename: String,
    pub content_type: String,
    /// `Content-ID` without angle brackets, for inline parts.
    pub content_id: Option<String>,
    pub bytes: Vec<u8>,
}

/// Capabilities of an adapter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Supported message types, native or degraded.
    pub message_types: &'static [MessageType],
    /// How the provider reports delivery: by [`ReceiptTarget::Attempt`] or [`ReceiptTarget::Reference`].
    pub receipts: Receipts,
    /// Maximum number of attempts in flight on each node.
    pub window: usize,
}

/// Drives one provider account.
#[async_trait]
pub trait Adapter: Debug + Send + Sync {
    fn capabilities(&self) -> &Capabilities;

    /// Makes one attempt. Returns within the adapter's own timeout.
    async fn send(&self, request: &SendRequest<'_>) -> Outcome;

    /// Connects to the provider and logs in without sending anything. The text is what was found, or what is wrong and how to fix it.
    async fn check(&self) -> Result<String, String>;

    /// Whether a check has to be made by the adapter that sends: another one could not use its open sessions, and the account may have no
    /// more.
    fn checks_own_sessions(&self) -> bool {
        false
    }

    /// Sends the receipt of an accepted attempt again, through the event sink. Only called if [`AdapterFactory::forgets_receipts`]; the
    /// request has neither attachments nor HTML.
    async fn resend_receipt(&self, request: &SendRequest<'_>) {
        let _ = request;
    }

    /// Returns which sessions the account needs.
    fn sessions(&self) -> Sessions {
        Sessions::None
    }

    /// Keeps the account's session open, reconnects after failures, and returns when `stop` requests it. At most one call runs at a time,
    /// and only if [`Adapter::sessions`] is not [`Sessions::None`].
    async fn run(&self, stop: Stop) {
        drop(stop);
    }

    /// Returns the current problem of the session.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Parses a request to the connection's callback URL. Verifies that the provider sent it before parsing. Ignores unknown fields and
    /// events.
    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        let _ = call;
        Err(CallError::NotCalled)
    }

    /// Returns the inbound email address, in lower case, if the server's own listener receives email for the connection.
    fn mailbox(&self) -> Option<String> {
        None
    }

    /// Fetches media of an inbound message by its [`Media::reference`]; at most `most` bytes.
    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let _ = (reference, most);
        Err(Failure::own(FailureCode::Undeliverable, "this provider stores no media"))
    }

    /// Returns the API of the account's business profile, if the provider has one.
    fn profile(&self) -> Option<&dyn ProfileApi> {
        None
    }

    /// Returns the API of the provider's templates, if it has one.
    fn templates(&self) -> Option<&dyn TemplateApi> {
        None
    }
}

/// API for templates that need the provider's approval. The decision arrives as [`ProviderEvent::TemplateDecided`], or is polled.
#[async_trait]
pub trait TemplateApi: Debug + Send + Sync {
    /// Submits a template and returns the provider's id. If the response was lost, a second call with the same name and language returns
    /// the id of the existing template.
    async fn submit(&self, template: &Template) -> Result<String, Failure>;

    /// Returns the provider's current decision.
    async fn status(&self, template: &Template) -> Result<Decision, Failure>;
}

/// A provider account as its adapter sees it: a [`Connection`] with decrypted secrets.
#[derive(Clone, Debug)]
pub struct Account {
    pub id: ConnectionId,
    pub tenant: TenantId,
    pub channel: Channel,
    /// Public settings.
    pub settings: Map<String, Value>,
    /// Secret settings.
    pub secrets: Redacted<Map<String, Value>>,
    /// Whether the operator set it up, not an API caller: only then can it reach the operator's own network.
    pub trusted: bool,
}

impl Account {
    /// Makes the account of `connection` with its decrypted secrets.
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

/// Services that adapters use.
#[derive(Clone, Debug)]
pub struct Services {
    /// Receives receipts and inbound messages.
    pub events: Arc<dyn EventSink>,
    pub ids: Ids,
    /// Public URL of this server without a trailing slash, such as `https://msg.example.com`.
    pub public_url: Arc<str>,
}

impl Services {
    /// Returns the callback URL of a connection.
    pub fn callback_url(&self, kind: &str, connection: ConnectionId) -> String {
        format!("{}/providers/{kind}/{connection}", self.public_url)
    }
}
