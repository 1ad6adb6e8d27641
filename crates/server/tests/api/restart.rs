//! Stopping and starting nodes: a node does not return after sign-off, and its unfinished work is done.

use std::time::Duration;

use nuncio_testkit::TestApp;
use serde_json::json;

#[tokio::test]
async fn a_node_that_signed_off_does_not_come_back() {
    for app in TestApp::on_each().await {
        app.node.stop(Duration::ZERO).await;
        // Its loops may run once more before they notice.
        for _ in 0..3 {
            app.clock.advance(Duration::from_secs(2));
            app.node.tick().await.expect("dispatch");
        }
        let nodes = app.store().read().await.expect("a reader").list_nodes().await.expect("nodes");
        assert_eq!(nodes.iter().map(|node| node.dead).collect::<Vec<_>>(), [true], "{nodes:?}");
    }
}

/// Other nodes can declare it dead while it waits for its last attempts.
#[tokio::test]
async fn a_node_that_is_declared_dead_while_it_stops_does_not_register_again() {
    let app = TestApp::start().await;
    // It notices that it must stop before its next heartbeat, and has not finished yet.
    app.sql("UPDATE nodes SET dead = 1").await;
    app.clock.advance(Duration::from_secs(2));
    app.node.stop(Duration::ZERO).await;
    app.clock.advance(Duration::from_secs(2));
    app.node.tick().await.expect("dispatch");
    let nodes = app.store().read().await.expect("a reader").list_nodes().await.expect("nodes");
    assert_eq!(nodes.iter().map(|node| node.dead).collect::<Vec<_>>(), [true], "{nodes:?}");
}

#[tokio::test]
async fn receipts_that_the_simulator_owed_come_after_a_restart() {
    for mut app in TestApp::on_each().await {
        let mut late = Vec::new();
        for n in 0..3 {
            late.push(app.send_message(json!({"to": format!("late+{n}@example.com"), "subject": "s", "text": "x"})).await);
        }
        let silent = app.send_message(json!({"to": "+12125550005", "text": "x"})).await;
        app.drain().await;
        // The second node also dies before it could send the receipt.
        for _ in 0..2 {
            app.crash().await;
            app.drain().await;
            app.clock.advance(Duration::from_secs(1));
        }
        let status = async |app: &TestApp, id: &str| app.message(id).await["status"].as_str().expect("a status").to_owned();
        assert_eq!(status(&app, &late[0]).await, "sent");
        app.advance(Duration::from_secs(31)).await;
        for id in &late {
            let message = app.message(id).await;
            assert_eq!(
                (message["status"].as_str(), message["attempts"].as_array().map(Vec::len)),
                (Some("delivered"), Some(1)),
                "{message}"
            );
            let events = app.store().read().await.expect("a reader").list_message_events(app.tenant(), id.parse().expect("an id")).await;
            let told: Vec<_> = events.expect("events").iter().flat_map(|event| &event.changes).map(|c| c.status.as_str()).collect();
            assert_eq!(told, ["queued", "sending", "sent", "delivered"], "each once");
        }
        assert_eq!(status(&app, &silent).await, "sent", "it owes nothing");
    }
}

/// Each message has a row of the agenda of its own, and after a restart no node counts what is left in them.
#[tokio::test]
async fn a_long_backlog_is_worked_off_after_a_restart() {
    for mut app in TestApp::on_each().await {
        let now = app.node.core.ids().clock.now();
        let at = |n: u64| now.plus(Duration::from_secs(60 + 3 * n)).to_string();
        for batch in 0..5 {
            let message = |n| json!({"to": format!("+34600{batch}{n:05}"), "channel": "sms", "text": "x", "scheduledAt": at(n)});
            let messages: Vec<_> = (0..1_000).map(message).collect();
            app.post("/v1/messages/batch", json!({"messages": messages})).await.expect(200);
        }
        app.crash().await;
        app.clock.advance(Duration::from_secs(60 + 3 * 1_000));
        app.drain().await;
        let left = app.get("/v1/messages?status=scheduled,queued&limit=1").await.expect(200).json();
        assert_eq!(left["items"], json!([]), "a message is left over");
    }
}
