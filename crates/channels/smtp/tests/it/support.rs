//! What the tests share: accounts, requests, a relay that follows a script, and the peer that judges mails.

use std::io::{BufRead as _, BufReader as StdReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{
    Account, Adapter, EventSink, Outcome, ProviderEvent, ResolvedAttachment, Scope, SendRequest, Services, Tokens, Unrecorded,
};
use nuncio_domain::message::{FailureCode, Message};
use nuncio_domain::{Channel, Clock, Entropy, FieldError, Ids, Redacted, TenantId, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::message;

/// Where the server is reached, as the adapter is told.
pub(crate) const PUBLIC_URL: &str = "https://nuncio.example";

/// Time and randomness are not needed by this adapter; asking for them is a fault.
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
        unreachable!("mails are not random")
    }
}

#[async_trait::async_trait]
impl EventSink for Nothing {
    fn push(&self, event: ProviderEvent, _: Duration) {
        unreachable!("there are no receipts: {event:?}")
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        unreachable!("there are no receipts: {event:?}")
    }
}

/// What mails bring back is recognised by these.
pub(crate) fn tokens() -> Tokens {
    Tokens::new(Redacted::new([1; 32]))
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Opens an adapter with these settings and secrets.
pub(crate) fn try_open(settings: Value, secrets: Value) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    let account = Account {
        id: message::message().state.route.connection,
        tenant: TenantId(1),
        channel: Channel::Email,
        settings: object(settings),
        secrets: Redacted::new(object(secrets)),
        trusted: true,
    };
    let ids = Ids { clock: Arc::new(Nothing), entropy: Arc::new(Nothing) };
    let services = Services { events: Arc::new(Nothing), ids, public_url: PUBLIC_URL.into() };
    let net = Network::new(GuardPolicy::default()).expect("a way out");
    nuncio_channel_smtp::factory(net, tokens()).open(&account, &services)
}

/// An adapter for a relay on this machine, in clear text unless `more` says otherwise.
pub(crate) fn open(address: SocketAddr, more: Value) -> Arc<dyn Adapter> {
    open_with(address, more, json!({}))
}

/// The same with secrets.
pub(crate) fn open_with(address: SocketAddr, more: Value, secrets: Value) -> Arc<dyn Adapter> {
    let mut settings = object(
        json!({"host": "127.0.0.1", "port": address.port(), "tls": "none", "from": "Acme <hello@example.org>", "timeout_seconds": 20}),
    );
    settings.extend(object(more));
    try_open(Value::Object(settings), secrets).unwrap()
}

/// A text message to `to`.
pub(crate) fn text(to: &str) -> Message {
    let mut message = message::message();
    message.to = to.into();
    message.request_mut().text = Some("Hello\n.\n..dots\n".into());
    message.request_mut().subject = Some("Hi".into());
    message
}

/// Sends `message` without attachments.
pub(crate) async fn send(adapter: &Arc<dyn Adapter>, message: &Message) -> Outcome {
    send_with(adapter, message, &[]).await
}

/// Sends `message` with attachments.
pub(crate) async fn send_with(adapter: &Arc<dyn Adapter>, message: &Message, attachments: &[ResolvedAttachment]) -> Outcome {
    send_again(adapter, message, 0, attachments).await
}

/// Makes this attempt of `message`.
pub(crate) async fn send_again(
    adapter: &Arc<dyn Adapter>,
    message: &Message,
    attempt: usize,
    attachments: &[ResolvedAttachment],
) -> Outcome {
    adapter.send(&SendRequest { message, attempt, channel: Channel::Email, attachments, now: message::NOW }).await
}

/// Kind, code and provider code of an outcome.
pub(crate) fn short(outcome: &Outcome) -> (&'static str, Option<FailureCode>, Option<&str>) {
    let (kind, failure) = match outcome {
        Outcome::Accepted { refs, .. } => return ("accepted", None, refs.first().map(String::as_str)),
        Outcome::Deferred { failure, scope: Scope::Message, .. } => ("deferred", failure),
        Outcome::Deferred { failure, scope: Scope::Connection, .. } => ("connection", failure),
        Outcome::Rejected { failure } => ("rejected", failure),
        Outcome::Unknown { failure, .. } => ("unknown", failure),
    };
    (kind, Some(failure.code), failure.provider_code.as_deref())
}

/// One side of a conversation, as the relay sees it.
pub(crate) struct Peer(pub(crate) BufReader<TcpStream>);

impl Peer {
    /// The next client.
    pub(crate) async fn accept(listener: &TcpListener) -> Self {
        Self(BufReader::new(listener.accept().await.unwrap().0))
    }

    /// The next client, after greeting and EHLO, which announces `offers`.
    pub(crate) async fn greeted(listener: &TcpListener, offers: &[&str]) -> Self {
        let mut peer = Self::accept(listener).await;
        peer.say("220 relay.test ESMTP").await;
        peer.ehlo(offers).await;
        peer
    }

    /// Hears EHLO and answers with `offers`.
    pub(crate) async fn ehlo(&mut self, offers: &[&str]) {
        assert_eq!(self.hear().await, "EHLO [127.0.0.1]");
        let mut lines: Vec<_> =
            std::iter::once("relay.test at your service").chain(offers.iter().copied()).map(|l| format!("250-{l}")).collect();
        let last = lines.pop().unwrap().replacen('-', " ", 1);
        lines.push(last);
        self.say(&lines.join("\r\n")).await;
    }

    /// Says a line.
    pub(crate) async fn say(&mut self, line: &str) {
        self.say_bytes(format!("{line}\r\n").as_bytes()).await;
    }

    /// Says anything.
    pub(crate) async fn say_bytes(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).await.unwrap();
    }

    /// Hears a line; `""` when the client is gone.
    pub(crate) async fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    /// Hears a line that begins with `start`, and answers.
    pub(crate) async fn turn(&mut self, start: &str, answer: &str) {
        let line = self.hear().await;
        assert!(line.starts_with(start), "{line:?} instead of {start}");
        self.say(answer).await;
    }

    /// Takes a mail in up to its final dot, and does not answer that.
    pub(crate) async fn take(&mut self) -> String {
        self.take_from("hello@example.org").await
    }

    /// The same, from this address.
    pub(crate) async fn take_from(&mut self, from: &str) -> String {
        self.turn(&format!("MAIL FROM:<{from}>"), "250 ok").await;
        self.turn("RCPT TO:<", "250 ok").await;
        self.turn("DATA", "354 go").await;
        self.content().await
    }

    /// Hears the content up to its final dot.
    pub(crate) async fn content(&mut self) -> String {
        let mut mail = String::new();
        while !mail.ends_with("\r\n.\r\n") {
            assert_ne!(self.0.read_line(&mut mail).await.unwrap(), 0);
        }
        mail
    }

    /// Waits until the client hangs up.
    pub(crate) async fn gone(&mut self) {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).await.ok();
    }
}

/// A free port and its listener.
pub(crate) async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Where a test key or certificate lies. They are used by nothing else.
pub(crate) fn key(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/keys").join(name)
}

/// The content of a test key or certificate.
pub(crate) fn key_text(name: &str) -> String {
    std::fs::read_to_string(key(name)).unwrap()
}

/// The interpreter of the peers.
pub(crate) fn python() -> PathBuf {
    let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../.peers/venv/bin/python");
    std::env::var_os("NUNCIO_PEER_PYTHON").map_or_else(own, PathBuf::from)
}

/// The SMTP peer: a foreign server and foreign verifiers of MIME and DKIM.
pub(crate) struct Sink {
    process: Child,
    output: StdReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Sink {
    /// Starts it with these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut process = Command::new(python())
            .arg(root.join("peers/smtp_sink.py"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = StdReader::new(process.stdout.take().unwrap());
        let first = read(&mut output);
        let port = u16::try_from(first["port"].as_u64().unwrap()).unwrap();
        Self { process, output, address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) }
    }

    /// What it saw next.
    pub(crate) fn seen(&mut self) -> Value {
        read(&mut self.output)
    }

    /// Ends it and waits for its end.
    pub(crate) fn stop(mut self) {
        drop(self.process.stdin.take());
        self.process.wait().unwrap();
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // It ends when its input closes; this waits for a test that failed.
        drop(self.process.stdin.take());
        self.process.wait().ok();
    }
}

fn read(output: &mut StdReader<ChildStdout>) -> Value {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
}
