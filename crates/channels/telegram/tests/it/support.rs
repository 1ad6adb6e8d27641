//! What the tests share: accounts, a sink that writes down, and a Bot API that does what it is told.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Account, Adapter, AdapterFactory as _, EventSink, Inbound, ProviderEvent, Services, Unrecorded, Verdict};
use nuncio_channel_telegram::TelegramFactory;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::{Content, FailureCode, Message};
use nuncio_domain::{Channel, Clock, ConnectionId, Entropy, FieldError, Ids, MessageType, Redacted, TenantId, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// 2026-11-21T10:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000);

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
    Services { events, ids: Ids { clock: still.clone(), entropy: still }, public_url: public_url.into() }
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}

pub(crate) fn account(settings: Value) -> Account {
    Account {
        id: ConnectionId::from_uuid(uuid_v7(NOW, [7; 10])),
        tenant: TenantId(3),
        channel: Channel::Telegram,
        settings: object(settings),
        secrets: Redacted::new(object(json!({"token": TOKEN}))),
        trusted: true,
    }
}

/// The operator's accounts go anywhere; files of callers only where `net.allow_*` permits.
pub(crate) fn factory(policy: GuardPolicy) -> TelegramFactory {
    TelegramFactory::new(Network::new(policy).expect("a way out"))
}

pub(crate) fn try_open(account: &Account, events: Arc<Recorder>) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    let guarded = GuardPolicy { allow_http: true, ..GuardPolicy::default() };
    factory(guarded).open(account, &services(events, "https://nuncio.example"))
}

/// An adapter for the Bot API at `address`, with these settings more.
pub(crate) fn open(address: SocketAddr, more: Value, events: &Arc<Recorder>) -> Arc<dyn Adapter> {
    let mut settings = object(json!({"base_url": format!("http://{address}")}));
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

/// Kind and code of a verdict, and its references.
pub(crate) fn short(verdict: &Verdict) -> (&'static str, Option<FailureCode>, Vec<&str>) {
    match verdict {
        Verdict::Accepted { refs, .. } => ("accepted", None, refs.iter().map(String::as_str).collect()),
        Verdict::Deferred { failure, .. } => ("deferred", Some(failure.code), Vec::new()),
        Verdict::Rejected { failure } => ("rejected", Some(failure.code), Vec::new()),
        Verdict::Unknown { failure, refs } => ("unknown", Some(failure.code), refs.iter().map(String::as_str).collect()),
    }
}

/// What a Bot API does with a call.
pub(crate) enum Act {
    /// Returns with this status and body.
    Answer(u16, String),
    /// Hangs up.
    HangUp,
    /// Says nothing for as long as the peer lives.
    Silence,
}

impl Act {
    pub(crate) fn result(result: Value) -> Self {
        Self::Answer(200, json!({"ok": true, "result": result}).to_string())
    }

    pub(crate) fn error(code: u16, description: &str, parameters: Value) -> Self {
        let body = json!({"ok": false, "error_code": code, "description": description, "parameters": parameters});
        Self::Answer(code, body.to_string())
    }

    /// What a send method answers.
    pub(crate) fn sent(id: i64) -> Self {
        Self::result(json!({"message_id": id, "date": 1, "chat": {"id": 5, "type": "private"}}))
    }
}

/// A call as the peer got it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// The method of the Bot API.
    pub(crate) fn method(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The parameters, if they are JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

type Script = dyn FnMut(&Seen) -> Act + Send;

/// A Bot API that follows a script. Ends with the runtime.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    grown: Arc<Notify>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Peer")
    }
}

impl Peer {
    pub(crate) async fn start(script: impl FnMut(&Seen) -> Act + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let peer = Self { address, seen: Arc::default(), grown: Arc::default() };
        let (seen, grown) = (Arc::clone(&peer.seen), Arc::clone(&peer.grown));
        let script: Arc<Mutex<Box<Script>>> = Arc::new(Mutex::new(Box::new(script)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&seen), Arc::clone(&grown)));
            }
        });
        peer
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    /// The methods that were called.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.seen().iter().map(|seen| seen.method().to_owned()).collect()
    }

    /// Waits until so many calls of `method` came, and gives them.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) -> Vec<Seen> {
        loop {
            let grown = self.grown.notified();
            let calls: Vec<_> = self.seen().into_iter().filter(|seen| seen.method() == method).collect();
            if calls.len() >= count {
                return calls;
            }
            grown.await;
        }
    }
}

async fn serve(stream: TcpStream, script: Arc<Mutex<Box<Script>>>, seen: Arc<Mutex<Vec<Seen>>>, grown: Arc<Notify>) {
    let mut stream = BufReader::new(stream);
    while let Some(call) = read(&mut stream).await {
        let act = script.lock()(&call);
        seen.lock().push(call);
        grown.notify_waiters();
        match act {
            Act::Answer(status, body) => {
                let head = format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).await.unwrap();
            }
            Act::HangUp => return,
            Act::Silence => std::future::pending().await,
        }
    }
}

/// Reads a request whole; `None` when the client is gone.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut content_type) = (0, String::new());
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "content-type" => content_type = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { path, content_type, body })
}
