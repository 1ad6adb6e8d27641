//! What the tests stand on: accounts, adapters and a program that "speaks".

use std::f64::consts::PI;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::contract::message;
pub(crate) use nuncio_channel::testing::NOW;
use nuncio_channel::testing::{self, Sink};
use nuncio_channel::{Account, Adapter, Outcome, ProviderEvent, Scope, SendRequest, Services, stop};
use nuncio_channel_sip::Ports;
use nuncio_domain::message::Message;
use nuncio_domain::{Channel, Redacted};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const TO: &str = "+34600111222";
/// After this long a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const PASSWORD: &str = "correct-horse-battery";

pub(crate) fn services() -> (Services, Arc<Sink>, mpsc::UnboundedReceiver<ProviderEvent>) {
    Sink::services(true)
}

/// A WAV file of a tone, 8 kHz, that lasts as long as asked.
pub(crate) fn tone(millis: u64) -> Vec<u8> {
    let samples = (0..millis * 8).map(|n| (f64::sin(n as f64 * 2.0 * PI * 440.0 / 8_000.0) * 12_000.0) as i16);
    let data: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data".to_vec();
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

/// A program that says a tone of this length, whatever the text.
pub(crate) fn speaker(millis: u64) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tone-{millis}-{}.wav", std::process::id()));
    if !path.exists() {
        // Written apart first: another test may be reading it.
        let apart = path.with_extension(format!("{:?}", std::thread::current().id()));
        fs::write(&apart, tone(millis)).unwrap();
        fs::rename(apart, &path).unwrap();
    }
    format!("cat {}", path.display())
}

/// An account at the trunk on `port`.
pub(crate) fn account(port: u16, more: Value) -> Account {
    let settings = json!({
        "host": "127.0.0.1", "port": port, "username": "acme", "timeout_seconds": 5, "listen_seconds": 0, "tts_command": speaker(300)
    });
    let mut account = testing::account(Channel::Voice, settings, more, json!({ "password": PASSWORD }));
    account.settings.retain(|_, value| !value.is_null());
    if !account.settings.contains_key("username") {
        account.secrets = Redacted::default();
    }
    account
}

/// Enough for all tests at once.
const RTP: (u16, u16) = (30_000, 39_999);

pub(crate) fn factory() -> nuncio_channel::AdapterFactory {
    // Recordings come from servers on this machine.
    with_ports(Ports { rtp: RTP, ..Ports::default() })
}

/// One that may use these ports of this machine.
fn with_ports(ports: Ports) -> nuncio_channel::AdapterFactory {
    nuncio_channel_sip::factory(Network::new(GuardPolicy::open()).expect("a way out"), ports)
}

/// An adapter and what it tells.
pub(crate) struct Caller {
    pub(crate) adapter: Arc<dyn Adapter>,
    pub(crate) sink: Arc<Sink>,
    pub(crate) events: mpsc::UnboundedReceiver<ProviderEvent>,
    pub(crate) message: Message,
}

impl Caller {
    pub(crate) fn new(port: u16, more: Value) -> Self {
        Self::of(&account(port, more))
    }

    /// One whose operator gave it this UDP port for SIP.
    pub(crate) fn at(local: u16, port: u16, more: Value) -> Self {
        let ports = Ports { sip: (local, local), rtp: RTP };
        Self::from(&with_ports(ports), &account(port, more))
    }

    pub(crate) fn of(account: &Account) -> Self {
        Self::from(&factory(), account)
    }

    fn from(factory: &nuncio_channel::AdapterFactory, account: &Account) -> Self {
        let (services, sink, events) = services();
        let message = message(account, TO, 0);
        Self { adapter: factory.open(account, &services).unwrap(), sink, events, message }
    }

    /// Calls; the outcome must come within [`PATIENCE`].
    pub(crate) async fn send(&self) -> Outcome {
        let request = SendRequest { message: &self.message, attempt: 2, channel: Channel::Voice, attachments: &[], now: NOW };
        timeout(PATIENCE, self.adapter.send(&request)).await.expect("an outcome")
    }

    /// Keeps the session until the sender is told or dropped.
    pub(crate) fn run(&self) -> (watch::Sender<bool>, JoinHandle<()>) {
        let (ask, asked) = stop();
        let adapter = Arc::clone(&self.adapter);
        (ask, tokio::spawn(async move { adapter.run(asked).await }))
    }

    /// The next event, which is there already.
    pub(crate) fn told(&mut self) -> Option<ProviderEvent> {
        self.events.try_recv().ok()
    }
}

/// Kind, code, seconds to wait, and text of an outcome.
pub(crate) fn short(outcome: &Outcome) -> (&'static str, &str, Option<u64>, &str) {
    let (kind, failure, wait) = match outcome {
        Outcome::Accepted { .. } => return ("accepted", "", None, ""),
        Outcome::Deferred { failure, scope: Scope::Message, retry_after } => ("deferred", failure, *retry_after),
        Outcome::Deferred { failure, scope: Scope::Connection, retry_after } => ("connection", failure, *retry_after),
        Outcome::Rejected { failure } => ("rejected", failure, None),
        Outcome::Unknown { failure, .. } => ("unknown", failure, None),
    };
    (kind, failure.code.as_str(), wait.map(|wait| wait.as_secs()), &failure.message)
}
