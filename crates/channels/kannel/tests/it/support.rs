//! What the tests share: accounts, messages, and what the gateway saw.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use nuncio_channel::contract::{Peer, message as contract_message};
use nuncio_channel::scripted::{Scripted, Seen};
use nuncio_channel::{Account, Adapter, AdapterFactory as _, Call, CallError, EventSink, ProviderEvent, Services, Told, Unrecorded};
use nuncio_channel_kannel::KannelFactory;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::Message;
use nuncio_domain::{Channel, Clock, ConnectionId, Entropy, FieldError, Ids, Redacted, TenantId, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

/// The gateway's password. Occurs nowhere else.
pub(crate) const PASSWORD: &str = "foo&bar of sendsms-user";
/// What proves callbacks.
pub(crate) const SECRET: &str = "a-word-of-our-own+16";
/// When callbacks come.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_304_700_000);

/// Events come by callback only, and time with the call.
#[derive(Debug)]
struct Nothing;

impl Clock for Nothing {
    fn now(&self) -> Timestamp {
        unreachable!("the time comes with the request")
    }
    fn monotonic(&self) -> Duration {
        unreachable!("not used")
    }
}

impl Entropy for Nothing {
    fn fill(&self, _: &mut [u8]) {
        unreachable!("not used")
    }
}

#[async_trait::async_trait]
impl EventSink for Nothing {
    fn push(&self, event: ProviderEvent, _: Duration) {
        unreachable!("nothing is told but by callback: {event:?}")
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        unreachable!("nothing is told but by callback: {event:?}")
    }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(crate) fn services_at(public_url: &str) -> Services {
    let ids = Ids { clock: Arc::new(Nothing), entropy: Arc::new(Nothing) };
    Services { events: Arc::new(Nothing), ids, public_url: public_url.into() }
}

pub(crate) fn services() -> Services {
    services_at("https://nuncio.example")
}

/// Reading the system's certificates takes its time.
static NETWORK: LazyLock<Network> = LazyLock::new(|| {
    let policy = GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() };
    Network::new(policy).expect("a way out")
});

pub(crate) fn factory() -> KannelFactory {
    KannelFactory::new(NETWORK.clone())
}

/// An account of a gateway at `base`, with more settings.
pub(crate) fn account(base: &str, more: Value) -> Account {
    let mut settings = object(json!({"url": format!("{base}/cgi-bin/sendsms"), "username": "tester"}));
    settings.extend(object(more));
    Account {
        id: ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10])),
        tenant: TenantId(3),
        channel: Channel::Sms,
        settings,
        secrets: Redacted::new(object(json!({"password": PASSWORD, "callback_secret": SECRET}))),
        trusted: true,
    }
}

pub(crate) fn try_open(account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    factory().open(account, &services())
}

pub(crate) fn open(gateway: &Scripted, more: Value) -> Arc<dyn Adapter> {
    try_open(&account(&gateway.base(), more)).unwrap()
}

/// An adapter that makes no calls.
pub(crate) fn offline() -> Arc<dyn Adapter> {
    try_open(&account("http://127.0.0.1:9", json!({}))).unwrap()
}

/// A text.
pub(crate) fn draft(text: &str) -> Message {
    let mut message = contract_message(&account("http://127.0.0.1:9", json!({})), "+34600111222", 0);
    message.request_mut().text = Some(text.to_owned());
    message
}

/// A variable of the query of a call.
pub(crate) fn variable(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The query of a call, or of an address.
pub(crate) fn query(path: &str) -> &str {
    path.split_once('?').map_or("", |(_, query)| query)
}

/// What the gateway would look for duplicates by: the address for receipts.
pub(crate) fn identity(seen: &Seen) -> Option<String> {
    seen.header("x-kannel-dlr-url").map(str::to_owned).or_else(|| variable(query(&seen.path), "dlr-url"))
}

#[derive(Debug)]
pub(crate) struct Gateway(pub(crate) Scripted);

impl Peer for Gateway {
    fn taken(&self) -> Vec<String> {
        self.0.seen().iter().filter(|seen| seen.taken).filter_map(identity).collect()
    }
}

/// The address for receipts of the first attempt of a message, as the gateway was given it.
pub(crate) async fn dlr_url(message: &Message) -> String {
    let gateway = Scripted::start(|_| nuncio_channel::scripted::Reply::text(202, "0: Accepted for delivery")).await;
    let adapter = open(&gateway, json!({}));
    let _ = adapter.send(&nuncio_channel::contract::request(message)).await;
    identity(&gateway.seen()[0]).unwrap()
}

/// Calls back, as the gateway would with GET.
pub(crate) fn get(adapter: &Arc<dyn Adapter>, rest: &str, query: &str) -> Result<Told, CallError> {
    let headers = http::HeaderMap::new();
    adapter.callback(&Call { method: "GET", url: "https://nuncio.example/", rest, query, headers: &headers, body: b"", now: NOW })
}
