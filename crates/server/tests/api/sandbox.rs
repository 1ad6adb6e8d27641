//! The sandbox: what each recipient makes happen.

use std::time::Duration;

use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

async fn sent(app: &TestApp, to: &str) -> Value {
    let email = to.contains('@');
    let mut body = json!({"to": to, "text": "hello"});
    if email {
        body["subject"] = "s".into();
    }
    let id = app.send_message(body).await;
    app.drain().await;
    app.message(&id).await
}

// holds: messages.sandbox, messages.error, auth.prefix.test
#[tokio::test]
async fn recipients_decide() {
    let app = TestApp::start().await;
    for (to, status, code) in [
        ("+12125550001", "failed", Some("invalid_recipient")),
        ("+12125550002", "failed", Some("undeliverable")),
        ("+12125550005", "sent", None),
        ("+34600111222", "delivered", None),
        ("invalid@example.com", "failed", Some("invalid_recipient")),
        ("bounce@shop.test", "failed", Some("undeliverable")),
        ("sent@example.net", "sent", None),
        ("bounce@gmail.com", "delivered", None),
    ] {
        let message = sent(&app, to).await;
        assert_eq!((message["status"].as_str(), message["errorCode"].as_str()), (Some(status), code), "{to}: {message}");
    }
}

#[tokio::test]
async fn time_outs_and_throttles_are_tried_again() {
    let app = TestApp::start().await;
    for to in ["+12125550003", "+12125550004", "throttle@example.com"] {
        let message = sent(&app, to).await;
        assert_eq!(message["status"], "sending", "{to}");
        assert_eq!(message["attempts"][0]["status"], "failed");
        app.advance(Duration::from_secs(7)).await;
        let message = app.message(message["id"].as_str().unwrap_or_default()).await;
        assert_eq!((message["status"].as_str(), message["attempts"].as_array().map(Vec::len)), (Some("delivered"), Some(2)), "{to}");
        assert_eq!(message["possibleDuplicate"], false);
    }
}

// holds: messages.on_unknown
#[tokio::test]
async fn an_unknown_outcome_is_resent_and_marked() {
    let app = TestApp::start().await;
    let message = sent(&app, "+12125550008").await;
    assert_eq!(message["attempts"][0]["status"], "unknown");
    app.advance(Duration::from_secs(7)).await;
    let message = app.message(message["id"].as_str().unwrap_or_default()).await;
    assert_eq!((message["status"].as_str(), message["possibleDuplicate"].as_bool()), (Some("delivered"), Some(true)));
}

// holds: messages.resolve, messages.on_unknown
#[tokio::test]
async fn an_unknown_outcome_is_held_when_asked_and_a_person_decides() {
    for (action, status) in [("resend", "delivered"), ("sent", "sent"), ("failed", "failed")] {
        let app = TestApp::start().await;
        let id = app.send_message(json!({"to": "+12125550008", "text": "x", "onUnknown": "hold"})).await;
        app.drain().await;
        let held = app.message(&id).await;
        assert_eq!((held["status"].as_str(), held["heldReason"].as_str()), (Some("sending"), Some("unknown_outcome")));
        app.post(&format!("/v1/messages/{id}/resolve"), json!({"action": action})).await.expect(200);
        app.drain().await;
        let resolved = app.message(&id).await;
        assert_eq!((resolved["status"].as_str(), resolved.get("heldReason")), (Some(status), None), "{action}");
        app.post(&format!("/v1/messages/{id}/resolve"), json!({"action": action})).await.expect(400);
    }
}

// holds: messages.on_unknown
#[tokio::test]
async fn an_unknown_outcome_fails_when_asked() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+12125550008", "text": "x", "onUnknown": "fail"})).await;
    app.drain().await;
    assert_eq!(app.message(&id).await["errorCode"], "unknown_outcome");
}

#[tokio::test]
async fn a_held_message_fails_after_a_month() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+12125550008", "text": "x", "onUnknown": "hold"})).await;
    app.drain().await;
    app.advance(Duration::from_secs(31 * 86_400)).await;
    assert_eq!(app.message(&id).await["errorCode"], "unknown_outcome");
}

// holds: messages.fallback
#[tokio::test]
async fn whatsapp_falls_back_to_sms_on_the_same_message() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = app.send_message(json!({"to": "+12125550002", "text": "x", "channel": "whatsapp"})).await;
        app.drain().await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["channel"].as_str()), (Some("delivered"), Some("sms")), "{message}");
        assert_eq!(
            message["attempts"].as_array().map(|a| a.iter().map(|a| a["channel"].as_str()).collect::<Vec<_>>()),
            Some(vec![Some("whatsapp"), Some("sms")])
        );
    }
}

// holds: messages.fallback.off
#[tokio::test]
async fn without_fallback_nothing_falls_back() {
    let app = TestApp::start().await;
    for (to, status) in [("+12125550002", "failed"), ("+12125550005", "sent")] {
        let body = json!({"to": to, "text": "x", "channel": "whatsapp", "fallbackEnabled": false, "fallbackAfterSeconds": 60});
        let id = app.send_message(body).await;
        app.drain().await;
        app.advance(Duration::from_secs(3_600)).await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["channel"].as_str()), (Some(status), Some("whatsapp")), "{message}");
        assert_eq!(message["attempts"].as_array().map(Vec::len), Some(1));
    }
}

// holds: messages.fallback_after
#[tokio::test]
async fn no_receipt_in_time_falls_back() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+12125550005", "text": "x", "channel": "whatsapp", "fallbackAfterSeconds": 60})).await;
    app.drain().await;
    assert_eq!(app.message(&id).await["status"], "sent");
    app.advance(Duration::from_secs(61)).await;
    let message = app.message(&id).await;
    assert_eq!((message["channel"].as_str(), message["attempts"].as_array().map(Vec::len)), (Some("sms"), Some(2)));
}

// holds: messages.window
#[tokio::test]
async fn the_whatsapp_window() {
    let app = TestApp::start().await;
    let answer = app.post("/v1/messages", json!({"to": "+12125550009", "text": "x", "channel": "whatsapp"})).await.expect(400);
    assert_eq!(answer.json()["code"], "whatsapp_window_closed");
}

// holds: messages.inbound
#[tokio::test]
async fn replies_come_in() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        sent(&app, "+12125550006").await;
        app.advance(Duration::from_secs(1)).await;
        let page = app.get("/v1/messages?direction=inbound&since=2026-01-01T00:00:00Z").await.expect(200).json();
        let inbound = &page["items"][0];
        assert_eq!((inbound["from"].as_str(), inbound["status"].as_str()), (Some("+12125550006"), Some("received")), "{page}");
        assert_eq!(page["items"].as_array().map(Vec::len), Some(1));
    }
}

// holds: messages.suppressed
#[tokio::test]
async fn stop_suppresses_at_once_and_only_that_sender() {
    let app = TestApp::start().await;
    sent(&app, "+12125550007").await;
    app.advance(Duration::from_secs(1)).await;
    let answer = app.post("/v1/messages", json!({"to": "+12125550007", "text": "again"})).await.expect(202).json();
    assert_eq!(
        (answer["message"]["status"].as_str(), answer["message"]["errorCode"].as_str()),
        (Some("failed"), Some("recipient_suppressed"))
    );
    assert_eq!(answer["message"]["attempts"], json!([]));
    let plan = app.post("/v1/messages?dryRun=true", json!({"to": "+12125550007", "text": "again"})).await.expect(200).json();
    assert_eq!(plan["plan"]["suppressed"], true);
    let other = app.post("/v1/senders", json!({"name": "Other"})).await.expect(201).json();
    let headers =
        [("authorization", format!("Bearer {}", app.test_key)), ("service-sender", other["id"].as_str().unwrap_or_default().to_owned())];
    let headers: Vec<_> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let answer = app.send("POST", "/v1/messages", &headers, Some(json!({"to": "+12125550007", "text": "from another"}))).await.expect(202);
    assert_eq!(answer.json()["message"]["status"], "sending");
}

#[tokio::test]
async fn a_complaint_suppresses_for_every_sender() {
    let app = TestApp::start().await;
    sent(&app, "complaint@example.com").await;
    app.advance(Duration::from_secs(1)).await;
    let message = sent(&app, "complaint@example.com").await;
    assert_eq!(message["errorCode"], "recipient_suppressed");
}

// holds: messages.status
#[tokio::test]
async fn a_late_receipt_delivers() {
    let app = TestApp::start().await;
    let message = sent(&app, "delay@example.com").await;
    assert_eq!(message["status"], "sent");
    app.advance(Duration::from_secs(31)).await;
    assert_eq!(app.message(message["id"].as_str().unwrap_or_default()).await["status"], "delivered");
}
