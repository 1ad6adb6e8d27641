//! What the tests stand on: accounts, and adapters whose sessions are kept.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::contract::message;
pub(crate) use nuncio_channel::testing::NOW;
use nuncio_channel::testing::{self, Sink};
use nuncio_channel::{Account, Adapter, Outcome, ProviderEvent, Scope, SendRequest, Services, Stop, stop};
use nuncio_domain::message::{FailureCode, Message};
use nuncio_domain::{Channel, FieldError};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) const TO: &str = "+34600111222";
/// After this long a test has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
pub(crate) const PASSWORD: &str = "hunter2x";

/// An SMSC must not be answered before what it told is on disk.
pub(crate) fn services() -> (Services, Arc<Sink>, mpsc::UnboundedReceiver<ProviderEvent>) {
    Sink::services(false)
}

/// An account at the SMSC that listens on `port`.
pub(crate) fn account(port: u16, more: Value) -> Account {
    let settings = json!({"host": "127.0.0.1", "port": port, "system_id": "acme", "timeout_seconds": 20});
    testing::account(Channel::Sms, settings, more, json!({ "password": PASSWORD }))
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
        Self::of(&account(port, more))
    }

    pub(crate) fn of(account: &Account) -> Self {
        let (services, sink, events) = services();
        let adapter = factory().open(account, &services).unwrap();
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
