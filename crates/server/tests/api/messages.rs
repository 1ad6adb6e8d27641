//! `POST /v1/messages`, `GET /v1/messages/{id}`, `GET /v1/messages`, `GET /v1/me`.

use std::time::Duration;

use insta::assert_snapshot;
use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

// holds: messages.accepted, messages.to.phone, messages.default_sender
#[tokio::test]
async fn a_message_is_accepted_sent_and_delivered() {
    for app in TestApp::on_each().await {
        let answer = app.post("/v1/messages", json!({"to": "+34600111222", "text": "hello", "metadata": {"order": 7}})).await.expect(202);
        let message = answer.json()["message"].clone();
        assert_eq!(
            (&message["status"], &message["channel"], &message["direction"]),
            (&json!("sending"), &json!("sms"), &json!("outbound"))
        );
        app.drain().await;
        let delivered = app.message(message["id"].as_str().unwrap_or_default()).await;
        assert_eq!(delivered["status"], "delivered");
        assert_eq!(delivered["metadata"], json!({"order": 7}));
        assert_eq!(delivered["contactId"], message["contactId"], "{delivered}");
        assert_eq!(delivered["attempts"].as_array().map(Vec::len), Some(1));
        assert_eq!(app.store().read().await.expect("a reader").count_unguarded_messages().await.expect("a count"), 0);
    }
}

/// A stored message is sent even if its client disconnects.
#[tokio::test]
async fn a_client_that_hangs_up_keeps_no_message_from_being_sent() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        app.send_message(json!({"to": "+34600111222", "text": "hello"})).await;
        // Each client disconnects while the database blocks its message, each a little later, until a message was stored.
        let mut written = false;
        for patience in [50, 100, 200, 400, 800].map(Duration::from_millis) {
            let before = messages(&app).await.len();
            let held = app.hold_messages().await;
            let request = app.post("/v1/messages", json!({"to": "+34600111222", "text": "hello"}));
            assert!(tokio::time::timeout(patience, request).await.is_err(), "{backend:?}: answered what cannot have been written");
            held.release().await;
            app.send_message(json!({"to": "+34600111222", "text": "hello"})).await; // stored after the other
            written = messages(&app).await.len() == before + 2;
            if written {
                break;
            }
        }
        assert!(written, "{backend:?}: no message was written whose client had hung up");
        for _ in 0..1_000 {
            app.drain().await;
            if messages(&app).await.iter().all(|status| status == "delivered") {
                break;
            }
        }
        assert!(messages(&app).await.iter().all(|status| status == "delivered"), "{backend:?}: {:?}", messages(&app).await);
    }
}

/// Returns the status of each message.
async fn messages(app: &TestApp) -> Vec<String> {
    let list = app.get("/v1/messages?limit=100").await.expect(200).json();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|message| message["status"].as_str().unwrap_or_default().to_owned()).collect()
}

// holds: messages.get, messages.metadata, time.format
#[tokio::test]
async fn the_whole_message_as_it_is_shown() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "Ada@EXAMPLE.org", "subject": "Grüße", "text": "hello", "replyTo": "b@example.org"})).await;
    app.drain().await;
    assert_snapshot!(crate::pretty(&app.message(&id).await));
}

// holds: messages.to.email
#[tokio::test]
async fn an_email_address_goes_by_email() {
    let app = TestApp::start().await;
    for channel in [json!(null), json!("auto"), json!("email")] {
        let id = app.send_message(json!({"to": "Ada@EXAMPLE.org", "channel": channel, "subject": "s", "text": "x"})).await;
        app.drain().await;
        let message = app.message(&id).await;
        assert_eq!(
            (&message["channel"], &message["to"], &message["status"]),
            (&json!("email"), &json!("Ada@example.org"), &json!("delivered"))
        );
    }
}

// holds: messages.to.chat
#[tokio::test]
async fn a_chat_id_is_a_number_that_may_be_negative() {
    let app = TestApp::start().await;
    for channel in ["telegram", "instagram"] {
        for to in ["4711", "-1001234567890"] {
            let id = app.send_message(json!({"to": to, "channel": channel, "text": "x"})).await;
            app.drain().await;
            let message = app.message(&id).await;
            assert_eq!((&message["channel"], &message["to"], &message["status"]), (&json!(channel), &json!(to), &json!("delivered")));
        }
        for wrong in ["47x", "-", "+34600111222", "a@example.org"] {
            let refused = app.post("/v1/messages", json!({"to": wrong, "channel": channel, "text": "x"})).await.expect(400).json();
            assert_eq!(refused["details"]["errors"][0]["path"], "to", "{channel} {wrong}");
        }
    }
    let refused = app.post("/v1/messages", json!({"to": "34600111222", "text": "x"})).await.expect(400).json();
    assert!(refused["details"]["errors"][0]["message"].as_str().is_some_and(|m| m.contains("+34600111222")), "{refused}");
}

// holds: messages.content
#[tokio::test]
async fn every_field_of_content_comes_back() {
    let app = TestApp::start().await;
    let first = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
    let template = json!({"name": "t", "language": "en", "body": "{{1}}", "headerType": "text", "headerContent": "{{h}}",
        "buttons": [{"type": "url", "text": "x", "url": "https://e.org/{{1}}", "example": "https://e.org/7"}]});
    let template = app.post("/v1/templates", template).await.expect(201).json()["id"].clone();
    let senders = app.get("/v1/senders").await.expect(200).json();
    let submit = format!("/v1/templates/{}/submit", template.as_str().expect("an id"));
    app.post(&submit, json!({"senderId": senders["items"][0]["id"]})).await.expect(202);
    app.drain().await;
    let url = "https://example.com/a";
    let mut seen = std::collections::BTreeSet::new();
    for (message_type, content) in [
        ("image", json!({"mediaUrl": url, "mimeType": "image/png"})),
        ("document", json!({"mediaId": "4711", "mimeType": "application/pdf", "filename": "a.pdf"})),
        ("location", json!({"latitude": 40.5, "longitude": -3.25, "locationName": "Sol", "locationAddress": "Madrid"})),
        ("contact", json!({"contacts": [{"name": "Ada", "phones": ["+34600111222", "+34600111223"]}]})),
        ("buttons", json!({"buttons": [{"id": "1", "title": "Yes"}, {"id": "2", "title": "No"}], "footerText": "f"})),
        ("list", json!({"listButton": "b", "sections": [{"title": "s", "rows": [{"id": "1", "title": "t", "description": "d"}]}]})),
        ("list", json!({"listButton": "b", "sections": [{"rows": [{"id": "1", "title": "t"}]}]})),
        ("cta_url", json!({"ctaDisplayText": "Go", "ctaUrl": url, "ctaHeaderType": "text", "ctaHeaderText": "h"})),
        ("cta_url", json!({"ctaDisplayText": "Go", "ctaUrl": url, "ctaHeaderType": "image", "ctaHeaderMediaUrl": url})),
        ("reaction", json!({"emoji": "👍", "reactToMessageId": first})),
        (
            "template",
            json!({"templateId": template, "templateVariables": {"1": "a"}, "templateButtonVariables": {"0": "b"},
            "templateHeaderVariables": {"h": "c"}}),
        ),
    ] {
        let mut body = json!({"to": "+34600111222", "channel": "whatsapp", "messageType": message_type, "content": content});
        if matches!(message_type, "buttons" | "list" | "cta_url") {
            body["text"] = "?".into();
        }
        let message = app.message(&app.send_message(body).await).await;
        assert_eq!((&message["messageType"], &message["content"]), (&json!(message_type), &content));
        seen.extend(content.as_object().expect("an object").keys().cloned());
    }
    let zero =
        json!({"to": "+34600111222", "channel": "whatsapp", "messageType": "location", "content": {"latitude": 40.5, "longitude": -0.0}});
    let message = app.message(&app.send_message(zero).await).await;
    assert!(message["content"]["longitude"].as_f64().expect("a number").is_sign_positive(), "providers get it as a text: {message}");
    let document = app.get("/openapi.json").await.expect(200).json();
    let all = document["components"]["schemas"]["MessageContent"]["properties"].as_object().expect("fields");
    assert_eq!(all.keys().cloned().collect::<std::collections::BTreeSet<_>>(), seen);
    assert_eq!(seen.len(), 24);
}

// holds: messages.routing
#[tokio::test]
async fn routing_and_attempts_explain_the_way() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+12125550002", "text": "x", "channel": "whatsapp"})).await;
    app.drain().await;
    assert_snapshot!(crate::pretty(&app.message(&id).await["attempts"]));
    let prices = "channel,country,unit,provider,fee\nsms,*,segment,0.05,0\nwhatsapp,*,message,0.02,0\n";
    app.node.core.billing().import_prices(None, prices, true).await.expect("good prices");
    // Not in an assigned range: causes a warning, but no rejection.
    let chosen = app.send_message(json!({"to": "+34100000000", "text": "x"})).await;
    assert_snapshot!(crate::pretty(&app.message(&chosen).await["routing"]));
}

// holds: contacts.auto
#[tokio::test]
async fn two_messages_to_one_recipient_belong_to_one_contact() {
    let app = TestApp::start().await;
    let first = app.send_message(json!({"to": "+34600111222", "text": "one"})).await;
    let second = app.send_message(json!({"to": "+34600111222", "text": "two", "channel": "voice"})).await;
    let other = app.send_message(json!({"to": "+34600111223", "text": "three"})).await;
    let contacts = [app.message(&first).await, app.message(&second).await, app.message(&other).await].map(|m| m["contactId"].clone());
    assert_eq!(contacts[0], contacts[1]);
    assert_ne!(contacts[0], contacts[2]);
}

// holds: messages.dry_run
#[tokio::test]
async fn dry_run_says_what_would_happen_and_writes_nothing() {
    let app = TestApp::start().await;
    let plan = app.post("/v1/messages?dryRun=true", json!({"to": "+34600111222", "text": "hi"})).await.expect(200).json()["plan"].clone();
    assert_eq!((&plan["channel"], &plan["suppressed"]), (&json!("sms"), &json!(false)));
    assert_eq!(app.get("/v1/messages").await.expect(200).json()["items"], json!([]));
}

// holds: lists.limit
#[tokio::test]
async fn pages_hold_every_message_once_newest_first() {
    for app in TestApp::on_each().await {
        let mut sent = Vec::new();
        for n in 0..7 {
            app.clock.advance(std::time::Duration::from_millis(1));
            sent.push(app.send_message(json!({"to": "+34600111222", "text": n.to_string()})).await);
        }
        sent.reverse();
        let mut seen = Vec::new();
        let mut path = "/v1/messages?limit=3".to_owned();
        loop {
            let page = app.get(&path).await.expect(200).json();
            seen.extend(page["items"].as_array().expect("items").iter().map(|m| m["id"].as_str().unwrap_or_default().to_owned()));
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            path = format!("/v1/messages?limit=2&cursor={cursor}");
        }
        assert_eq!(seen, sent);
    }
}

// holds: messages.list
#[tokio::test]
async fn lists_filter() {
    for app in TestApp::on_each().await {
        let sms = app
            .send_message(json!({"to": "+34600111222", "text": "a", "idempotencyKey": "k1",
                "metadata": {"campaign": "spring", "n": 5, "list": [1]}}))
            .await;
        let email = app.send_message(json!({"to": "a@example.org", "subject": "s", "text": "b"})).await;
        let failed = app.send_message(json!({"to": "+12125550001", "text": "c"})).await;
        app.drain().await;
        for (query, expected) in [
            ("to=+34600111222", vec![&sms]),
            ("to=%2B34600111222&channel=sms,voice", vec![&sms]),
            ("status=failed", vec![&failed]),
            ("since=2026-01-01T00:00:00Z&channel=email", vec![&email]),
            ("since=2026-01-01T00:00:00Z&metadata[campaign]=spring", vec![&sms]),
            ("since=2026-01-01T00:00:00Z&metadata[n]=5", vec![&sms]),
            ("metadata[campaign]=%22spring%22", vec![]),
            ("metadata[list]=[1]", vec![]),
            ("since=2026-01-01T00:00:00Z&direction=inbound", vec![]),
            ("idempotencyKey=k1", vec![&sms]),
            ("until=2026-01-01T00:00:00Z", vec![]),
        ] {
            let page = app.get(&format!("/v1/messages?{query}")).await.expect(200).json();
            let ids: Vec<_> = page["items"].as_array().expect("items").iter().map(|m| m["id"].clone()).collect();
            assert_eq!(ids, expected.into_iter().map(|id| json!(id)).collect::<Vec<_>>(), "{query}");
        }
    }
}

// holds: lists.cursor
#[tokio::test]
async fn a_cursor_is_bound_to_its_list() {
    let app = TestApp::start().await;
    for n in 0..3 {
        app.send_message(json!({"to": "+34600111222", "text": n.to_string()})).await;
    }
    let cursor = app.get("/v1/messages?limit=1").await.expect(200).json()["nextCursor"].as_str().expect("a cursor").to_owned();
    app.get(&format!("/v1/messages?limit=2&cursor={cursor}")).await.expect(200);
    app.get(&format!("/v1/messages?to=%2B34600111222&cursor={cursor}")).await.expect(400);
    app.get(&format!("/v1/messages?cursor=x{cursor}")).await.expect(400);
    app.with_key(&app.live_key, "GET", &format!("/v1/messages?cursor={cursor}"), None).await.expect(400);
}

// holds: messages.get.unknown
#[tokio::test]
async fn unknown_ids_are_404_whatever_they_look_like() {
    let app = TestApp::start().await;
    for id in ["msg_00000000000000000000000000", "nonsense", "msg_", "con_00000000000000000000000000", "%00", "msg_🦀"] {
        let answer = app.get(&format!("/v1/messages/{}", id.replace('🦀', "%F0%9F%A6%80"))).await;
        assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (404, Some("not_found")), "{id}: {}", answer.text);
    }
}

#[tokio::test]
async fn large_messages_go_through_the_spool_and_come_back_whole() {
    for app in TestApp::on_each().await {
        let text = "é".repeat(400_000);
        let id = app.send_message(json!({"to": "a@example.org", "subject": "long", "text": text})).await;
        app.drain().await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["text"].as_str()), (Some("delivered"), Some(text.as_str())));
    }
}

// holds: me.get
#[tokio::test]
async fn me_names_project_team_and_key() {
    let app = TestApp::start().await;
    assert_snapshot!(crate::pretty(&app.get("/v1/me").await.expect(200).json()));
}
