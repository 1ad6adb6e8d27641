//! Suppressions: added, listed, removed, also by recipients' keywords.

use std::time::Duration;

use nuncio_channel::ProviderEvent;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::{Channel, ContactId};
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::contacts::{write, write_late};

const NUMBER: &str = "+34600111222";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

async fn suppressions(app: &TestApp) -> Vec<Value> {
    app.get("/v1/suppressions").await.expect(200).json()["items"].as_array().expect("a page").clone()
}

/// Sends a message; returns its status and error.
async fn outcome(app: &TestApp, body: Value) -> (String, String) {
    app.clock.advance(Duration::from_millis(1));
    let id = app.send_message(body).await;
    app.drain().await;
    let message = app.message(&id).await;
    (text(&message["status"]).to_owned(), text(&message["errorCode"]).to_owned())
}

async fn reaches(app: &TestApp, to: &str, channel: &str) -> bool {
    match outcome(app, json!({"to": to, "text": "x", "channel": channel})).await {
        (status, _) if status == "delivered" => true,
        (status, code) => {
            assert_eq!((status.as_str(), code.as_str()), ("failed", "recipient_suppressed"));
            false
        }
    }
}

/// Returns the texts of all messages to a recipient, newest first.
async fn sent_to(app: &TestApp, to: &str) -> Vec<Value> {
    let page = app.get(&format!("/v1/messages?to={}&direction=outbound", to.replace('+', "%2B"))).await.expect(200).json();
    page["items"].as_array().expect("a page").clone()
}

// holds: suppressions.list, suppressions.create, suppressions.delete
#[tokio::test]
async fn a_recipient_is_suppressed_and_released() {
    for app in TestApp::on_each().await {
        let made = app.post("/v1/suppressions", json!({"identifier": NUMBER})).await.expect(201).json();
        assert_eq!((text(&made["reason"]), &made["senderId"], &made["channel"]), ("manual", &Value::Null, &Value::Null));
        let fields: Vec<_> = made.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(fields, ["channel", "createdAt", "id", "identifier", "reason", "senderId", "source"]);
        assert!(text(&made["id"]).starts_with("sup_") && text(&made["source"]).starts_with("API key key_"), "{made}");
        for channel in ["sms", "sms_oneway", "whatsapp", "voice"] {
            assert!(!reaches(&app, NUMBER, channel).await, "{channel}");
        }
        let refused = app.post("/v1/messages", json!({"to": NUMBER, "text": "x"})).await.expect(202).json();
        assert_eq!(refused["message"]["errorMessage"], "the recipient is suppressed");
        assert_eq!(app.post("/v1/suppressions", json!({"identifier": NUMBER})).await.expect(200).json(), made, "it was there");
        app.clock.advance(Duration::from_millis(1));
        let email = app.post("/v1/suppressions", json!({"identifier": "a@EXAMPLE.org", "reason": "bounce"})).await.expect(201).json();
        assert_eq!((text(&email["identifier"]), text(&email["channel"]), text(&email["reason"])), ("a@example.org", "email", "bounce"));
        assert_eq!(suppressions(&app).await, [email.clone(), made.clone()]);
        for (query, expected) in [("%2B34600111222", 1), ("%2034600111222", 1), ("a@example.org", 1), ("42", 0)] {
            let page = app.get(&format!("/v1/suppressions?identifier={query}")).await.expect(200).json();
            assert_eq!(page["items"].as_array().map(Vec::len), Some(expected), "{query}");
        }
        let page = app.get("/v1/suppressions?limit=1").await.expect(200).json();
        let next = app.get(&format!("/v1/suppressions?limit=1&cursor={}", text(&page["nextCursor"]))).await.expect(200).json();
        assert_eq!((&next["items"][0], &next["nextCursor"]), (&made, &Value::Null));
        let other = app.with_key(&app.live_key, "GET", "/v1/suppressions", None).await.expect(200).json();
        assert_eq!(other["items"], json!([]));

        let path = format!("/v1/suppressions/{}", text(&made["id"]));
        app.with_key(&app.live_key, "DELETE", &path, None).await.expect(404);
        app.request("DELETE", &path, None).await.expect(204);
        app.request("DELETE", &path, None).await.expect(404);
        assert!(reaches(&app, NUMBER, "sms").await);
    }
}

// holds: suppressions.create, suppressions.scope
#[tokio::test]
async fn an_opt_out_may_be_for_one_sender_and_is_told() {
    for app in TestApp::on_each().await {
        let other = text(&app.post("/v1/senders", json!({"name": "Other"})).await.expect(201).json()["id"]).to_owned();
        let id = app.send_message(json!({"to": NUMBER, "text": "x"})).await;
        let contact: ContactId = text(&app.message(&id).await["contactId"]).parse().expect("an id");
        let body = json!({"identifier": NUMBER, "senderId": other});
        let made = app.post("/v1/suppressions", body).await.expect(201).json();
        assert_eq!((text(&made["reason"]), text(&made["senderId"])), ("opt_out", other.as_str()));
        assert!(reaches(&app, NUMBER, "sms").await, "the default sender may");
        let auth = format!("Bearer {}", app.test_key);
        for channel in ["sms", "whatsapp", "voice"] {
            let body = json!({"to": NUMBER, "text": "x", "channel": channel});
            let headers = [("authorization", auth.as_str()), ("service-sender", other.as_str())];
            let refused = app.send("POST", "/v1/messages", &headers, Some(body)).await.expect(202).json();
            assert_eq!(refused["message"]["errorCode"], "recipient_suppressed", "{channel}");
        }
        app.node.dispatch.flush_metrics().await.expect("written");
        let rows = app.store().read().await.expect("a reader").traffic_by_time(app.tenant(), Default::default(), 1).await;
        assert_eq!(rows.expect("rows").iter().map(|(.., traffic)| traffic.failed).sum::<i64>(), 3, "charts count them");
        let told =
            app.store().read().await.expect("a reader").list_resource_events(app.tenant(), ResourceKind::Contact, contact.uuid()).await;
        let told = serde_json::to_value(&told.expect("events")[0].1[0]).expect("json");
        assert_eq!((text(&told["type"]), text(&told["sender"])), ("contact.opted_out", other.as_str()));
        assert_eq!((text(&told["data"]["contact"]["id"]), &told["data"]["suppression"]), (contact.to_string().as_str(), &made));
        let all = app.post("/v1/suppressions", json!({"identifier": NUMBER, "reason": "opt_out"})).await.expect(201).json();
        assert_eq!(all["senderId"], Value::Null);
        assert!(!reaches(&app, NUMBER, "sms").await);
        for (body, path) in [
            (json!({"identifier": NUMBER, "senderId": other, "reason": "bounce"}), "senderId"),
            (json!({"identifier": "42"}), "identifier"),
            (json!({"identifier": "nonsense"}), "identifier"),
            (json!({"identifier": NUMBER, "channel": "email"}), "identifier"),
            (json!({"identifier": NUMBER, "reason": "boredom"}), "reason"),
            (json!({}), "identifier"),
        ] {
            let answer = app.post("/v1/suppressions", body).await.expect(400).json();
            assert_eq!(answer["details"]["errors"][0]["path"], path, "{answer}");
        }
        app.get("/v1/suppressions?identifier=nonsense").await.expect(400);
        app.post("/v1/suppressions", json!({"identifier": NUMBER, "senderId": "snd_nonsense"})).await.expect(404);
        app.post("/v1/suppressions", json!({"identifier": "42", "channel": "telegram"})).await.expect(201);
    }
}

#[tokio::test]
async fn a_repeated_key_suppresses_once() {
    let app = TestApp::start().await;
    let body = json!({"identifier": NUMBER});
    let made = app.once("k", "/v1/suppressions", body.clone()).await.expect(201).json();
    let again = app.once("k", "/v1/suppressions", body).await.expect(409).json();
    assert_eq!((text(&again["code"]), &again["suppression"]), ("idempotency_conflict", &made));
    let again = app.once("k", "/v1/suppressions", json!({"identifier": "a@example.org"})).await.expect(409).json();
    assert_eq!((text(&again["code"]), &again["suppression"]), ("idempotency_key_reused", &made));

    // So does one that found the recipient suppressed already.
    let known = app.once("l", "/v1/suppressions", json!({"identifier": NUMBER})).await.expect(200).json();
    assert_eq!(known, made);
    let again = app.once("l", "/v1/suppressions", json!({"identifier": "a@example.org"})).await.expect(409).json();
    assert_eq!((text(&again["code"]), &again["suppression"]), ("idempotency_key_reused", &made));
}

// holds: suppressions.scope, suppressions.stop
#[tokio::test]
async fn stop_is_confirmed_once_and_start_too() {
    for app in TestApp::on_each().await {
        write(&app, Channel::Whatsapp, NUMBER, "please stop, thanks!", None).await;
        assert_eq!(suppressions(&app).await.len(), 1);
        let sent = sent_to(&app, NUMBER).await;
        assert_eq!((sent.len(), text(&sent[0]["status"]), text(&sent[0]["channel"])), (1, "delivered", "whatsapp"), "although opted out");
        assert_eq!(sent[0]["text"], "You are unsubscribed from Default and will get no more messages. Reply START to subscribe again.");
        let contact: ContactId = text(&sent[0]["contactId"]).parse().expect("an id");
        let told =
            app.store().read().await.expect("a reader").list_resource_events(app.tenant(), ResourceKind::Contact, contact.uuid()).await;
        let told = told.expect("events");
        assert_eq!((told.len(), text(&json!(told[0].1[0])["type"])), (1, "contact.opted_out"));
        for channel in ["sms", "whatsapp", "voice"] {
            assert!(!reaches(&app, NUMBER, channel).await, "{channel}");
        }
        let before = sent_to(&app, NUMBER).await.len();
        write(&app, Channel::Sms, NUMBER, "STOP", None).await;
        assert_eq!(sent_to(&app, NUMBER).await.len(), before, "no second confirmation");

        write(&app, Channel::Sms, NUMBER, "start", None).await;
        let sent = sent_to(&app, NUMBER).await;
        assert_eq!((sent.len(), text(&sent[0]["channel"]), text(&sent[0]["status"])), (before + 1, "sms", "delivered"));
        assert!(text(&sent[0]["text"]).starts_with("You are subscribed to Default again"));
        assert!(reaches(&app, NUMBER, "sms").await);
        let before = sent_to(&app, NUMBER).await.len();
        write(&app, Channel::Sms, NUMBER, "start", None).await;
        assert_eq!(sent_to(&app, NUMBER).await.len(), before, "there was nothing to lift");
    }
}

#[tokio::test]
async fn start_lifts_an_opt_out_and_nothing_else() {
    let app = TestApp::start().await;
    app.post("/v1/suppressions", json!({"identifier": NUMBER, "reason": "complaint"})).await.expect(201);
    write(&app, Channel::Sms, NUMBER, "STOP", None).await;
    write(&app, Channel::Sms, NUMBER, "START", None).await;
    let left = suppressions(&app).await;
    assert_eq!((left.len(), text(&left[0]["reason"])), (1, "complaint"));
    assert_eq!(sent_to(&app, NUMBER).await.len(), 1, "no promise of messages that will not come");
    assert!(!reaches(&app, NUMBER, "sms").await);
}

#[tokio::test]
async fn a_start_that_comes_late_lifts_no_newer_stop() {
    for app in TestApp::on_each().await {
        app.advance(Duration::from_secs(600)).await;
        write_late(&app, Channel::Telegram, ("5", "STOP", None), Duration::from_secs(60)).await;
        write_late(&app, Channel::Telegram, ("5", "START", None), Duration::from_secs(300)).await;
        assert_eq!(suppressions(&app).await.len(), 1, "the STOP was written after it");
        write_late(&app, Channel::Telegram, ("5", "START", None), Duration::from_secs(30)).await;
        assert_eq!(suppressions(&app).await, [] as [Value; 0]);
    }
}

// holds: suppressions.stop
#[tokio::test]
async fn help_is_answered_but_not_for_ever() {
    for app in TestApp::on_each().await {
        write(&app, Channel::Email, "ada@example.net", "Hilfe bitte", None).await;
        let sent = sent_to(&app, "ada@example.net").await;
        assert_eq!((sent.len(), text(&sent[0]["status"]), text(&sent[0]["subject"])), (1, "delivered", "Your request"));
        assert!(text(&sent[0]["text"]).starts_with("Diese Nachrichten kommen von Default."), "{}", sent[0]);
        let at = |name: &str| nuncio_domain::Timestamp::parse(text(&sent[0][name])).expect("a time");
        let valid = at("expiresAt").since(at("createdAt")).as_secs();
        assert_eq!(valid.next_multiple_of(60), sent[0]["validitySeconds"].as_u64().expect("a number"), "as it says of itself");
        write(&app, Channel::Email, "ada@example.net", "help", None).await;
        assert_eq!(sent_to(&app, "ada@example.net").await.len(), 1, "a machine may be talking to us");
        app.send_message(json!({"to": "ada@example.net", "subject": "s", "text": "hello"})).await;
        write(&app, Channel::Email, "ada@example.net", "help", None).await;
        assert_eq!(sent_to(&app, "ada@example.net").await.len(), 2, "nor does it count what we write in between");
        app.advance(Duration::from_secs(61)).await;
        write(&app, Channel::Email, "ada@example.net", "help", None).await;
        assert_eq!(sent_to(&app, "ada@example.net").await.len(), 3);
        assert_eq!(suppressions(&app).await, [] as [Value; 0]);
    }
}

#[tokio::test]
async fn answers_of_the_sandbox_do_not_go_round() {
    let app = TestApp::start().await;
    for to in ["+12125550006", "+12125550007", "unsubscribe@example.com", "reply@example.com"] {
        let mut body = json!({"to": to, "text": "help"});
        if to.contains('@') {
            body["subject"] = "s".into();
        }
        app.send_message(body).await;
    }
    for _ in 0..10 {
        app.advance(Duration::from_secs(1)).await;
    }
    let page = app.get("/v1/messages?limit=100").await.expect(200).json();
    let outbound = page["items"].as_array().expect("a page").iter().filter(|m| m["direction"] == "outbound").count();
    assert_eq!(outbound, 6, "four messages, and the confirmations of the two that opted out: {page}");
    let unguarded = app.store().read().await.expect("a reader").count_unguarded_messages().await.expect("a count");
    assert_eq!(unguarded, 0);
}

#[tokio::test]
async fn a_scheduled_message_is_stopped_by_an_opt_out_though_its_channel_was_removed() {
    for app in TestApp::on_each().await {
        let body = json!({"channels": [{"channel": "sms", "identifier": NUMBER}, {"channel": "telegram", "identifier": "42"}]});
        let contact = app.post("/v1/contacts", body).await.expect(201).json();
        let id = app.send_message(json!({"to": NUMBER, "text": "x", "scheduledAt": "2026-01-02T00:00:00Z"})).await;
        let path = format!("/v1/contacts/{}/channels/{}", text(&contact["id"]), text(&contact["channels"][0]["id"]));
        app.request("DELETE", &path, None).await.expect(204);
        app.post("/v1/suppressions", json!({"identifier": NUMBER})).await.expect(201);
        app.clock.advance(Duration::from_secs(1));
        let due = nuncio_domain::Timestamp::parse("2026-01-02T00:00:00Z").expect("a time").since(app.node.core.ids().clock.now());
        app.advance(due + Duration::from_secs(1)).await;
        assert_eq!(app.message(&id).await["errorCode"], "recipient_suppressed");
    }
}

// holds: conversation.new
#[tokio::test]
async fn a_conversation_is_told_when_it_begins() {
    for app in TestApp::on_each().await {
        let told = async |channel: Channel, from: &str| {
            write(&app, channel, from, "hi", None).await;
            let page = app.get("/v1/events?limit=100").await.expect(200).json();
            page["items"].as_array().expect("a page").iter().filter(|e| e["type"] == "conversation.new").cloned().collect::<Vec<_>>()
        };
        let first = told(Channel::Sms, NUMBER).await;
        assert_eq!((first.len(), text(&first[0]["data"]["message"]["text"])), (1, "hi"));
        assert!(first[0]["senderId"].is_string() && first[0]["data"]["message"]["contactId"].is_string(), "{first:?}");
        app.advance(Duration::from_secs(3_600)).await;
        assert_eq!(told(Channel::Sms, NUMBER).await.len(), 1);
        app.advance(Duration::from_secs(86_400 - 1)).await;
        assert_eq!(told(Channel::Sms, NUMBER).await.len(), 1, "silence counts from the newest");
        app.advance(Duration::from_secs(86_400)).await;
        assert_eq!(told(Channel::Sms, NUMBER).await.len(), 2);
        assert_eq!(told(Channel::Whatsapp, NUMBER).await.len(), 3, "another channel");
        assert_eq!(told(Channel::Sms, "+34600111223").await.len(), 4, "somebody else");
    }
}

/// Some gateways give a number as it is dialled in the country of the one that was written to.
// holds: suppressions.stop
#[tokio::test]
async fn a_stop_from_a_national_number_counts() {
    for app in TestApp::on_each().await {
        let sender = crate::webhooks::default_sender(&app).await;
        let spain = json!({"allowedCountries": ["ES"]});
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(spain)).await.expect(200);
        write(&app, Channel::Sms, "600111222", "STOP", None).await;
        assert!(!reaches(&app, NUMBER, "sms").await);
        write(&app, Channel::Sms, "ACME", "STOP", None).await;
        let page = app.get("/v1/messages?direction=inbound").await.expect(200).json();
        assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "a name cannot be answered: {page}");
    }
}

/// Some phones write an accented letter as two characters, and keyboards of East Asia write wide letters.
#[tokio::test]
async fn a_stop_in_other_characters_counts() {
    for app in TestApp::on_each().await {
        for (number, word) in [(NUMBER, "arre\u{302}t"), ("+34600111223", "\u{ff33}\u{ff34}\u{ff2f}\u{ff30}")] {
            let body = json!({"channel": "sms", "from": number, "text": word});
            app.post("/v1/sandbox/inbound", body).await.expect(202);
            app.drain().await;
            assert!(!reaches(&app, number, "sms").await, "{word}");
        }
    }
}

/// People write an address now so, now so, and mail servers deliver to one mailbox.
// holds: suppressions.scope
#[tokio::test]
async fn an_email_address_is_suppressed_in_any_case() {
    for app in TestApp::on_each().await {
        let later = json!({"to": "Ana.Lopez9@shop.org", "text": "x", "subject": "s", "scheduledAt": "2026-01-02T00:00:00Z"});
        let later = app.send_message(later).await;
        let made = app.post("/v1/suppressions", json!({"identifier": "Ana.lopez9@Shop.org"})).await.expect(201).json();
        assert_eq!(made["identifier"], "ana.lopez9@shop.org");
        assert_eq!(app.post("/v1/suppressions", json!({"identifier": "ANA.LOPEZ9@shop.org"})).await.expect(200).json(), made);
        let listed = app.get("/v1/suppressions?identifier=Ana.Lopez9@shop.org").await.expect(200).json();
        assert_eq!(listed["items"], json!([made]));
        let is_suppressed = async |to: &str| {
            let (_, code) = outcome(&app, json!({"to": to, "text": "x", "subject": "s"})).await;
            code == "recipient_suppressed"
        };
        for to in ["ana.lopez9@shop.org", "Ana.Lopez9@shop.org", "ANA.LOPEZ9@SHOP.ORG", "ANA.LOPEZ9@SHOP.ORG"] {
            assert!(is_suppressed(to).await, "{to}");
        }
        let due = nuncio_domain::Timestamp::parse("2026-01-02T00:00:00Z").expect("a time").since(app.node.core.ids().clock.now());
        app.advance(due + Duration::from_secs(1)).await;
        let message = app.message(&later).await;
        assert_eq!(message["errorCode"], "recipient_suppressed", "before the attempt");

        app.request("DELETE", &format!("/v1/contacts/{}", text(&message["contactId"])), None).await.expect(204);
        for to in ["ana.lopez9@shop.org", "Ana.Lopez9@shop.org", "aNA.lopez9@shop.org"] {
            assert!(is_suppressed(to).await, "{to}, of which another spelling was erased");
        }
        write(&app, Channel::Email, "Ben.Ray@shop.org", "STOP", None).await;
        assert!(is_suppressed("ben.ray@shop.org").await);
        write(&app, Channel::Email, "BEN.RAY@shop.org", "START", None).await;
        assert!(!is_suppressed("Ben.Ray@shop.org").await);
    }
}

/// Mail servers write international domains in ASCII.
// holds: suppressions.scope
#[tokio::test]
async fn an_international_address_is_one_recipient() {
    for app in TestApp::on_each().await {
        let is_suppressed = async |to: &str| {
            let (_, code) = outcome(&app, json!({"to": to, "text": "x", "subject": "s"})).await;
            code == "recipient_suppressed"
        };
        write(&app, Channel::Email, "Bo@xn--mnchen-3ya.example", "STOP", None).await;
        assert!(is_suppressed("bo@münchen.example").await);
        let id = app.send_message(json!({"to": "info@München.example", "text": "x", "subject": "s"})).await;
        app.drain().await;
        assert_eq!(app.message(&id).await["to"], "info@münchen.example");
        let bounced = |recipient: &str| ProviderEvent::Bounced {
            tenant: app.tenant(),
            message: id.parse().expect("an id"),
            recipient: Some(recipient.to_owned()),
        };
        app.node.events().push(bounced("other@xn--mnchen-3ya.example"), Duration::ZERO);
        app.drain().await;
        assert!(!is_suppressed("info@münchen.example").await, "one of those behind an alias");
        app.node.events().push(bounced("INFO@xn--mnchen-3ya.example"), Duration::ZERO);
        app.drain().await;
        assert!(is_suppressed("info@xn--mnchen-3ya.example").await);
    }
}
