//! What a key sees of resources that it may not read, and what it may set.

use nuncio_domain::Environment;
use nuncio_testkit::{TestApp, TestResponse};
use serde_json::{Value, json};

use crate::authz::stock;

async fn ask(app: &TestApp, key: &str, method: &str, path: &str, body: Option<Value>) -> TestResponse {
    app.send(method, path, &[("authorization", &format!("Bearer {key}")), ("idempotency-key", "k")], body).await
}

/// Returns the names of an object's members.
fn members(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

// holds: auth.read, messages.idempotency
#[tokio::test]
async fn a_repeat_shows_no_more_than_the_key_may_read() {
    let app = TestApp::start().await;
    let message = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
    app.drain().await;
    let contact = app.get("/v1/contacts").await.json()["items"][0]["id"].as_str().expect("an id").to_owned();
    let draft = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x"})).await.expect(201).json();
    let broadcast = draft["broadcast"]["id"].as_str().expect("an id").to_owned();
    let rows = [
        ("messages:send", "messages:read", "message", "/v1/messages".to_owned(), json!({"to": "+34600111222", "text": "secret"})),
        ("messages:send", "messages:read", "message", format!("/v1/messages/{message}/reactions"), json!({"emoji": "👍"})),
        (
            "contacts:write",
            "contacts:read",
            "contact",
            "/v1/contacts".to_owned(),
            json!({"channels": [{"channel": "sms", "identifier": "+34600111333"}]}),
        ),
        (
            "contacts:write",
            "contacts:read",
            "channel",
            format!("/v1/contacts/{contact}/channels"),
            json!({"channel": "email", "identifier": "a@example.org"}),
        ),
        ("contacts:write", "contacts:read", "suppression", "/v1/suppressions".to_owned(), json!({"identifier": "b@example.org"})),
        (
            "templates:write",
            "templates:read",
            "template",
            "/v1/templates".to_owned(),
            json!({"name": "secret", "language": "en", "body": "x"}),
        ),
        (
            "broadcasts:write",
            "broadcasts:read",
            "broadcast",
            "/v1/broadcasts".to_owned(),
            json!({"name": "secret", "channel": "sms", "text": "x"}),
        ),
        (
            "broadcasts:write",
            "broadcasts:read",
            "broadcast",
            format!("/v1/broadcasts/{broadcast}/contacts"),
            json!({"contacts": [{"recipient": "+34600111222"}]}),
        ),
        ("invitations:write", "invitations:read", "invitation", "/v1/invitations".to_owned(), json!({"clientName": "secret"})),
        ("senders:write", "senders:read", "sender", "/v1/senders".to_owned(), json!({"name": "secret"})),
        (
            "numbers:write",
            "numbers:read",
            "phoneNumber",
            "/v1/phone-numbers".to_owned(),
            json!({"phoneNumber": stock(&app).await, "name": "secret"}),
        ),
    ];
    for (write, read, name, path, body) in rows {
        let key = app.key(Environment::Test, &[write]).await;
        let made = ask(&app, &key, "POST", &path, Some(body.clone())).await;
        assert!(made.status.is_success(), "{path}: {}", made.text);
        let repeat = ask(&app, &key, "POST", &path, Some(body.clone())).await.expect(409);
        let shown = repeat.json()[name].clone();
        assert!(shown["id"].is_string() && members(&shown).iter().all(|name| ["id", "status"].contains(name)), "{path}: {shown}");
        assert!(!repeat.text.contains("secret") && repeat.text.contains(read), "{path}: {}", repeat.text);
        if name == "contact" {
            let mut another = body.clone();
            another["displayName"] = json!("another");
            let reused = ask(&app, &key, "POST", &path, Some(another)).await.expect(409).json();
            assert_eq!((&reused["code"], members(&reused[name])), (&json!("idempotency_key_reused"), vec!["id"]));
        }
        let reader = app.key(Environment::Test, &[write, read]).await;
        let whole = ask(&app, &reader, "POST", &path, Some(body)).await.expect(409).json()[name].clone();
        assert!(whole["id"] == shown["id"] && members(&whole).len() > 2, "{path}: {whole}");
    }
}

// holds: auth.read
#[tokio::test]
async fn events_show_no_more_than_the_key_may_read() {
    let app = TestApp::start().await;
    let body = json!({"name": "secret", "channel": "sms", "text": "Hello from Acme"});
    let made = app.post("/v1/broadcasts", body).await.expect(201).json();
    let broadcast = made["broadcast"]["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/broadcasts/{broadcast}");
    app.post(&format!("{path}/contacts"), json!({"contacts": [{"recipient": "+34600111222"}]})).await.expect(201);
    app.post(&format!("{path}/send"), json!({})).await.expect(202);
    app.drain().await;
    app.post("/v1/suppressions", json!({"identifier": "+34600111222", "reason": "opt_out"})).await.expect(201);
    let events = async |permissions: &[&str]| {
        let key = app.key(Environment::Test, permissions).await;
        ask(&app, &key, "GET", "/v1/events?limit=100", None).await.expect(200).json()["items"].as_array().expect("events").clone()
    };
    let of = |events: &[Value], kind: &str| {
        let found: Vec<_> = events.iter().filter(|e| e["type"] == kind).map(|e| e["data"].clone()).collect();
        assert!(!found.is_empty(), "{kind}: {events:?}");
        found
    };
    let few = events(&["messages:read"]).await;
    for data in of(&few, "broadcast.status_changed") {
        assert_eq!(members(&data["broadcast"]), ["id", "status"], "{data}");
        assert_eq!((&data["broadcast"]["id"], data["previousStatus"].is_string()), (&json!(broadcast), true), "{data}");
    }
    for data in of(&few, "contact.opted_out") {
        assert_eq!((members(&data), members(&data["contact"])), (vec!["contact"], vec!["id"]), "{data}");
    }
    assert!(of(&few, "message.delivered").iter().all(|data| data["message"]["text"] == "Hello from Acme"));
    let more = events(&["messages:read", "broadcasts:read"]).await;
    assert!(of(&more, "broadcast.status_changed").iter().all(|data| data["broadcast"]["name"] == "secret"));
    assert!(of(&more, "contact.opted_out").iter().all(|data| members(&data["contact"]) == ["id"]));
    assert!(of(&events(&[]).await, "contact.opted_out").iter().all(|data| data["suppression"]["identifier"] == "+34600111222"));
}

// holds: auth.webhook
#[tokio::test]
async fn a_webhook_of_a_sender_is_set_by_keys_that_may_set_webhooks() {
    let app = TestApp::start().await;
    let weak = app.key(Environment::Test, &["senders:write"]).await;
    let strong = app.key(Environment::Test, &["senders:write", "webhooks:write"]).await;
    let made = app.post("/v1/senders", json!({"name": "Shop", "webhookUrl": "https://example.com/a"})).await.expect(201).json();
    let path = format!("/v1/senders/{}", made["id"].as_str().expect("an id"));
    for (method, path, body) in [
        ("POST", "/v1/senders", json!({"name": "x", "webhookUrl": "https://example.com/b"})),
        ("POST", "/v1/senders", json!({"name": "x", "webhookUrl": "https://example.com/b", "webhookEvents": ["message.sent"]})),
        ("PATCH", path.as_str(), json!({"webhookUrl": "https://example.com/b"})),
        ("PATCH", path.as_str(), json!({"webhookEvents": ["message.sent"]})),
        ("PATCH", path.as_str(), json!({"webhookEvents": null})),
        ("PATCH", path.as_str(), json!({"webhookActive": false})),
        ("PATCH", path.as_str(), json!({"webhookUrl": null})),
    ] {
        let send = async |key: &str| app.send(method, path, &[("authorization", &format!("Bearer {key}"))], Some(body.clone())).await;
        let refused = send(&weak).await.expect(403).json();
        assert_eq!(refused["details"]["requiredPermission"], "webhooks:write", "{body}");
        assert!(send(&strong).await.status.is_success(), "{body}");
    }
    let rename = json!({"name": "Store"});
    app.send("PATCH", &path, &[("authorization", &format!("Bearer {weak}"))], Some(rename)).await.expect(200);
}

/// All accounts share the server's ports.
// holds: senders.channels
#[tokio::test]
async fn ports_of_the_server_are_no_settings_of_an_account() {
    let app = TestApp::start().await;
    let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
    let path = format!("/v1/senders/{}/channels/voice", world.default_sender().expect("a sender").id);
    let settings = json!({"host": "sip.example.org", "local_port": 53, "rtp_port_low": 1024, "rtp_port_high": 65535});
    let put = json!({"kind": "sip", "settings": settings});
    let refused = app.with_key(&app.live_key, "PUT", &path, Some(put)).await.expect(400).json();
    let faults = refused["details"]["errors"].as_array().expect("faults");
    let mut paths: Vec<_> = faults.iter().map(|e| e["path"].as_str().expect("a path")).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["settings.local_port", "settings.rtp_port_high", "settings.rtp_port_low"]);
}
