//! What the tests share: accounts, a sink that writes down, and a Bot API that does what it is told.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::scripted::Scripted;
pub(crate) use nuncio_channel::scripted::Seen;
use nuncio_channel::testing;
pub(crate) use nuncio_channel::testing::{NOW, object};
use nuncio_channel::{Account, Adapter, EventSink, Inbound, Outcome, ProviderEvent, Services, Unrecorded};
use nuncio_domain::message::{Content, FailureCode, Message};
use nuncio_domain::{Channel, Clock, Entropy, FieldError, Ids, MessageType, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) const TOKEN: &str = "123456789:AAF-secret_of-the_tests";

/// Keeps every event; refuses as many as it is told to.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    events: Mutex<Vec<ProviderEvent>>,
    pub(crate) refusals: Mutex<usize>,
    grown: Notify,
}

impl Recorder {
    /// Waits until there are as many, and gives them.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Inbound> {
        loop {
            let grown = self.grown.notified();
            if self.events.lock().len() >= count {
                let events = self.events.lock().clone();
                return events
                    .into_iter()
                    .map(|event| if let ProviderEvent::Inbound(i) = event { i } else { panic!("{event:?}") })
                    .collect();
            }
            grown.await;
        }
    }
}

#[async_trait::async_trait]
impl EventSink for Recorder {
    fn push(&self, event: ProviderEvent, _: Duration) {
        panic!("{event:?} would be lost if the process died now");
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        {
            let mut refusals = self.refusals.lock();
            if *refusals > 0 {
                *refusals -= 1;
                return Err(Unrecorded);
            }
        }
        self.events.lock().push(event);
        self.grown.notify_waiters();
        Ok(())
    }
}

/// Stands still, except for what the runtime's own clock says.
#[derive(Debug)]
struct Still(tokio::time::Instant);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Entropy for Still {
    fn fill(&self, _: &mut [u8]) {
        unreachable!("nothing here is random")
    }
}

pub(crate) fn services(events: Arc<dyn EventSink>, public_url: &str) -> Services {
    let still = Arc::new(Still(tokio::time::Instant::now()));
    Services { events, ids: Ids::new(still.clone(), still), public_url: public_url.into() }
}

pub(crate) fn account(settings: Value) -> Account {
    testing::account(Channel::Telegram, settings, json!({}), json!({"token": TOKEN}))
}

/// The operator's accounts go anywhere; files of callers only where `net.allow_*` permits.
pub(crate) fn factory(policy: GuardPolicy) -> nuncio_channel::AdapterFactory {
    nuncio_channel_telegram::factory(Network::new(policy).expect("a way out"))
}

pub(crate) fn try_open(account: &Account, events: Arc<Recorder>) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    let guarded = GuardPolicy { allow_http: true, ..GuardPolicy::default() };
    factory(guarded).open(account, &services(events, "https://nuncio.example"))
}

/// An adapter for the Bot API at `base`, with these settings more.
pub(crate) fn open(base: &str, more: Value, events: &Arc<Recorder>) -> Arc<dyn Adapter> {
    let mut settings = object(json!({"base_url": base}));
    settings.extend(object(more));
    try_open(&account(settings.into()), Arc::clone(events)).unwrap()
}

/// A message to `to`.
pub(crate) fn message(to: &str, message_type: MessageType, content: Content) -> Message {
    let mut message = nuncio_channel::contract::message(&account(json!({})), to, 0);
    message.message_type = message_type;
    message.request_mut().content = Some(Box::new(content));
    message
}

/// Kind and code of an outcome, and its references.
pub(crate) fn short(outcome: &Outcome) -> (&'static str, Option<FailureCode>, Vec<&str>) {
    match outcome {
        Outcome::Accepted { refs, .. } => ("accepted", None, refs.iter().map(String::as_str).collect()),
        Outcome::Deferred { failure, .. } => ("deferred", Some(failure.code), Vec::new()),
        Outcome::Rejected { failure } => ("rejected", Some(failure.code), Vec::new()),
        Outcome::Unknown { failure, refs } => ("unknown", Some(failure.code), refs.iter().map(String::as_str).collect()),
    }
}

/// What a Bot API does with a call.
pub(crate) use nuncio_channel::scripted::Reply as Act;

/// Answers of a Bot API.
pub(crate) trait BotAnswer: Sized {
    fn result(result: Value) -> Self;
    fn error(code: u16, description: &str, parameters: Value) -> Self;

    /// What a send method answers.
    fn sent(id: i64) -> Self {
        Self::result(json!({"message_id": id, "date": 1, "chat": {"id": 5, "type": "private"}}))
    }
}

impl BotAnswer for Act {
    fn result(result: Value) -> Self {
        Self::json(200, &json!({"ok": true, "result": result}))
    }

    fn error(code: u16, description: &str, parameters: Value) -> Self {
        Self::json(code, &json!({"ok": false, "error_code": code, "description": description, "parameters": parameters}))
    }
}

/// A call of a Bot API.
pub(crate) trait BotCall {
    /// The method of the Bot API.
    fn method(&self) -> &str;
}

impl BotCall for Seen {
    fn method(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// A Bot API that follows a script. Ends with the runtime.
#[derive(Debug)]
pub(crate) struct Peer(Scripted);

impl Peer {
    pub(crate) async fn start(script: impl FnMut(&Seen) -> Act + Send + 'static) -> Self {
        let script = Mutex::new(script);
        Self(Scripted::start(move |seen| script.lock()(seen)).await)
    }

    pub(crate) fn base(&self) -> String {
        self.0.base()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.seen()
    }

    /// The methods that were called.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.seen().iter().map(|seen| seen.method().to_owned()).collect()
    }

    /// Waits until so many calls of `method` came, and gives them.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) -> Vec<Seen> {
        loop {
            let seen = self.seen();
            let (all, calls) = (seen.len(), seen.into_iter().filter(|seen| seen.method() == method).collect::<Vec<_>>());
            if calls.len() >= count {
                return calls;
            }
            self.0.wait(all + 1).await;
        }
    }
}
