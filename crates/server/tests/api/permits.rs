//! When the next message of a connection may start.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{Adapter, Capabilities, Outcome, Receipts, Registry, SendRequest};
use nuncio_domain::{Channel, MessageType};
use nuncio_testkit::{Backend, Options, TestApp, provider};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::Never, window: 1 };

/// A provider that takes one message at a time, and answers once it is opened.
#[derive(Clone, Debug)]
struct Gate(Arc<Steps>);

#[derive(Debug)]
struct Steps {
    begun: Semaphore,
    opened: Semaphore,
}

impl Gate {
    fn open(&self) {
        self.0.opened.add_permits(1_000);
    }

    /// Waits until another message has reached the provider.
    async fn next(&self) {
        let next = tokio::time::timeout(Duration::from_secs(20), self.0.begun.acquire()).await;
        next.expect("a message reaches the provider").expect("it stays open").forget();
    }
}

#[async_trait]
impl Adapter for Gate {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, _: &SendRequest<'_>) -> Outcome {
        self.0.begun.add_permits(1);
        drop(self.0.opened.acquire().await);
        Outcome::Accepted { refs: Vec::new(), cost: None }
    }

    async fn check(&self) -> Result<String, String> {
        Ok("a gate".to_owned())
    }
}

async fn rig(backend: Backend, hints: usize) -> (TestApp, Gate) {
    let gate = Gate(Arc::new(Steps { begun: Semaphore::new(0), opened: Semaphore::new(0) }));
    let mut options = Options { registry: Registry::new(vec![provider("gate", &[Channel::Email], gate.clone())]), ..Options::default() };
    options.dispatch.hints = hints;
    // However slow the machine is.
    options.dispatch.bulk_wait = Duration::from_secs(60);
    let app = TestApp::with(backend, options).await;
    app.connect(Channel::Email, "gate", json!({}), json!({})).await;
    (app, gate)
}

async fn send(app: &TestApp, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..count {
        let body = json!({"to": format!("r{n}@example.net"), "subject": "s", "text": "x"});
        let sent = app.with_key(&app.live_key, "POST", "/v1/messages", Some(body)).await.expect(202).json();
        ids.push(sent["message"]["id"].as_str().expect("an id").to_owned());
    }
    ids
}

async fn assert_all_sent(app: &TestApp, ids: &[String]) {
    for id in ids {
        let got = app.with_key(&app.live_key, "GET", &format!("/v1/messages/{id}"), None).await.expect(200).json();
        let message = &got["message"];
        assert_eq!((message["status"].as_str(), message["attempts"].as_array().map(Vec::len)), (Some("sent"), Some(1)), "{message}");
    }
}

#[tokio::test]
async fn the_next_message_starts_while_the_result_of_the_last_one_is_being_stored() {
    for backend in Backend::all() {
        let (app, gate) = rig(backend, 1_000).await;
        let unstored = app.faults.results.write().await;
        let ids = send(&app, 2).await;
        gate.open();
        gate.next().await;
        gate.next().await;
        drop(unstored);
        app.drain().await;
        assert_all_sent(&app, &ids).await;
    }
}

#[tokio::test]
async fn what_a_full_lane_does_not_remember_goes_out_without_a_pause() {
    for backend in Backend::all() {
        let (app, gate) = rig(backend, 1).await;
        // One with the provider, one that the lane remembers, and three that only the database knows.
        let ids = send(&app, 5).await;
        gate.next().await;
        gate.open();
        app.drain().await;
        assert_all_sent(&app, &ids).await;
    }
}

/// A message that is stored as waiting takes a step to start, and one for its result.
#[tokio::test]
async fn messages_of_a_broadcast_wait_for_a_permit_and_take_one_step_each() {
    for backend in Backend::all() {
        let (app, gate) = rig(backend, 1_000).await;
        let call = async |path: &str, body: Option<Value>| app.with_key(&app.live_key, "POST", path, body).await;
        let draft = json!({"name": "b", "channel": "email", "emailSubject": "s", "text": "x"});
        let id = call("/v1/broadcasts", Some(draft)).await.expect(201).json()["broadcast"]["id"].as_str().expect("an id").to_owned();
        let contacts: Vec<_> = (0..5).map(|n| json!({"recipient": format!("r{n}@example.net")})).collect();
        call(&format!("/v1/broadcasts/{id}/contacts"), Some(json!({"contacts": contacts}))).await.expect(201);
        gate.open();
        let before = app.faults.steps_left.load(Ordering::Acquire);
        call(&format!("/v1/broadcasts/{id}/send"), None).await.expect(202);
        app.drain().await;
        let listed = app.with_key(&app.live_key, "GET", "/v1/messages", None).await.expect(200).json();
        let ids: Vec<String> =
            listed["items"].as_array().expect("a list").iter().map(|m| m["id"].as_str().expect("an id").to_owned()).collect();
        assert_eq!(ids.len(), 5);
        assert_all_sent(&app, &ids).await;
        assert_eq!(before - app.faults.steps_left.load(Ordering::Acquire), 5, "one step a message");
    }
}
