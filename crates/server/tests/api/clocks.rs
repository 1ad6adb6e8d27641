//! Nodes whose clock is wrong, or that could not write their heartbeat: they leave alone what depends on the time.

use std::time::Duration;

use nuncio_channel::ProviderEvent;
use nuncio_domain::{Clock as _, MessageId, Timestamp};
use nuncio_store::IdempotentOperation;
use nuncio_testkit::{Backend, Options, Receiver, TestApp};
use serde_json::{Value, json};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Starts a node that compares its clock with the database's, which is the machine's. Its own is far behind until [`set_right`].
async fn app(backend: Backend) -> TestApp {
    let mut options = Options::default();
    options.dispatch.compare_clocks = true;
    options.dispatch.retention = Some(30 * DAY);
    TestApp::with(backend, options).await
}

/// Sets the node's clock by the database's and lets the node notice. Returns the time.
pub(crate) async fn set_right(app: &TestApp) -> Timestamp {
    let real = app.store().read().await.expect("a reader").database_time().await.expect("a time");
    app.clock.advance(real.since(app.clock.now()));
    app.node.tick().await.expect("a round");
    real
}

fn text() -> Value {
    json!({"to": "+34600111222", "text": "x"})
}

/// Sends a message with an idempotency key, for [`is_key_known`].
async fn send_with_key(app: &TestApp) -> String {
    let id = app.send_message(json!({"to": "+34600111222", "text": "x", "idempotencyKey": "k"})).await;
    // Keys are stored as keyed hashes.
    app.sql("UPDATE idempotency_keys SET key = 'k'").await;
    id
}

async fn is_key_known(app: &TestApp) -> bool {
    let mut tx = app.store().read().await.expect("a reader");
    tx.find_message_by_idempotency_key(app.tenant(), IdempotentOperation::SendMessage, "k").await.expect("a look").is_some()
}

#[tokio::test]
async fn a_node_that_starts_with_a_wrong_clock_accepts_nothing_until_it_is_set() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let refused = app.get("/readyz").await.expect(503).json();
        assert!(refused["message"].as_str().is_some_and(|why| why.contains("its clock differs from the database's")), "{refused}");
        app.post("/v1/messages", text()).await.expect(503);
        set_right(&app).await;
        app.get("/readyz").await.expect(200);
        app.send_message(text()).await;
    }
}

#[tokio::test]
async fn by_a_wrong_clock_no_webhook_is_posted_and_no_stream_begins() {
    for backend in Backend::all() {
        let mut options = Options::default();
        options.dispatch.compare_clocks = true;
        (options.dispatch.guard.allow_http, options.dispatch.guard.allow_loopback) = (true, true);
        let app = TestApp::with(backend, options).await;
        let receiver = Receiver::start().await;
        app.request("PUT", "/v1/webhook", Some(json!({"url": receiver.url, "events": ["webhook.test"]}))).await.expect(201);
        app.post("/v1/webhook/test", json!({})).await.expect(202);
        app.drain().await;
        assert!(receiver.got().is_empty(), "its signature would have a wrong time");
        let auth = format!("Bearer {}", app.test_key);
        let headers = [("authorization", auth.as_str()), ("accept", "text/event-stream")];
        app.send("GET", "/v1/events", &headers, None).await.expect(503);
        set_right(&app).await;
        app.drain().await;
        assert_eq!(receiver.got().len(), 1);
    }
}

#[tokio::test]
async fn by_a_wrong_clock_providers_are_asked_to_report_again() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let (sink, unknown) = (app.node.events(), app.node.core.ids().next::<MessageId>());
        let report = async || sink.record(ProviderEvent::Complaint { tenant: app.tenant(), message: unknown }).await;
        assert!(report().await.is_err(), "a STOP would be newer than the START that follows it");
        set_right(&app).await;
        assert!(report().await.is_ok());
    }
}

#[tokio::test]
async fn by_a_wrong_clock_nothing_ends_and_nothing_is_charged() {
    for backend in Backend::all() {
        let mut app = app(backend).await;
        let real = set_right(&app).await;
        let sent = send_with_key(&app).await;
        app.drain().await;
        let in_an_hour = real.plus(HOUR).to_string();
        let waiting = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": in_an_hour})).await;
        let number = app.post("/v1/phone-numbers", json!({"phoneNumber": "+12025550142"})).await.expect(201).json()["phoneNumber"].clone();
        let invitation = app.post("/v1/invitations", json!({})).await.expect(201).json()["invitation"].clone();
        let number_path = format!("/v1/phone-numbers/{}", number["id"].as_str().expect("an id"));
        let invitation = invitation["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        app.clock.advance(40 * DAY);
        // Noticed by the heartbeat of a running node, and by the start of another.
        for restarts in [false, true] {
            if restarts {
                app.crash().await;
            }
            app.drain().await;
            app.node.dispatch.forget_old().await.expect("not forgotten");
            app.node.purge().await.expect("not purged");
            assert_eq!(app.message(&sent).await["status"], "delivered");
            assert_eq!(app.message(&waiting).await["status"], "scheduled");
            assert!(is_key_known(&app).await);
            let shown = app.get(&number_path).await.expect(200).json()["phoneNumber"].clone();
            assert_eq!(shown["nextRenewalDate"], number["nextRenewalDate"]);
            let mut tx = app.store().read().await.expect("a reader");
            let stored = tx.find_invitation(app.tenant(), invitation).await.expect("a look").expect("the invitation");
            assert!(stored.status.is_open());
        }
    }
}

#[tokio::test]
async fn a_node_takes_no_messages_over_by_a_wrong_clock() {
    for backend in Backend::all() {
        let mut options = Options::default();
        (options.dispatch.compare_clocks, options.dispatch.sole) = (true, false);
        let app = TestApp::with(backend, options).await;
        let dead = app.another_node().await;
        dead.start().await.expect("it enters");
        let id = dead.dispatch.node();
        app.sql(&format!("UPDATE nodes SET dead = 1 WHERE id = {}", id.0)).await;
        for _ in 0..3 {
            app.clock.advance(Duration::from_secs(2));
            app.node.tick().await.expect("a round");
            assert!(app.node.dispatch.is_alive(id), "its messages are left to a node whose clock is right");
        }
        set_right(&app).await;
        assert!(!app.node.dispatch.is_alive(id));
    }
}

#[tokio::test]
async fn a_node_that_could_not_write_its_heartbeat_deletes_nothing() {
    let app = TestApp::start().await;
    send_with_key(&app).await;
    app.drain().await;
    app.advance(15 * DAY).await;
    app.clock.advance(Duration::from_secs(6));
    app.node.purge().await.expect("not purged");
    assert!(is_key_known(&app).await);
    app.node.tick().await.expect("a round");
    app.node.purge().await.expect("purged");
    assert!(!is_key_known(&app).await);
}
