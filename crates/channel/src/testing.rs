//! Shared test code of adapters: accounts, services, short forms of outcomes, and third-party peers. Panics on errors.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::{Content, FailureCode, Message};
use nuncio_domain::{Channel, Clock, ConnectionId, Entropy, FieldError, Ids, MessageType, Redacted, TenantId, Timestamp};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::{Account, EventSink, Outcome, ProviderEvent, Scope, Services, Unrecorded, contract};

mod peers;

pub use peers::{PeerProcess, node_peer, peer_python, python_peer, repository};

/// Public URL of the tests' server.
pub const PUBLIC_URL: &str = "https://nuncio.example";
/// The time of clocks that stand still: 2026-11-21T10:00:00Z.
pub const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000);

/// Returns the fields of a JSON object.
pub fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("{value} is not an object") };
    fields
}

/// Returns a trusted account with `settings`, `more` and these secrets.
pub fn account(channel: Channel, settings: Value, more: Value, secrets: Value) -> Account {
    let mut settings = object(settings);
    settings.extend(object(more));
    Account {
        id: ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10])),
        tenant: TenantId(3),
        channel,
        settings,
        secrets: Redacted::new(object(secrets)),
        trusted: true,
    }
}

/// Returns a message of the contract suite with other content.
pub fn message(account: &Account, to: &str, message_type: MessageType, text: Option<&str>, content: Value) -> Message {
    let content: Content = serde_json::from_value(content).unwrap_or_else(|error| panic!("{error}"));
    let mut message = contract::message(account, to, 0);
    message.message_type = message_type;
    message.request_mut().text = text.map(str::to_owned);
    message.request_mut().content = Some(Box::new(content));
    message
}

/// Returns the sorted field names of `errors`. Checks that no text contains `secret`.
pub fn paths(errors: Vec<FieldError>, secret: &str) -> Vec<String> {
    assert!(!format!("{errors:?}").contains(secret), "{errors:?}");
    let mut paths: Vec<_> = errors.into_iter().map(|error| error.path).collect();
    paths.sort();
    paths
}

/// Returns the kind of an outcome (for a deferral, its scope) and its failure code.
pub fn kind_and_code(outcome: &Outcome) -> (&'static str, FailureCode) {
    match outcome {
        Outcome::Deferred { failure, scope: Scope::Message, .. } => ("message", failure.code),
        Outcome::Deferred { failure, scope: Scope::Connection, .. } => ("connection", failure.code),
        Outcome::Rejected { failure } => ("rejected", failure.code),
        Outcome::Unknown { failure, .. } => ("unknown", failure.code),
        Outcome::Accepted { .. } => panic!("{outcome:?}"),
    }
}

/// Stores pushed events. Panics if used as a clock or for randomness: requests and callbacks have their own time.
#[derive(Debug, Default)]
pub struct Pushed(Mutex<Vec<ProviderEvent>>);

impl Pushed {
    /// Returns the events so far, oldest first.
    pub fn events(&self) -> Vec<ProviderEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Clock for Pushed {
    fn now(&self) -> Timestamp {
        unreachable!("the time comes with the request")
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

impl Entropy for Pushed {
    fn fill(&self, _: &mut [u8]) {
        unreachable!("not used")
    }
}

#[async_trait]
impl EventSink for Pushed {
    fn push(&self, event: ProviderEvent, after: Duration) {
        assert_eq!(after, Duration::ZERO);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        unreachable!("events of callbacks are returned: {event:?}")
    }
}

/// Returns services that push events to `events`.
pub fn services_with(events: &Arc<Pushed>) -> Services {
    let ids = Ids::new(Arc::<Pushed>::default(), Arc::<Pushed>::default());
    Services { events: Arc::clone(events) as Arc<dyn EventSink>, ids, public_url: PUBLIC_URL.into() }
}

/// Returns services whose events are discarded.
pub fn services() -> Services {
    services_with(&Arc::default())
}

/// Passes every event to the test. Records nothing while `refuses` is set.
#[derive(Debug)]
pub struct Sink {
    events: mpsc::UnboundedSender<ProviderEvent>,
    may_push: bool,
    /// Whether nothing can be recorded now.
    pub refuses: AtomicBool,
}

impl Sink {
    /// Returns services whose events arrive at the receiver. `may_push`: whether the provider allows events that are not on disk yet.
    pub fn services(may_push: bool) -> (Services, Arc<Self>, mpsc::UnboundedReceiver<ProviderEvent>) {
        let (events, told) = mpsc::unbounded_channel();
        let sink = Arc::new(Self { events, may_push, refuses: AtomicBool::new(false) });
        let still = Arc::new(Still(AtomicU8::new(0)));
        let ids = Ids::new(still.clone(), still);
        (Services { events: sink.clone(), ids, public_url: PUBLIC_URL.into() }, sink, told)
    }
}

#[async_trait]
impl EventSink for Sink {
    fn push(&self, event: ProviderEvent, after: Duration) {
        // No provider waits for a reply to a late result.
        let is_late = matches!(event, ProviderEvent::LateResult(_));
        assert!((is_late || self.may_push) && after.is_zero(), "pushed, after {after:?}: {event:?}");
        self.events.send(event).expect("a test that listens");
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(Unrecorded);
        }
        self.events.send(event).map_err(|_| Unrecorded)
    }
}

/// A clock that stands still. Each call for random bytes gives others than the one before.
#[derive(Debug)]
struct Still(AtomicU8);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

impl Entropy for Still {
    fn fill(&self, out: &mut [u8]) {
        out.fill(self.0.fetch_add(37, Ordering::SeqCst));
    }
}
