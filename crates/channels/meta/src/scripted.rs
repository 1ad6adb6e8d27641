//! A Graph API that follows a script, for the tests of the channels. Panics where a test would.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, Mac as _};
use nuncio_channel::contract::Peer;
use nuncio_channel::{EventSink, ProviderEvent, Services, Unrecorded};
use nuncio_domain::{Clock, Entropy, Ids, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the API does with a call.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answers with this status and JSON.
    Json(u16, Value),
    /// Answers with this status, these headers and this body.
    Raw(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Hangs up.
    HangUp,
    /// Says nothing, until the client is gone.
    Silence,
}

impl Reply {
    /// An error of the API.
    pub fn refusal(status: u16, code: i64, message: &str) -> Self {
        let error = json!({"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "Az8or2yhqkZfEZ-_4Qn_Bam"});
        Self::Json(status, json!({"error": error}))
    }

    const fn refuses(&self) -> bool {
        matches!(self, Self::Json(400.., _) | Self::Raw(400.., ..))
    }
}

/// A call as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// With the query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether it was answered with an error.
    pub refused: bool,
}

impl Seen {
    /// The body.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// A token. Occurs nowhere else.
pub const TOKEN: &str = "EAAGm0PX4ZCpsBO-access-token";
/// An app's secret.
pub const SECRET: &str = "f00dfeedbeefcafe-app-secret";
/// A word for Meta.
pub const WORD: &str = "a-word-for-meta";

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

/// What adapters are given: nothing that they need, for they are called back.
pub fn services() -> Services {
    let ids = Ids { clock: Arc::new(Nothing), entropy: Arc::new(Nothing) };
    Services { events: Arc::new(Nothing), ids, public_url: "https://nuncio.example".into() }
}

/// A way out that leads to [`Api`].
pub fn network() -> Network {
    let policy = GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() };
    Network::new(policy).expect("a way out")
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

/// A Graph API. Ends with the test's runtime.
#[derive(Clone)]
pub struct Api {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    came: Arc<Notify>,
    identity: fn(&Value) -> String,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Api {
    /// Listens, and answers each call as `script` says. `identity` is that by which two messages are seen to be one.
    pub async fn start(identity: fn(&Value) -> String, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let api = Self { address, seen: Arc::default(), came: Arc::default(), identity };
        let (kept, script): (_, Arc<Script>) = (api.clone(), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, kept.clone(), Arc::clone(&script)));
            }
        });
        api
    }

    /// Where it is.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every call, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    /// Waits until so many calls have come.
    pub async fn wait(&self, count: usize) {
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
        let sends = self.seen().into_iter().filter(|seen| seen.path.ends_with("/messages") && !seen.refused);
        sends.map(|seen| (self.identity)(&seen.json())).collect()
    }
}

async fn serve(stream: TcpStream, api: Api, script: Arc<Script>) {
    let mut stream = BufReader::new(stream);
    let Some(mut seen) = read(&mut stream).await else { return };
    let reply = script(&seen);
    seen.refused = reply.refuses();
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
    let mut seen = Seen { method, path, headers, body: Vec::new(), refused: false };
    let length = seen.header("content-length").map_or(0, |n| n.parse().expect("a number"));
    seen.body = vec![0; length];
    stream.read_exact(&mut seen.body).await.ok()?;
    Some(seen)
}

/// `X-Hub-Signature-256` of a body, by [`SECRET`].
pub fn sign(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}
