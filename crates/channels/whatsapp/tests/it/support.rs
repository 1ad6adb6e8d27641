//! What the tests share: accounts, messages, and a Graph API that follows a script.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::contract::{Peer, message as contract_message, request};
use nuncio_channel::{Account, Adapter, AdapterFactory as _, EventSink, ProviderEvent, Services, Unrecorded, Verdict};
use nuncio_channel_whatsapp::WhatsappFactory;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::{Content, Message};
use nuncio_domain::{Channel, Clock, ConnectionId, Entropy, FieldError, Ids, MessageType, Redacted, TenantId, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// The token. Occurs nowhere else.
pub(crate) const TOKEN: &str = "EAAGm0PX4ZCpsBO-access-token";
/// The app's secret.
pub(crate) const SECRET: &str = "f00dfeedbeefcafe-app-secret";
/// The word for Meta.
pub(crate) const WORD: &str = "a-word-for-meta";
/// Meta's id of the phone number.
pub(crate) const NUMBER: &str = "106540352242922";

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
    fn fill(&self, out: &mut [u8]) {
        out.fill(0xab);
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

pub(crate) fn services() -> Services {
    let ids = Ids { clock: Arc::new(Nothing), entropy: Arc::new(Nothing) };
    Services { events: Arc::new(Nothing), ids, public_url: "https://nuncio.example".into() }
}

pub(crate) fn factory() -> WhatsappFactory {
    let policy = GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() };
    WhatsappFactory::new(Network::new(policy).expect("a way out"))
}

/// An account for an API at `base`, with more settings.
pub(crate) fn account(base: &str, more: Value) -> Account {
    let mut settings =
        object(json!({"phone_number_id": NUMBER, "waba_id": "102290129340398", "app_id": "670843887433847", "base_url": base}));
    settings.extend(object(more));
    Account {
        id: ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10])),
        tenant: TenantId(3),
        channel: Channel::Whatsapp,
        settings,
        secrets: Redacted::new(object(json!({"access_token": TOKEN, "app_secret": SECRET, "verify_token": WORD}))),
        trusted: true,
    }
}

pub(crate) fn try_open(account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    factory().open(account, &services())
}

/// An adapter for a scripted API.
pub(crate) fn open(api: &Api) -> Arc<dyn Adapter> {
    open_with(api, json!({}))
}

pub(crate) fn open_with(api: &Api, more: Value) -> Arc<dyn Adapter> {
    try_open(&account(&api.base(), more)).unwrap()
}

/// An adapter that makes no calls.
pub(crate) fn offline(more: Value) -> Arc<dyn Adapter> {
    try_open(&account("http://127.0.0.1:9", more)).unwrap()
}

/// A message of a type.
pub(crate) fn message(message_type: MessageType, text: Option<&str>, content: Value) -> Message {
    let mut message = contract_message(&account("http://127.0.0.1:9", json!({})), "+34600111222", 0);
    message.message_type = message_type;
    message.request.text = text.map(str::to_owned);
    message.request.content = Some(Box::new(serde_json::from_value::<Content>(content).unwrap()));
    message
}

pub(crate) async fn send(adapter: &Arc<dyn Adapter>, message: &Message) -> Verdict {
    adapter.send(&request(message)).await
}

/// What the API does with a call.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Answers with this status and JSON.
    Json(u16, Value),
    /// Answers with this head line by line and body.
    Raw(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Hangs up.
    HangUp,
    /// Says nothing, until the client is gone.
    Silence,
}

/// A call as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// With the query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

/// A Graph API. Ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Api {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    came: Arc<Notify>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Api {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let api = Self { address: listener.local_addr().unwrap(), seen: Arc::default(), came: Arc::default() };
        let (kept, script): (_, Arc<Script>) = (api.clone(), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, kept.clone(), Arc::clone(&script)));
            }
        });
        api
    }

    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every call, oldest first.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    /// Waits until so many calls have come.
    pub(crate) async fn wait(&self, count: usize) {
        loop {
            let came = self.came.notified();
            if self.seen.lock().len() >= count {
                return;
            }
            came.await;
        }
    }
}

impl Peer for Api {
    fn taken(&self) -> Vec<String> {
        let sends = self.seen().into_iter().filter(|seen| seen.path.ends_with("/messages") && seen.header("x-refused").is_none());
        sends.map(|seen| seen.json()["biz_opaque_callback_data"].as_str().unwrap().to_owned()).collect()
    }
}

async fn serve(stream: TcpStream, api: Api, script: Arc<Script>) {
    let mut stream = BufReader::new(stream);
    let Some(mut seen) = read(&mut stream).await else { return };
    let reply = script(&seen);
    // What was refused was not taken.
    if matches!(&reply, Reply::Json(400.., _) | Reply::Raw(429, ..)) {
        seen.headers.push(("x-refused".to_owned(), String::new()));
    }
    api.seen.lock().push(seen);
    api.came.notify_waiters();
    let (status, headers, body) = match reply {
        Reply::Json(status, value) => (status, vec![("Content-Type", "application/json".to_owned())], value.to_string().into_bytes()),
        Reply::Raw(status, headers, body) => (status, headers, body),
        Reply::HangUp => return,
        Reply::Silence => {
            let _ = stream.read(&mut [0]).await;
            return;
        }
    };
    let headers: String = headers.into_iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    let _ = stream.get_mut().write_all(&[head.as_bytes(), &body].concat()).await;
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok()?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen { method, path, headers, body: Vec::new() };
    seen.body = vec![0; seen.header("content-length").map_or(0, |n| n.parse().unwrap())];
    stream.read_exact(&mut seen.body).await.ok()?;
    Some(seen)
}

/// How the API takes a message.
pub(crate) fn taken() -> Reply {
    Reply::Json(
        200,
        json!({"messaging_product": "whatsapp", "contacts": [{"input": "34600111222", "wa_id": "34600111222"}], "messages": [{"id": "wamid.HBgL"}]}),
    )
}

/// How the API refuses.
pub(crate) fn refusal(status: u16, code: i64, message: &str) -> Reply {
    Reply::Json(
        status,
        json!({"error": {"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "Az8or2yhqkZfEZ-_4Qn_Bam"}}),
    )
}
