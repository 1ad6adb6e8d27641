//! What the tests share: accounts, messages, and what the API saw.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use nuncio_channel::contract::{Peer, message as contract_message};
use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_channel::{Account, Adapter, AdapterFactory as _, EventSink, ProviderEvent, Services, Unrecorded};
use nuncio_channel_twilio::TwilioFactory;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::{Content, Message};
use nuncio_domain::{Channel, Clock, ConnectionId, Entropy, FieldError, Ids, MessageType, Redacted, TenantId, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

/// The account, as the peer program has it.
pub(crate) const SID: &str = "AC00000000000000000000000000000001";
/// Its token. Occurs nowhere else.
pub(crate) const TOKEN: &str = "0123456789abcdef-auth-token";
/// When callbacks come.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_304_700_000);

/// Keeps what is pushed; time comes with the call.
#[derive(Debug, Default)]
pub(crate) struct Pushed(pub(crate) Mutex<Vec<ProviderEvent>>);

impl Clock for Pushed {
    fn now(&self) -> Timestamp {
        unreachable!("the time comes with the request")
    }
    fn monotonic(&self) -> Duration {
        unreachable!("not used")
    }
}

impl Entropy for Pushed {
    fn fill(&self, _: &mut [u8]) {
        unreachable!("not used")
    }
}

#[async_trait::async_trait]
impl EventSink for Pushed {
    fn push(&self, event: ProviderEvent, after: Duration) {
        assert_eq!(after, Duration::ZERO);
        self.0.lock().push(event);
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        unreachable!("callbacks answer their events: {event:?}")
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(crate) fn services_with(sink: &Arc<Pushed>) -> Services {
    let ids = Ids { clock: Arc::<Pushed>::default(), entropy: Arc::<Pushed>::default() };
    Services { events: Arc::clone(sink) as Arc<dyn EventSink>, ids, public_url: "https://nuncio.example".into() }
}

pub(crate) fn services() -> Services {
    services_with(&Arc::default())
}

/// Reading the system's certificates takes its time.
static NETWORK: LazyLock<Network> = LazyLock::new(|| {
    let policy = GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() };
    Network::new(policy).expect("a way out")
});

pub(crate) fn factory() -> TwilioFactory {
    TwilioFactory::new(NETWORK.clone())
}

/// An account for an API at `base`, with more settings.
pub(crate) fn account(channel: Channel, base: &str, more: Value) -> Account {
    let mut settings = object(json!({"account_sid": SID, "base_url": base}));
    settings.extend(object(more));
    Account {
        id: ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10])),
        tenant: TenantId(3),
        channel,
        settings,
        secrets: Redacted::new(object(json!({"auth_token": TOKEN}))),
        trusted: true,
    }
}

pub(crate) fn try_open(account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    factory().open(account, &services())
}

pub(crate) fn open(channel: Channel, api: &Scripted, more: Value) -> Arc<dyn Adapter> {
    try_open(&account(channel, &api.base(), more)).unwrap()
}

/// An adapter that makes no calls.
pub(crate) fn offline(channel: Channel) -> Arc<dyn Adapter> {
    try_open(&account(channel, "http://127.0.0.1:9", json!({}))).unwrap()
}

/// A message of a type.
pub(crate) fn message(channel: Channel, message_type: MessageType, text: Option<&str>, content: Value) -> Message {
    let mut message = contract_message(&account(channel, "http://127.0.0.1:9", json!({})), "+34600111333", 0);
    message.message_type = message_type;
    message.request_mut().text = text.map(str::to_owned);
    message.request_mut().content = Some(Box::new(serde_json::from_value::<Content>(content).unwrap()));
    message
}

/// What was said in a form, sorted.
pub(crate) fn form(seen: &Seen) -> Vec<(String, String)> {
    let mut form: Vec<_> = form_urlencoded::parse(&seen.body).into_owned().collect();
    form.sort();
    form
}

pub(crate) fn said(seen: &Seen, name: &str) -> Option<String> {
    form(seen).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// How the API takes a message, or a call.
pub(crate) fn taken() -> Reply {
    Reply::json(201, &json!({"sid": "SM00000000000000000000000000000001", "status": "queued", "price": null, "num_segments": "1"}))
}

/// How it refuses.
pub(crate) fn refusal(status: u16, code: u32, words: &str) -> Reply {
    let more_info = format!("https://www.twilio.com/docs/errors/{code}");
    Reply::json(status, &json!({"code": code, "message": words, "more_info": more_info, "status": status}))
}

#[derive(Debug)]
pub(crate) struct Api(pub(crate) Scripted);

impl Peer for Api {
    fn taken(&self) -> Vec<String> {
        self.0.seen().iter().filter(|seen| seen.taken && seen.method == "POST").map(|seen| said(seen, "StatusCallback").unwrap()).collect()
    }
}
