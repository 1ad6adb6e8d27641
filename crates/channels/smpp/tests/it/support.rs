//! What the tests stand on: a sink that writes down, a clock that is moved by hand, accounts and adapters.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use nuncio_channel::contract::message;
use nuncio_channel::{Account, Adapter, EventSink, Outcome, ProviderEvent, Scope, SendRequest, Services, Stop, Unrecorded, stop};
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::{FailureCode, Message};
use nuncio_domain::{Channel, Clock, ConnectionId, Entropy, FieldError, Ids, Redacted, TenantId, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const TO: &str = "+34600111222";
/// After this long a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
pub(crate) const PASSWORD: &str = "hunter2x";

/// Hands every event to the test; refuses them while told to.
#[derive(Debug)]
pub(crate) struct Sink {
    events: mpsc::UnboundedSender<ProviderEvent>,
    pub(crate) refuses: AtomicBool,
}

#[async_trait::async_trait]
impl EventSink for Sink {
    fn push(&self, event: ProviderEvent, _: Duration) {
        unreachable!("an SMSC must not be answered before {event:?} is on disk")
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        if self.refuses.load(Ordering::SeqCst) {
            return Err(Unrecorded);
        }
        self.events.send(event).map_err(|_| Unrecorded)
    }
}

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// Each call gives other bytes than the one before.
#[derive(Debug, Default)]
struct Counting(AtomicU8);

impl Entropy for Counting {
    fn fill(&self, out: &mut [u8]) {
        out.fill(self.0.fetch_add(1, Ordering::SeqCst));
    }

    fn below(&self, _: u64) -> u64 {
        0
    }
}

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000);

pub(crate) fn services() -> (Services, Arc<Sink>, mpsc::UnboundedReceiver<ProviderEvent>) {
    let (events, told) = mpsc::unbounded_channel();
    let sink = Arc::new(Sink { events, refuses: AtomicBool::new(false) });
    let ids = Ids { clock: Arc::new(Still), entropy: Arc::new(Counting::default()) };
    (Services { events: sink.clone(), ids, public_url: "https://nuncio.example".into() }, sink, told)
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// An account at the SMSC that listens on `port`.
pub(crate) fn account(port: u16, more: Value) -> Account {
    let mut settings = object(json!({"host": "127.0.0.1", "port": port, "system_id": "acme", "timeout_seconds": 20}));
    settings.extend(object(more));
    Account {
        id: ConnectionId::from_uuid(uuid_v7(NOW, [7; 10])),
        tenant: TenantId(3),
        channel: Channel::Sms,
        settings,
        secrets: Redacted::new(object(json!({ "password": PASSWORD }))),
        trusted: true,
    }
}

pub(crate) fn factory() -> nuncio_channel::AdapterFactory {
    nuncio_channel_smpp::factory(Network::new(GuardPolicy::default()).expect("a way out"))
}

pub(crate) fn try_open(account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    factory().open(account, &services().0)
}

/// An adapter whose sessions are kept.
pub(crate) struct Running {
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) sink: Arc<Sink>,
    pub(crate) events: mpsc::UnboundedReceiver<ProviderEvent>,
    pub(crate) ask: watch::Sender<bool>,
    pub(crate) run: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(port: u16, more: Value) -> Self {
        let (services, sink, events) = services();
        let adapter = factory().open(&account(port, more), &services).unwrap();
        let (ask, asked) = stop();
        let run = keep(&adapter, asked);
        Self { adapter, sink, events, ask, run }
    }

    /// Waits until all sessions are up.
    pub(crate) async fn up(&self) {
        let up = async {
            while self.adapter.trouble().is_some() {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, up).await.unwrap_or_else(|_| panic!("{:?}", self.adapter.trouble()));
    }

    /// Sends a text.
    pub(crate) async fn send(&self, text: &str) -> Outcome {
        send(&self.adapter, text, 0).await
    }

    /// The next event.
    pub(crate) async fn told(&mut self) -> ProviderEvent {
        timeout(PATIENCE, self.events.recv()).await.expect("an event").expect("a sink")
    }

    /// Asks the sessions to end, and waits for it. Returns what was told and not looked at.
    pub(crate) async fn stop(mut self) -> Vec<ProviderEvent> {
        self.ask.send(true).ok();
        self.run.await.unwrap();
        let mut left = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            left.push(event);
        }
        left
    }
}

/// Keeps an adapter's sessions.
pub(crate) fn keep(adapter: &Arc<dyn Adapter>, asked: Stop) -> JoinHandle<()> {
    let adapter = Arc::clone(adapter);
    tokio::spawn(async move { adapter.run(asked).await })
}

/// A text message to [`TO`]; `number` tells it from others.
pub(crate) fn draft(text: &str, number: u8) -> Message {
    let mut message = message(&account(1, json!({})), TO, number);
    message.request_mut().text = Some(text.to_owned());
    message
}

pub(crate) async fn send(adapter: &Arc<dyn Adapter>, text: &str, number: u8) -> Outcome {
    send_message(adapter, &draft(text, number)).await
}

pub(crate) async fn send_message(adapter: &Arc<dyn Adapter>, message: &Message) -> Outcome {
    let now = message.state.updated_at;
    adapter.send(&SendRequest { message, attempt: 0, channel: Channel::Sms, attachments: &[], now }).await
}

/// Kind, code and references of an outcome.
pub(crate) fn short(outcome: &Outcome) -> (&'static str, Option<FailureCode>, Vec<&str>) {
    match outcome {
        Outcome::Accepted { refs, .. } => ("accepted", None, refs.iter().map(String::as_str).collect()),
        Outcome::Deferred { failure, scope: Scope::Message, .. } => ("deferred", Some(failure.code), vec![]),
        Outcome::Deferred { failure, scope: Scope::Connection, .. } => ("connection", Some(failure.code), vec![]),
        Outcome::Rejected { failure } => ("rejected", Some(failure.code), vec![]),
        Outcome::Unknown { failure, refs } => ("unknown", Some(failure.code), refs.iter().map(String::as_str).collect()),
    }
}
