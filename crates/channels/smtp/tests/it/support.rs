//! What the tests share: accounts, requests, a relay that follows a script, and the peer that judges mails.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use nuncio_channel::testing::PUBLIC_URL;
use nuncio_channel::testing::{self, PeerProcess, object, python_peer};
use nuncio_channel::{
    Account, Adapter, EventSink, Outcome, ProviderEvent, ResolvedAttachment, Scope, SendRequest, Services, Tokens, Unrecorded,
};
use nuncio_domain::message::{FailureCode, Message};
use nuncio_domain::{Channel, FieldError, Redacted, TenantId};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::message;

/// There are no events in these tests.
#[derive(Debug)]
struct Nothing;

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
    let services = Services { events: Arc::new(Nothing), ..testing::services() };
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
pub(crate) struct Peer<S = TcpStream>(pub(crate) BufReader<S>);

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
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
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
        self.0.get_mut().flush().await.unwrap();
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

/// The SMTP peer: a foreign server and foreign verifiers of MIME and DKIM.
pub(crate) struct Sink {
    process: PeerProcess,
    pub(crate) address: SocketAddr,
}

impl Sink {
    /// Starts it with these arguments.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut process = PeerProcess::start(python_peer("smtp_sink.py").args(arguments));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, process.port()));
        Self { process, address }
    }

    /// What it saw next.
    pub(crate) fn seen(&mut self) -> Value {
        self.process.seen()
    }

    /// Ends it and waits for its end.
    pub(crate) fn stop(mut self) {
        self.process.stop();
    }
}
