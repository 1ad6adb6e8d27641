//! Scheduling, expiry and cancelling of messages.

use std::time::Duration;

use nuncio::admin::{Command, Request, run};
use nuncio_domain::lifecycle::Resolution;
use nuncio_testkit::TestApp;
use serde_json::json;

// holds: messages.schedule
#[tokio::test]
async fn a_scheduled_message_waits_for_its_time() {
    for app in TestApp::on_each().await {
        let id = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-01T02:00:00Z"})).await;
        app.advance(Duration::from_secs(7_199)).await;
        assert_eq!(app.message(&id).await["status"], "scheduled");
        app.advance(Duration::from_secs(1)).await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["sentAt"].as_str()), (Some("delivered"), Some("2026-01-01T02:00:00.000Z")));
    }
}

// holds: messages.schedule
#[tokio::test]
async fn a_schedule_in_the_past_sends_at_once_and_one_too_far_ahead_is_refused() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": "2025-12-31T23:00:00Z"})).await;
    app.drain().await;
    assert_eq!(app.message(&id).await["status"], "delivered");
    app.post("/v1/messages", json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-02-01T00:00:01Z"})).await.expect(400);
}

// holds: messages.cancel
#[tokio::test]
async fn what_was_not_handed_over_can_be_cancelled() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-01T02:00:00Z"})).await;
    let cancelled = app.request("POST", &format!("/v1/messages/{id}/cancel"), None).await.expect(200).json();
    assert_eq!(
        (cancelled["message"]["status"].as_str(), cancelled["message"]["errorCode"].as_str()),
        (Some("cancelled"), Some("cancelled"))
    );
    app.advance(Duration::from_secs(7_200)).await;
    assert_eq!(app.message(&id).await["status"], "cancelled");
    let again = app.request("POST", &format!("/v1/messages/{id}/cancel"), None).await.expect(400).json();
    assert_eq!(again["details"]["currentStatus"], "cancelled");
    let sent = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    app.drain().await;
    app.request("POST", &format!("/v1/messages/{sent}/cancel"), None).await.expect(400);
}

#[tokio::test]
async fn a_message_between_two_attempts_can_be_cancelled() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+12125550003", "text": "x"})).await;
    app.drain().await;
    app.request("POST", &format!("/v1/messages/{id}/cancel"), None).await.expect(200);
    app.advance(Duration::from_secs(60)).await;
    assert_eq!(app.message(&id).await["attempts"].as_array().map(Vec::len), Some(1));
}

// holds: messages.schedule.past_due
#[tokio::test]
async fn a_schedule_long_past_due_waits_for_a_person() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-01T02:00:00Z"})).await;
    app.advance(Duration::from_secs(4 * 3_600)).await;
    let message = app.message(&id).await;
    assert_eq!((message["status"].as_str(), message["heldReason"].as_str()), (Some("scheduled"), Some("past_due")));
    app.post(&format!("/v1/messages/{id}/resolve"), json!({"action": "resend"})).await.expect(200);
    app.drain().await;
    assert_eq!(app.message(&id).await["status"], "delivered");
}

// holds: messages.validity
#[tokio::test]
async fn yesterdays_code_is_not_sent_today() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+12125550003", "text": "x", "validitySeconds": 30})).await;
    app.drain().await;
    app.clock.advance(Duration::from_secs(31));
    app.advance(Duration::ZERO).await;
    let message = app.message(&id).await;
    assert_eq!((message["status"].as_str(), message["errorCode"].as_str()), (Some("failed"), Some("expired")));
    assert_eq!(message["attempts"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn sent_is_final_after_the_wait_for_a_receipt() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+12125550005", "text": "x"})).await;
    app.drain().await;
    app.advance(Duration::from_secs(86_401)).await;
    assert_eq!(app.message(&id).await["status"], "sent");
    assert_eq!(app.store().read().await.expect("a reader").count_unguarded_messages().await.expect("a count"), 0);
}

#[tokio::test]
async fn more_held_messages_than_a_page_are_resolved_at_once() {
    for app in TestApp::on_each().await {
        let soon = app.node.core.ids().clock.now().plus(Duration::from_secs(60)).to_string();
        for part in [1_000, 5] {
            let message = |n| json!({"to": format!("+3460011{n:04}"), "channel": "sms", "text": "x", "scheduledAt": soon});
            let messages: Vec<_> = (0..part).map(message).collect();
            app.post("/v1/messages/batch", json!({"messages": messages})).await.expect(200);
        }
        app.clock.advance(Duration::from_secs(2 * 3_600));
        app.drain().await;
        let command = Command::HeldResolve { id: None, all: true, action: Resolution::Failed };
        let done = run(&app.node.core, Request { project: None, command }).await.expect("resolved");
        assert_eq!(done.json["resolved"], 1_005);
        let left = app.get("/v1/messages?heldReason=past_due").await.expect(200).json();
        assert_eq!(left["items"], json!([]));
    }
}
