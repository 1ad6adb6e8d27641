//! The sandbox: effects of each recipient.

use std::time::Duration;

use nuncio_testkit::{TestApp, repository_file};
use serde_json::{Value, json};

/// A row of the table in docs/guide/src/api/sandbox.md: the digits after `+1<area>55500` and `9000000`, the name before `@`, and the final
/// status of a message. The last column lists channels with other results.
type Row = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const ROWS: &[Row] = &[
    ("01", "invalid", "failed invalid_recipient", &[]),
    ("02", "bounce", "failed undeliverable", &[("email", "failed undeliverable; suppressed bounce")]),
    ("03", "delay", "delivered after 2 attempts", &[]),
    ("04", "throttle", "delivered after 2 attempts", &[]),
    ("05", "sent", "sent", &[]),
    ("06", "reply", "delivered; says Reply to: hello", &[]),
    ("07", "unsubscribe", "delivered; says STOP; suppressed opt_out", &[("email", "delivered; says unsubscribe; suppressed opt_out")]),
    ("08", "unknown", "delivered after 2 attempts", &[]),
    ("09", "", "delivered", &[("whatsapp", "whatsapp_window_closed"), ("instagram", "window_closed")]),
    ("10", "", "delivered", &[("whatsapp", "read"), ("instagram", "read")]),
    ("11", "subscribe", "delivered; says STOP; says START", &[("email", "delivered; says unsubscribe; says subscribe")]),
    ("12", "help", "delivered; says HELP", &[]),
    ("13", "blocked", "failed blocked_by_recipient", &[]),
    ("14", "rejected", "failed content_rejected", &[]),
    ("15", "late", "delivered", &[]),
    ("16", "corrected", "delivered", &[]),
    ("17", "expired", "failed expired", &[]),
    ("", "complaint", "delivered; suppressed complaint", &[]),
];

/// Returns the final status of a message to `to`, and what its recipient does.
async fn outcome_of(app: &TestApp, to: &str, channel: &str) -> String {
    let mut body = json!({"to": to, "channel": channel, "text": "hello", "validitySeconds": 300, "fallbackEnabled": false});
    if channel == "email" {
        body["subject"] = "s".into();
    }
    let answer = app.post("/v1/messages", body).await.json();
    let Some(id) = answer["message"]["id"].as_str() else { return answer["code"].as_str().unwrap_or_default().to_owned() };
    app.drain().await;
    for seconds in [1, 6, 33, 400] {
        app.advance(Duration::from_secs(seconds)).await;
    }
    let message = app.message(id).await;
    let mut words = message["status"].as_str().unwrap_or_default().to_owned();
    match (message["errorCode"].as_str(), message["attempts"].as_array().map_or(0, Vec::len)) {
        (Some(code), _) => words.push_str(&format!(" {code}")),
        (None, 1) => {}
        (None, attempts) => words.push_str(&format!(" after {attempts} attempts")),
    }
    let said = app.get("/v1/messages?direction=inbound&since=2026-01-01T00:00:00Z&limit=100").await.expect(200).json();
    for message in said["items"].as_array().expect("items").iter().rev().filter(|m| m["from"] == to && m["channel"] == channel) {
        words.push_str(&format!("; says {}", message["text"].as_str().unwrap_or_default()));
    }
    let suppressions = app.get("/v1/suppressions?limit=100").await.expect(200).json();
    let theirs = |one: &&Value| one["identifier"] == to && (one["channel"].is_null() || one["channel"] == channel);
    for one in suppressions["items"].as_array().expect("items").iter().filter(theirs) {
        words.push_str(&format!("; suppressed {}", one["reason"].as_str().unwrap_or_default()));
    }
    words
}

// holds: messages.sandbox
#[tokio::test]
async fn every_row_of_the_table_plays_on_every_channel() {
    let app = TestApp::start().await;
    for (number, name, plain, others) in ROWS {
        let mut cases = Vec::new();
        if !number.is_empty() {
            // A different number for each channel: an opt-out applies to all channels of a number.
            cases.extend([("sms", 212), ("whatsapp", 213)].map(|(channel, area)| (channel, format!("+1{area}55500{number}"))));
            cases.extend(["telegram", "instagram"].map(|channel| (channel, format!("9000000{number}"))));
        }
        if !name.is_empty() {
            cases.extend(["example.com", "shop.test"].map(|domain| ("email", format!("{name}+1@{domain}"))));
        }
        for (channel, to) in cases {
            let wanted = others.iter().find(|(other, _)| *other == channel).map_or(*plain, |(_, wanted)| wanted);
            assert_eq!(outcome_of(&app, &to, channel).await, wanted, "{channel} {to}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_takes_nothing_keeps_messages_waiting() {
    for (fails, health) in [("refused", "stopped"), ("unreachable", "resting")] {
        let app = TestApp::start().await;
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/senders/{sender}/channels/sms");
        let put = async |settings: Value| app.request("PUT", &path, Some(json!({"kind": "sim", "settings": settings}))).await;
        put(json!({"fails": "sometimes"})).await.expect(400);
        put(json!({"fails": fails})).await.expect(200);
        let message = sent(&app, "+34600111222").await;
        assert_eq!(message["status"], "sending", "{message}");
        assert_eq!(app.get(&path).await.expect(200).json()["health"]["state"], health);
        app.advance(Duration::from_secs(1)).await;
        put(json!({})).await.expect(200);
        for _ in 0..4 {
            app.advance(Duration::from_secs(60)).await;
        }
        assert_eq!(app.message(message["id"].as_str().expect("an id")).await["status"], "delivered", "{fails}");
        assert_eq!(app.get(&path).await.expect(200).json()["health"]["state"], "ok");
    }
}

#[tokio::test]
async fn a_connection_that_changes_twice_at_one_moment_is_opened_twice() {
    for app in TestApp::on_each().await {
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/senders/{sender}/channels/sms");
        // The clock does not move.
        for (settings, status) in [(json!({}), "delivered"), (json!({"fails": "unreachable"}), "sending"), (json!({}), "delivered")] {
            app.request("PUT", &path, Some(json!({"kind": "sim", "settings": settings}))).await.expect(200);
            assert_eq!(sent(&app, "+34600111222").await["status"], status, "{settings}");
        }
    }
}

#[test]
fn the_table_in_the_docs_has_these_rows() {
    let docs = repository_file("docs/guide/src/api/sandbox.md");
    let table = docs.split("## Sandbox recipients").nth(1).and_then(|rest| rest.split("| what happens |").nth(1)).expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|line| line.split('|').map(str::trim).skip(1).take(3).collect::<Vec<_>>());
    let documented: Vec<_> = cells.map(|c| (c[0].to_owned(), c[1].to_owned(), c[2].trim_matches(['`', '@']).to_owned())).collect();
    let tested: Vec<_> = ROWS.iter().map(|(number, name, ..)| ((*number).to_owned(), (*number).to_owned(), (*name).to_owned())).collect();
    assert_eq!(documented, tested);
}

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

// holds: messages.resolve, messages.on_unknown, messages.list.held
#[tokio::test]
async fn an_unknown_outcome_is_held_when_asked_and_a_person_decides() {
    for (action, status) in [("resend", "delivered"), ("sent", "sent"), ("failed", "failed")] {
        let app = TestApp::start().await;
        let id = app.send_message(json!({"to": "+12125550008", "text": "x", "onUnknown": "hold"})).await;
        app.drain().await;
        let held = app.message(&id).await;
        assert_eq!((held["status"].as_str(), held["heldReason"].as_str()), (Some("sending"), Some("unknown_outcome")));
        let listed =
            async |reason: &str| app.get(&format!("/v1/messages?heldReason={reason}")).await.json()["items"].as_array().map_or(0, Vec::len);
        assert_eq!((listed("unknown_outcome").await, listed("past_due,stale_database").await), (1, 0));
        app.post(&format!("/v1/messages/{id}/resolve"), json!({"action": action})).await.expect(200);
        assert_eq!(listed("unknown_outcome").await, 0);
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
    for app in TestApp::on_each().await {
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
    let sent = app.message(&id).await;
    assert!(sent["status"] == "sent" && sent["providerMessageId"].is_string(), "{sent}");

    // While the second attempt has no result, the provider's id of the first is not shown beside its channel.
    let held = app.faults.results.write().await;
    app.clock.advance(Duration::from_secs(61));
    let mut message = sent.clone();
    while message["channel"] != "sms" || message["attempts"][1].is_null() {
        app.node.tick().await.expect("a tick");
        message = app.message(&id).await;
    }
    assert!(message["providerMessageId"].is_null(), "{message}");
    drop(held);
    app.drain().await;
    let message = app.message(&id).await;
    assert_eq!((message["channel"].as_str(), message["attempts"].as_array().map(Vec::len)), (Some("sms"), Some(2)));
    assert!(message["providerMessageId"].is_string() && message["providerMessageId"] != sent["providerMessageId"], "{message}");
}

// holds: messages.fallback_after
#[tokio::test]
async fn a_message_shows_its_fallback_when_that_is_tried() {
    for app in TestApp::on_each().await {
        let id = app.send_message(json!({"to": "+12125550017", "text": "x", "channel": "whatsapp", "fallbackAfterSeconds": 60})).await;
        app.drain().await;
        for _ in 0..5 {
            app.advance(Duration::from_secs(10)).await;
            let message = app.message(&id).await;
            let listed = app.get("/v1/messages?channel=whatsapp").await.json()["items"].as_array().map(Vec::len);
            assert_eq!((&message["channel"], listed), (&json!("whatsapp"), Some(1)), "{message}");
        }
        app.advance(Duration::from_secs(11)).await;
        let message = app.message(&id).await;
        let newest = message["attempts"].as_array().and_then(|attempts| attempts.last()).expect("an attempt");
        assert_eq!((&message["channel"], &newest["channel"]), (&json!("sms"), &json!("sms")), "{message}");
    }
}

// holds: messages.fallback_after
#[tokio::test]
async fn a_connection_that_takes_nothing_gives_way_to_the_fallback() {
    for app in TestApp::on_each().await {
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        for fails in ["refused", "unreachable"] {
            let settings = json!({"kind": "sim", "settings": {"fails": fails}});
            app.request("PUT", &format!("/v1/senders/{sender}/channels/whatsapp"), Some(settings)).await.expect(200);
            let message = json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"});
            let with = |name: &str, value: u64| {
                let mut body = message.clone();
                body[name] = value.into();
                body
            };
            // The first is attempted; the connection rests before the others are.
            let mut ids = Vec::new();
            for body in [with("fallbackAfterSeconds", 60), with("fallbackAfterSeconds", 60), with("validitySeconds", 120)] {
                ids.push(app.send_message(body).await);
                app.drain().await;
            }
            for _ in 0..7 {
                app.advance(Duration::from_secs(10)).await;
            }
            let found = async |n: usize| {
                let message = app.message(&ids[n]).await;
                (message["channel"].as_str().expect("a channel").to_owned(), message["status"].as_str().expect("a status").to_owned())
            };
            let (sms, waits) = (("sms".to_owned(), "delivered".to_owned()), "whatsapp");
            assert_eq!((found(0).await, found(1).await), (sms.clone(), sms.clone()), "{fails}");
            assert_eq!(found(2).await.0, waits);
            for _ in 0..5 {
                app.advance(Duration::from_secs(9)).await;
            }
            assert_eq!(found(2).await, sms, "{fails}: before its validity ends");
        }
    }
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
    for app in TestApp::on_each().await {
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
    let message = sent(&app, "late@example.com").await;
    assert_eq!(message["status"], "sent");
    app.advance(Duration::from_secs(31)).await;
    assert_eq!(app.message(message["id"].as_str().unwrap_or_default()).await["status"], "delivered");
}
