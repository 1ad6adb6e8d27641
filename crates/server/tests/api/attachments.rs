//! Attachments of messages, and reactions to them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_domain::Channel;
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

use crate::contacts::write;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

// holds: messages.attachments.list
#[tokio::test]
async fn attachments_are_listed_with_links_that_open_them_for_a_while() {
    for app in TestApp::on_each().await {
        let large = "x".repeat(400 * 1024);
        let id = app
            .send_message(json!({
                "to": "ada@example.org", "subject": "s", "text": "x",
                "attachments": [
                    {"filename": "Straße \"1\".html", "content": STANDARD.encode("<script>")},
                    {"filename": "large.txt", "content": STANDARD.encode(&large), "content_id": "pic"},
                    {"filename": "far.pdf", "path": "https://files.example.com/far.pdf"},
                ],
            }))
            .await;
        let items = app.get(&format!("/v1/messages/{id}/attachments")).await.expect(200).json()["items"].clone();
        let shown: Vec<_> =
            (0..3).map(|n| (&items[n]["mimeType"], &items[n]["size"], &items[n]["contentId"], &items[n]["isInline"])).collect();
        assert_eq!(
            shown,
            [
                (&json!("text/html"), &json!(8), &Value::Null, &json!(false)),
                (&json!("text/plain"), &json!(large.len()), &json!("pic"), &json!(true)),
                (&json!("application/pdf"), &Value::Null, &Value::Null, &json!(false)),
            ]
        );
        let names = ["Straße \"1\".html", "large.txt", "far.pdf"];
        for (item, name) in items.as_array().expect("items").iter().zip(names) {
            let fields: Vec<_> = item.as_object().expect("an item").keys().map(String::as_str).collect();
            assert_eq!(fields, ["contentId", "createdAt", "downloadUrl", "filename", "id", "isInline", "mimeType", "size"]);
            assert_eq!(item["filename"], name);
        }
        assert!(items[2]["downloadUrl"].is_null() && text(&items[0]["id"]).starts_with("att_") && items[0]["createdAt"].is_string());
        let open = async |link: &Value| app.send("GET", text(link), &[], None).await;
        let first = open(&items[0]["downloadUrl"]).await.expect(200);
        assert_eq!((first.text.as_str(), first.header("content-type")), ("<script>", "text/html"));
        assert_eq!(first.header("content-disposition"), "attachment; filename*=UTF-8''Stra%C3%9Fe%20%221%22.html");
        assert_eq!(first.header("content-security-policy"), "default-src 'none'; sandbox");
        assert_eq!((first.header("x-content-type-options"), first.header("cache-control")), ("nosniff", "private, no-store"));
        assert_eq!(open(&items[1]["downloadUrl"]).await.expect(200).text, large);
        let mut forged = text(&items[0]["downloadUrl"]).to_owned();
        assert!(forged.starts_with("https://nuncio.example/attachments/"), "{forged}");
        forged.replace_range(60..61, if &forged[60..61] == "A" { "B" } else { "A" });
        for bad in [forged.as_str(), "/attachments/x", "/attachments/"] {
            app.send("GET", bad, &[], None).await.expect(404);
        }
        app.clock.advance(Duration::from_secs(15 * 60 - 1));
        open(&items[0]["downloadUrl"]).await.expect(200);
        app.clock.advance(Duration::from_secs(1));
        open(&items[0]["downloadUrl"]).await.expect(404);
        app.node.tick().await.expect("a tick");
        let plain = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        assert_eq!(app.get(&format!("/v1/messages/{plain}/attachments")).await.expect(200).json(), json!({"items": []}));
        app.get("/v1/messages/msg_nonsense/attachments").await.expect(404);
    }
}

#[tokio::test]
async fn large_downloads_share_the_budget_of_large_bodies() {
    let options = nuncio_testkit::Options { max_in_flight_bytes: 4_000_000, ..nuncio_testkit::Options::default() };
    let app = TestApp::with(Backend::Sqlite, options).await;
    let content = STANDARD.encode("x".repeat(600 * 1024));
    let body = json!({"to": "a@example.org", "subject": "s", "text": "x", "attachments": [{"filename": "a.txt", "content": content}]});
    let id = app.send_message(body).await;
    let items = app.get(&format!("/v1/messages/{id}/attachments")).await.expect(200).json()["items"].clone();
    let link = text(&items[0]["downloadUrl"]);
    let held = app.open("GET", link, &[], Vec::new()).await;
    assert_eq!(held.status(), 200);
    app.send("GET", link, &[], None).await.expect(503);
    drop(held);
    app.send("GET", link, &[], None).await.expect(200);
}

// holds: messages.reactions
#[tokio::test]
async fn a_reaction_goes_back_on_the_channel() {
    for app in TestApp::on_each().await {
        let id = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
        app.drain().await;
        let path = format!("/v1/messages/{id}/reactions");
        let made = app.once("k", &path, json!({"emoji": "\u{1F44D}"})).await.expect(202).json()["message"].clone();
        assert_eq!((text(&made["messageType"]), text(&made["channel"]), text(&made["to"])), ("reaction", "whatsapp", "+34600111222"));
        assert_eq!(made["content"], json!({"emoji": "\u{1F44D}", "reactToMessageId": id}));
        app.drain().await;
        assert_eq!(app.message(text(&made["id"])).await["status"], "delivered");
        let again = app.once("k", &path, json!({"emoji": "\u{1F44D}"})).await.expect(409).json();
        assert_eq!((text(&again["code"]), &again["message"]["id"]), ("idempotency_conflict", &made["id"]));
        let other = app.once("k", &path, json!({"emoji": "👎"})).await.expect(409).json();
        assert_eq!(text(&other["code"]), "idempotency_key_reused");
        // For a message, the same key is a different one.
        let body = json!({"to": "+34600111222", "text": "x", "idempotencyKey": "k"});
        let message = app.post("/v1/messages", body.clone()).await.expect(202).json()["message"]["id"].clone();
        assert_eq!(app.post("/v1/messages", body).await.expect(409).json()["message"]["id"], message);

        write(&app, Channel::Telegram, "42", "hi", None).await;
        let inbound = app.get("/v1/messages?limit=1").await.expect(200).json()["items"][0]["id"].clone();
        let path = format!("/v1/messages/{}/reactions", text(&inbound));
        let made = app.post(&path, json!({"emoji": ""})).await.expect(202).json()["message"].clone();
        assert_eq!((text(&made["to"]), text(&made["channel"])), ("42", "telegram"));
    }
}

#[tokio::test]
async fn keys_of_reactions_are_forgotten_after_their_message_is_final() {
    for app in TestApp::on_each().await {
        let id = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
        let waiting = json!({"to": "+34600111222", "text": "x", "idempotencyKey": "k", "scheduledAt": "2026-01-20T00:00:00Z"});
        app.drain().await;
        app.post("/v1/messages", waiting.clone()).await.expect(202);
        let react = async || app.once("k", &format!("/v1/messages/{id}/reactions"), json!({"emoji": "👎"})).await;
        react().await.expect(202);
        app.drain().await;
        app.advance(Duration::from_secs(7 * 86_400 + 1)).await;
        let mut tx = app.store().begin().await.expect("a transaction");
        assert_eq!(tx.purge_idempotency_keys(app.node.core.ids().clock.now(), 10).await.expect("purged"), 2, "one stays");
        tx.commit().await.expect("written");
        app.post("/v1/messages", waiting).await.expect(409);
        react().await.expect(202);
    }
}

// holds: messages.reactions
#[tokio::test]
async fn what_cannot_be_reacted_to_is_refused() {
    let app = TestApp::start().await;
    let sms = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    app.drain().await;
    let react = async |id: &str, body: Value| app.post(&format!("/v1/messages/{id}/reactions"), body).await;
    let answer = react(&sms, json!({"emoji": "👎"})).await.expect(400).json();
    assert!(text(&answer["message"]).contains("sms does not support reactions"), "{answer}");
    let scheduled =
        app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp", "scheduledAt": "2026-01-20T00:00:00Z"})).await;
    let answer = react(&scheduled, json!({"emoji": "👎"})).await.expect(400).json();
    assert_eq!((text(&answer["details"]["currentStatus"]), &answer["details"]["allowedFrom"][0]), ("scheduled", &json!("sent")));
    react("msg_nonsense", json!({"emoji": "👎"})).await.expect(404);
    let sent = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
    app.drain().await;
    for body in [json!({}), json!({"emoji": "x".repeat(17)}), json!({"emoji": "👎", "to": "y"})] {
        react(&sent, body).await.expect(400);
    }
}

/// Provider ids of messages are only valid in one conversation.
// holds: messages.reactions.target
#[tokio::test]
async fn a_reaction_stays_in_the_conversation_of_its_message() {
    for app in TestApp::on_each().await {
        let whatsapp = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
        let telegram = app.send_message(json!({"to": "42", "text": "x", "channel": "telegram"})).await;
        let failed = app.send_message(json!({"to": "+12125550001", "text": "x", "channel": "whatsapp", "fallbackEnabled": false})).await;
        app.drain().await;
        write(&app, Channel::Telegram, "42", "hi", None).await;
        let inbound = app.get("/v1/messages?limit=1").await.expect(200).json()["items"][0]["id"].clone();
        let live = app.node.core.ids().next::<nuncio_domain::MessageId>().to_string();
        let body = |to: &str, channel: &str, target: &str| json!({"to": to, "channel": channel, "messageType": "reaction", "content": {"emoji": "👍", "reactToMessageId": target}});
        let before = app.get("/v1/messages?limit=100").await.json()["items"].as_array().map(Vec::len);
        for (to, channel, target, status) in [
            ("+34600111222", "whatsapp", live.as_str(), 404),
            ("+34600111222", "whatsapp", "wamid.HBgLMzQ2", 404),
            ("43", "telegram", telegram.as_str(), 400),
            ("42", "telegram", whatsapp.as_str(), 400),
            ("+34600111333", "whatsapp", whatsapp.as_str(), 400),
            ("42", "instagram", telegram.as_str(), 400),
        ] {
            for path in ["/v1/messages", "/v1/messages?dryRun=true"] {
                let refused = app.post(path, body(to, channel, target)).await.expect(status).json();
                assert_eq!(refused["details"]["errors"][0]["path"], "content.reactToMessageId", "{target}: {refused}");
            }
        }
        let refused = app.post("/v1/messages", body("+12125550001", "whatsapp", &failed)).await.expect(400).json();
        assert_eq!(refused["details"]["currentStatus"], "failed", "{refused}");
        assert_eq!(app.get("/v1/messages?limit=100").await.json()["items"].as_array().map(Vec::len), before, "nothing was sent");
        for (to, channel, target) in
            [("+34600111222", "whatsapp", whatsapp.as_str()), ("42", "telegram", telegram.as_str()), ("42", "telegram", text(&inbound))]
        {
            app.post("/v1/messages", body(to, channel, target)).await.expect(202);
        }
        let other = app.post("/v1/senders", json!({"name": "Other"})).await.expect(201).json()["id"].clone();
        let auth = format!("Bearer {}", app.test_key);
        let headers = [("authorization", auth.as_str()), ("service-sender", text(&other))];
        let by_another = app.send("POST", "/v1/messages", &headers, Some(body("+34600111222", "whatsapp", &whatsapp))).await.expect(400);
        assert_eq!(by_another.json()["details"]["errors"][0]["path"], "content.reactToMessageId");
    }
}

// holds: messages.reactions.emoji
#[tokio::test]
async fn a_reaction_is_one_emoji() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
    app.drain().await;
    let react = async |emoji: &str| {
        let direct = app.post(&format!("/v1/messages/{id}/reactions"), json!({"emoji": emoji})).await;
        let content = json!({"emoji": emoji, "reactToMessageId": id});
        let body = json!({"to": "+34600111222", "channel": "whatsapp", "messageType": "reaction", "content": content});
        (direct, app.post("/v1/messages", body).await)
    };
    for emoji in ["👍", "❤", "❤️", "👍🏽", "👩‍👩‍👧‍👦", "🇪🇸", "1️⃣", ""] {
        let (direct, message) = react(emoji).await;
        direct.expect(202);
        message.expect(202);
    }
    for emoji in ["x", "ok", "👍👍", "👍 ", " ", "1", "🇪", "👍x", "\u{200d}"] {
        let (direct, message) = react(emoji).await;
        assert_eq!(direct.expect(400).json()["details"]["errors"][0]["path"], "emoji", "{emoji:?}");
        assert_eq!(message.expect(400).json()["details"]["errors"][0]["path"], "content.emoji", "{emoji:?}");
    }
}
