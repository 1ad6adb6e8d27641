//! Throttles of connections: who takes how much of them.

use std::time::Duration;

use nuncio_dispatch::{Hint, Permit};
use nuncio_domain::config::Connection;
use nuncio_domain::id::Id as _;
use nuncio_domain::{Channel, MessageId};
use nuncio_node::Node;
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::json;

/// Limits the default sender's SMS to one per second, in the test environment.
async fn throttle(app: &TestApp, burst: u32) {
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the test world");
    let sender = world.default_sender().expect("a sender").id;
    let put = json!({"kind": "sim", "throttle": {"messagesPerSecond": 1, "burst": burst}});
    app.request("PUT", &format!("/v1/senders/{sender}/channels/sms"), Some(put)).await.expect(200);
}

/// Sends a text message; returns whether its attempt started at once.
async fn starts(app: &TestApp, to: &str) -> bool {
    let id = app.send_message(json!({"to": to, "text": "x", "channel": "sms"})).await;
    app.message(&id).await["attempts"].as_array().is_some_and(|attempts| attempts.len() == 1)
}

#[tokio::test]
async fn what_is_not_sent_takes_nothing_from_a_throttle() {
    for app in TestApp::on_each().await {
        throttle(&app, 2).await;
        let keyed = json!({"to": "+34600111222", "text": "x", "channel": "sms", "idempotencyKey": "k"});
        app.send_message(keyed.clone()).await;
        for _ in 0..3 {
            app.post("/v1/messages", keyed.clone()).await.expect(409);
        }
        app.post("/v1/suppressions", json!({"identifier": "+34600111333"})).await.expect(201);
        for _ in 0..3 {
            assert!(!starts(&app, "+34600111333").await);
        }
        assert!(starts(&app, "+34600111222").await, "the burst has room for two");
        assert!(!starts(&app, "+34600111222").await);
    }
}

/// Names a message that could go by a connection.
pub(crate) fn next(app: &TestApp, connection: &Connection) -> Hint {
    let id = MessageId::from_uuid(Default::default());
    Hint { tenant: app.tenant(), id, fence: 0, connection: connection.id, bulk: false, bytes: 0 }
}

/// Takes all permits of the SMS connection that a node has now.
async fn permits(app: &TestApp, node: &Node) -> Vec<Permit> {
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the test world");
    let sms = world.connections.iter().find(|c| c.channel == Channel::Sms).expect("a connection");
    std::iter::from_fn(|| node.dispatch.reserve(&next(app, sms), sms)).collect()
}

#[tokio::test]
async fn live_nodes_divide_a_burst_too() {
    for backend in Backend::all() {
        let mut options = Options::default();
        options.dispatch.sole = false;
        let app = TestApp::with(backend, options).await;
        throttle(&app, 8).await;
        assert_eq!(permits(&app, &app.node).await.len(), 8, "alone");
        let other = app.another_node().await;
        other.start().await.expect("it enters");
        app.clock.advance(Duration::from_secs(1));
        app.node.tick().await.expect("a round");
        for what in ["opened", "returned", "refilled"] {
            let taken = [permits(&app, &app.node).await, permits(&app, &other).await].map(|permits| permits.len());
            assert_eq!(taken, [4, 4], "{what}");
            if what == "returned" {
                app.clock.advance(Duration::from_secs(60));
            }
        }
        throttle(&app, 1).await;
        for node in [&app.node, &other] {
            assert_eq!(permits(&app, node).await.len(), 1, "each can send");
        }
    }
}
