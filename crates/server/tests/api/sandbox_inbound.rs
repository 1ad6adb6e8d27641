//! `POST /v1/sandbox/inbound`: simulated recipients.

use std::time::Duration;

use nuncio_testkit::{TestApp, TestResponse};
use serde_json::{Value, json};

const PATH: &str = "/v1/sandbox/inbound";
const NUMBER: &str = "+34600111222";
/// Recipients by channel.
const PEOPLE: [(&str, &str); 5] =
    [("sms", NUMBER), ("whatsapp", NUMBER), ("telegram", "4711"), ("instagram", "4711"), ("email", "ada@gmail.com")];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

async fn play(app: &TestApp, body: Value) -> Value {
    let message = app.post(PATH, body).await.expect(202).json()["message"].clone();
    app.drain().await;
    message
}

/// Returns the paths in a 400.
async fn refused(app: &TestApp, body: Value) -> Vec<String> {
    let answer = app.post(PATH, body).await.expect(400).json();
    let errors = answer["details"]["errors"].as_array().cloned().unwrap_or_default();
    errors.iter().map(|e| text(&e["path"]).to_owned()).collect()
}

/// Returns the types of all events, oldest first.
async fn events(app: &TestApp) -> Vec<String> {
    let page = app.get("/v1/events?limit=100").await.expect(200).json();
    page["items"].as_array().expect("items").iter().rev().map(|e| text(&e["type"]).to_owned()).collect()
}

async fn send(app: &TestApp, body: Value) -> String {
    let id = app.send_message(body).await;
    app.drain().await;
    id
}

/// Returns a message for a channel.
fn to(channel: &str, to: &str) -> Value {
    let mut body = json!({"to": to, "channel": channel, "text": "hello", "fallbackEnabled": false});
    if channel == "email" {
        body["subject"] = "s".into();
    }
    body
}

// holds: sandbox.inbound
#[tokio::test]
async fn a_text_comes_in_as_a_provider_reports_it() {
    for app in TestApp::on_each().await {
        for (channel, from) in PEOPLE {
            let message = play(&app, json!({"channel": channel, "from": from, "text": "Where is my order?"})).await;
            assert_eq!(message, app.message(text(&message["id"])).await);
            let seen = (text(&message["status"]), text(&message["direction"]), text(&message["channel"]), text(&message["from"]));
            assert_eq!(seen, ("received", "inbound", channel, from));
            assert_eq!((text(&message["text"]), text(&message["environment"])), ("Where is my order?", "test"));
            let contact = app.get(&format!("/v1/contacts/{}", text(&message["contactId"]))).await.expect(200).json();
            let channels = contact["channels"].as_array().expect("channels");
            let own = channels.iter().find(|c| c["channel"] == channel).expect("the channel");
            assert_eq!((&own["identifier"], &own["verified"], own["lastInboundAt"].is_string()), (&json!(from), &json!(true), true));
        }
        let told = events(&app).await;
        for kind in ["message.inbound", "conversation.new"] {
            assert_eq!(told.iter().filter(|told| *told == kind).count(), PEOPLE.len(), "{told:?}");
        }
    }
}

// holds: sandbox.inbound
#[tokio::test]
async fn words_of_compliance_work() {
    for app in TestApp::on_each().await {
        for (channel, from) in [("sms", NUMBER), ("telegram", "4711"), ("email", "ada@gmail.com")] {
            let status = async || {
                let id = send(&app, to(channel, from)).await;
                let message = app.message(&id).await;
                text(message.get("errorCode").unwrap_or(&message["status"])).to_owned()
            };
            for (word, then) in [("STOP", "recipient_suppressed"), ("START", "delivered"), ("HELP", "delivered")] {
                let inbound = play(&app, json!({"channel": channel, "from": from, "text": word})).await;
                let all = app.get("/v1/messages?limit=100").await.expect(200).json();
                let reason = format!("the answer to {}", text(&inbound["id"]));
                let answer = all["items"].as_array().expect("items").iter().find(|m| m["routing"]["reason"] == reason.as_str());
                assert_eq!(answer.map(|a| text(&a["status"])), Some("delivered"), "{channel} {word}");
                assert_eq!(status().await, then, "{channel} after {word}");
                app.advance(Duration::from_secs(61)).await;
            }
        }
        assert_eq!(events(&app).await.iter().filter(|kind| *kind == "contact.opted_out").count(), 3);
    }
}

// holds: suppressions.stop
#[tokio::test]
async fn a_confirmation_comes_from_the_number_that_was_written_to() {
    for app in TestApp::on_each().await {
        let sender = app.post("/v1/senders", json!({"name": "Desk", "phoneNumber": "+34911222333"})).await.expect(201).json();
        let free = "+12025550142";
        let number = app.post("/v1/phone-numbers", json!({"phoneNumber": free})).await.expect(201).json();
        let path = format!("/v1/phone-numbers/{}", text(&number["phoneNumber"]["id"]));
        app.request("PATCH", &path, Some(json!({"senderId": sender["id"]}))).await.expect(200);
        for (from, to) in [("+34600111201", "+34911222333"), ("+34600111202", free)] {
            play(&app, json!({"channel": "sms", "from": from, "to": to, "text": "STOP"})).await;
            let answer =
                app.get(&format!("/v1/messages?direction=outbound&to=%2B{}", &from[1..])).await.expect(200).json()["items"][0].clone();
            assert_eq!((&answer["from"], &answer["senderId"]), (&json!(to), &sender["id"]));
        }
    }
}

// holds: suppressions.stop
#[tokio::test]
async fn replies_to_strangers_are_few() {
    for app in TestApp::on_each().await {
        let replies = async |number: &str| {
            let sent = app.get(&format!("/v1/messages?limit=100&direction=outbound&to={}", number.replace('+', "%2B"))).await.expect(200);
            sent.json()["items"].as_array().expect("items").len()
        };
        for n in 0..24 {
            play(&app, json!({"channel": "sms", "from": NUMBER, "text": if n % 2 == 0 { "STOP" } else { "START" }})).await;
            app.advance(Duration::from_secs(1)).await;
        }
        assert_eq!(replies(NUMBER).await, 10);
        app.advance(Duration::from_secs(86_400)).await;
        play(&app, json!({"channel": "sms", "from": NUMBER, "text": "STOP"})).await;
        assert_eq!(replies(NUMBER).await, 11, "another day");

        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"allowedCountries": ["ES"]}))).await.expect(200);
        play(&app, json!({"channel": "sms", "from": "+447700900123", "text": "STOP"})).await;
        assert_eq!(replies("+447700900123").await, 0, "a country that the sender does not write to");
        let suppressed = app.get("/v1/suppressions").await.expect(200).json();
        assert!(suppressed["items"].as_array().expect("items").iter().any(|s| s["identifier"] == "+447700900123"), "{suppressed}");
    }
}

// holds: sandbox.inbound
#[tokio::test]
async fn a_tap_names_what_was_tapped() {
    let app = TestApp::start().await;
    let choices = |channel: &str, person: &str, yes: &str| {
        let buttons = json!([{"id": yes, "title": "Yes"}, {"id": "no", "title": "No"}]);
        json!({"to": person, "channel": channel, "messageType": "buttons", "text": "?", "content": {"buttons": buttons}, "fallbackEnabled": false})
    };
    let list = |channel: &str, person: &str| {
        let sections = json!([{"title": "When", "rows": [{"id": "am", "title": "Morning"}, {"id": "pm", "title": "Noon"}]}]);
        let content = json!({"listButton": "Pick", "sections": sections});
        json!({"to": person, "channel": channel, "messageType": "list", "text": "?", "content": content, "fallbackEnabled": false})
    };
    for (channel, person) in [("whatsapp", NUMBER), ("telegram", "4711"), ("instagram", "4711")] {
        let tap = |id: &str| json!({"channel": channel, "from": person, "buttonId": id});
        assert_eq!(refused(&app, tap("yes")).await, ["buttonId"], "nothing was sent");
        send(&app, choices(channel, person, "yes")).await;
        send(&app, to(channel, person)).await;
        let tapped = play(&app, tap("yes")).await;
        assert_eq!((text(&tapped["text"]), &tapped["content"]), ("Yes", &json!({"buttons": [{"id": "yes", "title": "Yes"}]})), "{channel}");
        let wrong = app.post(PATH, tap("maybe")).await.expect(400).json();
        let told = text(&wrong["message"]);
        assert!(told.contains("\"maybe\"") && told.ends_with("there are yes, no"), "{told}");
        send(&app, list(channel, person)).await;
        let row = play(&app, tap("pm")).await;
        let wanted = match channel {
            "whatsapp" => json!({"sections": [{"rows": [{"id": "pm", "title": "Noon"}]}]}),
            _ => json!({"buttons": [{"id": "pm", "title": "Noon"}]}),
        };
        assert_eq!((text(&row["text"]), &row["content"]), ("Noon", &wanted), "{channel}");
        // Other recipients do not have this message, nor does the same one on another channel.
        let other = if channel == "whatsapp" { "+34600111333" } else { "4712" };
        assert_eq!(refused(&app, json!({"channel": channel, "from": other, "buttonId": "yes"})).await, ["buttonId"]);
        // A message can be named.
        let named = send(&app, choices(channel, person, "ja")).await;
        let tap = |id: &str| json!({"channel": channel, "from": person, "buttonId": id, "messageId": named});
        play(&app, tap("ja")).await;
        assert_eq!(refused(&app, tap("yes")).await, ["buttonId"], "that is of an earlier message");
    }
}

#[tokio::test]
async fn a_quick_reply_of_a_template_is_tapped_by_its_text() {
    let app = TestApp::start().await;
    let buttons = json!([{"type": "quick_reply", "text": "Confirm"}, {"type": "url", "text": "Open", "url": "https://example.com/x"}]);
    let template = json!({"name": "visit", "language": "en", "body": "Coming?", "buttons": buttons});
    let id = app.post("/v1/templates", template).await.expect(201).json()["id"].clone();
    let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].clone();
    app.post(&format!("/v1/templates/{}/submit", text(&id)), json!({"senderId": sender})).await.expect(202);
    app.drain().await;
    send(&app, json!({"to": NUMBER, "channel": "whatsapp", "messageType": "template", "content": {"templateId": id}})).await;
    let tapped = play(&app, json!({"channel": "whatsapp", "from": NUMBER, "buttonId": "Confirm"})).await;
    assert_eq!((text(&tapped["text"]), text(&tapped["content"]["buttons"][0]["id"])), ("Confirm", "Confirm"));
    assert_eq!(refused(&app, json!({"channel": "whatsapp", "from": NUMBER, "buttonId": "Open"})).await, ["buttonId"], "it opens a page");
}

// holds: sandbox.inbound
#[tokio::test]
async fn a_reaction_names_our_message() {
    for app in TestApp::on_each().await {
        for (channel, person) in [("whatsapp", NUMBER), ("telegram", "4711"), ("instagram", "4711")] {
            let react = |emoji: &str| json!({"channel": channel, "from": person, "reaction": emoji});
            assert_eq!(refused(&app, react("👍")).await, ["reaction"], "there is nothing to react to");
            let first = send(&app, to(channel, person)).await;
            app.clock.advance(Duration::from_millis(1));
            let second = send(&app, to(channel, person)).await;
            app.clock.advance(Duration::from_millis(1));
            // Nobody reacts to a reaction.
            let ours = app.post(&format!("/v1/messages/{second}/reactions"), json!({"emoji": "👍"})).await.expect(202).json();
            app.drain().await;
            let to_it = format!("/v1/messages/{}/reactions", text(&ours["message"]["id"]));
            app.post(&to_it, json!({"emoji": "👍"})).await.expect(400);
            for (emoji, named, about) in [("👍", None, &second), ("", None, &second), ("❤️", Some(&first), &first)] {
                let mut body = react(emoji);
                if let Some(named) = named {
                    body["messageId"] = json!(named);
                }
                let inbound = play(&app, body).await;
                assert_eq!(inbound["messageType"], "reaction");
                assert_eq!(inbound["content"], json!({"emoji": emoji, "reactToMessageId": about}), "{channel}");
            }
        }
    }
}

// holds: sandbox.inbound
#[tokio::test]
async fn a_message_is_read() {
    for app in TestApp::on_each().await {
        for (channel, person) in [("whatsapp", NUMBER), ("instagram", "4711")] {
            let id = send(&app, to(channel, person)).await;
            assert_eq!(app.message(&id).await["status"], "delivered");
            for _ in 0..2 {
                let read = play(&app, json!({"channel": channel, "from": person, "read": id})).await;
                assert_eq!((text(&read["id"]), text(&read["status"]), read["readAt"].is_string()), (id.as_str(), "read", true));
            }
        }
        assert_eq!(events(&app).await.iter().filter(|kind| *kind == "message.read").count(), 2, "reading twice is reading once");
    }
}

#[tokio::test]
async fn only_what_somebody_has_can_be_read() {
    let app = TestApp::start().await;
    let theirs = send(&app, to("whatsapp", NUMBER)).await;
    let by_sms = send(&app, to("sms", NUMBER)).await;
    let inbound = play(&app, json!({"channel": "whatsapp", "from": NUMBER, "text": "hi"})).await;
    let read = |channel: &str, from: &str, id: &str| json!({"channel": channel, "from": from, "read": id});
    assert_eq!(refused(&app, read("whatsapp", "+34600111333", &theirs)).await, ["read"], "somebody else's");
    assert_eq!(refused(&app, read("whatsapp", NUMBER, &by_sms)).await, ["read"], "another channel's");
    assert_eq!(refused(&app, read("whatsapp", NUMBER, text(&inbound["id"]))).await, ["read"], "their own");
    assert_eq!(refused(&app, read("sms", NUMBER, &by_sms)).await, ["read"], "SMS reports no reading");
    for unknown in ["msg_00000000000000000000000000", "nonsense"] {
        app.post(PATH, read("whatsapp", NUMBER, unknown)).await.expect(404);
    }
    let failed = send(&app, to("whatsapp", "+12125550001")).await;
    let answer = app.post(PATH, read("whatsapp", "+12125550001", &failed)).await.expect(400).json();
    assert_eq!(answer["details"], json!({"currentStatus": "failed", "allowedFrom": ["sent", "delivered", "read"]}));
}

// holds: sandbox.inbound
#[tokio::test]
async fn it_comes_to_the_sender_that_is_written_to() {
    let app = TestApp::start().await;
    let default = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].clone();
    let desk = app.post("/v1/senders", json!({"name": "Desk", "phoneNumber": "+34600999888"})).await.expect(201).json()["id"].clone();
    let number = app.post("/v1/phone-numbers", json!({"phoneNumber": "+12025550142"})).await.expect(201).json();
    let path = format!("/v1/phone-numbers/{}", text(&number["phoneNumber"]["id"]));
    app.request("PATCH", &path, Some(json!({"senderId": desk}))).await.expect(200);
    let write = |to: Value| json!({"channel": "sms", "from": NUMBER, "to": to, "text": "hi"});
    for (to, sender, number) in [
        (Value::Null, &default, ""),
        (default.clone(), &default, ""),
        (desk.clone(), &desk, "+34600999888"),
        (json!("+34600999888"), &desk, "+34600999888"),
        (json!("+12025550142"), &desk, "+12025550142"),
    ] {
        let message = play(&app, write(to.clone())).await;
        assert_eq!((&message["senderId"], text(&message["to"])), (sender, number), "{to}");
    }
    for unknown in ["+34600999777", "+12025550143", "snd_00000000000000000000000000", "desk@example.com"] {
        assert_eq!(refused(&app, write(json!(unknown))).await, ["to"], "{unknown}");
    }
    // The message determines who reads it or reacts to it.
    let auth = format!("Bearer {}", app.test_key);
    let headers = [("authorization", auth.as_str()), ("service-sender", text(&desk))];
    let sent = app.send("POST", "/v1/messages", &headers, Some(to("whatsapp", NUMBER))).await.expect(202).json();
    app.drain().await;
    let id = &sent["message"]["id"];
    play(&app, json!({"channel": "whatsapp", "from": NUMBER, "read": id})).await;
    let reaction = json!({"channel": "whatsapp", "from": NUMBER, "reaction": "👍", "messageId": id});
    assert_eq!(play(&app, reaction).await["senderId"], desk);
    assert_eq!(refused(&app, json!({"channel": "whatsapp", "from": NUMBER, "to": default, "read": id})).await, ["read"]);
    assert_eq!(
        refused(&app, json!({"channel": "whatsapp", "from": NUMBER, "reaction": "👍"})).await,
        ["reaction"],
        "the default sender sent nothing"
    );
    app.request("DELETE", &format!("/v1/senders/{}/channels/sms", text(&desk)), None).await.expect(204);
    let gone = app.post(PATH, write(desk)).await.expect(400).json();
    assert_eq!(gone["code"], "sender_not_configured");
}

// holds: sandbox.inbound
#[tokio::test]
async fn a_live_key_plays_nothing() {
    let app = TestApp::start().await;
    let body = json!({"channel": "sms", "from": NUMBER, "text": "hi"});
    let answer = app.with_key(&app.live_key, "POST", PATH, Some(body)).await.expect(400).json();
    assert_eq!(text(&answer["code"]), "invalid_request");
    assert!(text(&answer["message"]).contains("live key") && text(&answer["message"]).contains("svc_test_"), "{answer}");
    let live = app.with_key(&app.live_key, "GET", "/v1/messages", None).await.expect(200).json();
    assert_eq!(live["items"], json!([]));
}

#[tokio::test]
async fn every_fault_is_named() {
    let app = TestApp::start().await;
    let with = |fields: Value| {
        let mut body = json!({"channel": "whatsapp", "from": NUMBER});
        body.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("an object"));
        body
    };
    for (fields, paths) in [
        (json!({}), vec!["text"]),
        (json!({"text": "x", "reaction": "👍"}), vec!["reaction"]),
        (json!({"text": "x", "buttonId": "x", "reaction": "👍", "read": "x"}), vec!["buttonId", "reaction", "read"]),
        (json!({"text": "x", "from": "4711"}), vec!["from"]),
        (json!({"text": "x", "from": "nobody", "channel": "telegram"}), vec!["from"]),
        (json!({"text": "x", "channel": "sms_oneway"}), vec!["channel"]),
        (json!({"channel": "voice", "from": "ada@gmail.com"}), vec!["channel", "from", "text"]),
        (json!({"buttonId": "x", "channel": "sms"}), vec!["buttonId"]),
        (json!({"reaction": "👍", "channel": "email", "from": "ada@gmail.com"}), vec!["reaction"]),
        (json!({"text": "x", "messageId": "msg_00000000000000000000000000"}), vec!["messageId"]),
        (json!({"text": "", "extra": 1}), vec!["extra", "text"]),
        (json!({"text": "", "to": ""}), vec!["text", "to"]),
        (json!({"text": "x".repeat(10_001)}), vec!["text"]),
        (json!({"buttonId": "x".repeat(257)}), vec!["buttonId"]),
        (json!({"reaction": "yes"}), vec!["reaction"]),
    ] {
        let mut found = refused(&app, with(fields.clone())).await;
        let mut paths = paths;
        found.sort();
        paths.sort_unstable();
        assert_eq!(found, paths, "{fields}");
    }
    assert_eq!(events(&app).await, Vec::<String>::new(), "nothing came in");
}

// holds: sandbox.inbound
#[tokio::test]
async fn a_key_plays_once() {
    for app in TestApp::on_each().await {
        let auth = format!("Bearer {}", app.test_key);
        let keyed = async |key: &str, body: Value| -> TestResponse {
            app.send("POST", PATH, &[("authorization", &auth), ("idempotency-key", key)], Some(body)).await
        };
        let sent = send(&app, to("whatsapp", NUMBER)).await;
        let other = send(&app, to("whatsapp", NUMBER)).await;
        for (key, body, different) in [
            ("w", json!({"channel": "sms", "from": NUMBER, "text": "hi"}), json!({"channel": "sms", "from": NUMBER, "text": "ho"})),
            (
                "r",
                json!({"channel": "whatsapp", "from": NUMBER, "read": sent}),
                json!({"channel": "whatsapp", "from": NUMBER, "read": other}),
            ),
        ] {
            let first = keyed(key, body.clone()).await.expect(202).json();
            app.drain().await;
            let sender = first["message"]["senderId"].clone();
            let mut written_out = body.clone();
            written_out["to"] = sender;
            for same in [body, written_out] {
                let repeat = keyed(key, same).await.expect(409).json();
                assert_eq!((text(&repeat["code"]), &repeat["message"]["id"]), ("idempotency_conflict", &first["message"]["id"]));
            }
            let reused = keyed(key, different).await.expect(409).json();
            assert_eq!((text(&reused["code"]), &reused["message"]["id"]), ("idempotency_key_reused", &first["message"]["id"]));
        }
        keyed("x", json!({"channel": "sms", "from": NUMBER})).await.expect(400);
        keyed("x", json!({"channel": "sms", "from": NUMBER, "text": "a refusal keeps the key"})).await.expect(202);
        app.drain().await;
        assert_eq!(app.message(&other).await["status"], "delivered");
        assert_eq!(events(&app).await.iter().filter(|kind| *kind == "message.inbound").count(), 2);
    }
}

#[tokio::test]
async fn one_of_many_with_a_key_comes_in() {
    for app in TestApp::on_each().await {
        let body = json!({"channel": "sms", "from": NUMBER, "text": "hi"});
        let all = super::at_once((0..8).map(|_| app.once("k", PATH, body.clone())).collect()).await;
        let mut statuses: Vec<_> = all.iter().map(|answer| answer.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 409, 409, 409, 409, 409, 409, 409]);
        app.drain().await;
        assert_eq!(events(&app).await.iter().filter(|kind| *kind == "message.inbound").count(), 1);
    }
}

/// "Cancel" cancels what the message was about.
// holds: suppressions.stop
#[tokio::test]
async fn a_tap_on_cancel_unsubscribes_nobody() {
    for app in TestApp::on_each().await {
        let buttons = json!([{"id": "cancel", "title": "Cancel"}, {"id": "stop", "title": "Stop"}]);
        let content = json!({"buttons": buttons});
        send(&app, json!({"to": NUMBER, "channel": "whatsapp", "messageType": "buttons", "text": "?", "content": content})).await;
        let suppressed = async || app.get("/v1/suppressions").await.expect(200).json()["items"].as_array().map_or(0, Vec::len);
        for (id, suppressions) in [("cancel", 0), ("stop", 1)] {
            play(&app, json!({"channel": "whatsapp", "from": NUMBER, "buttonId": id})).await;
            app.drain().await;
            assert_eq!(suppressed().await, suppressions, "{id}");
        }
    }
}
