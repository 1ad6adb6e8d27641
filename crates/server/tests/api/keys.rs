//! API keys, managed by an API key.

use std::time::Duration;

use nuncio_domain::Environment;
use nuncio_testkit::{TestApp, TestResponse};
use serde_json::{Value, json};

async fn with(app: &TestApp, key: &str, method: &str, path: &str, body: Option<Value>) -> TestResponse {
    app.send(method, path, &[("authorization", &format!("Bearer {key}"))], body).await
}

// holds: keys.manage
#[tokio::test]
async fn a_key_is_created_listed_and_revoked() {
    for app in TestApp::on_each().await {
        app.clock.advance(Duration::from_millis(1)); // newer than the key in use
        let made = app.post("/v1/keys", json!({"name": "shop", "permissions": ["messages:send"]})).await.expect(201).json();
        let key = made["key"].as_str().expect("a key");
        assert!(key.starts_with("svc_test_"), "of the environment of the key that created it: {made}");
        assert_eq!(with(&app, key, "GET", "/v1/me", None).await.expect(200).json()["apiKey"]["permissions"], json!(["messages:send"]));
        with(&app, key, "GET", "/v1/keys", None).await.expect(403);

        let newest = app.get("/v1/keys?limit=1").await.expect(200).json();
        assert_eq!((&newest["items"][0]["name"], &newest["items"][0]["key"]), (&json!("shop"), &Value::Null), "it is not shown again");
        let next = newest["nextCursor"].as_str().expect("there is an older one");
        let older = app.get(&format!("/v1/keys?limit=1&cursor={next}")).await.expect(200).json();
        assert_ne!(older["items"][0]["id"], made["id"]);

        let path = format!("/v1/keys/{}", made["id"].as_str().expect("an id"));
        let live = app.key(Environment::Live, &["*"]).await;
        with(&app, &live, "DELETE", &path, None).await.expect(404);
        let begun = std::time::Instant::now();
        app.request("DELETE", &path, None).await.expect(204);
        assert!(begun.elapsed() >= Duration::from_secs(1), "other nodes may use what they read of it for a second");
        app.advance(Duration::from_secs(2)).await;
        with(&app, key, "GET", "/v1/me", None).await.expect(401);
        let listed = app.get("/v1/keys?limit=1").await.expect(200).json();
        assert!(listed["items"][0]["revokedAt"].is_string(), "{listed}");
        app.request("DELETE", &path, None).await.expect(204);
    }
}

// holds: keys.no_more
#[tokio::test]
async fn a_key_never_allows_more_than_the_key_that_created_it() {
    let app = TestApp::start().await;
    let weak = app.key(Environment::Test, &["keys:write", "messages:read"]).await;
    for (asked, missing) in [(json!(["messages:send"]), "messages:send"), (json!(["*"]), "messages:send")] {
        let refused = with(&app, &weak, "POST", "/v1/keys", Some(json!({"name": "x", "permissions": asked}))).await.expect(403).json();
        assert_eq!(refused["details"]["requiredPermission"], missing, "{refused}");
    }
    for body in [json!({"name": "x"}), json!({"name": "x", "permissions": null})] {
        let made = with(&app, &weak, "POST", "/v1/keys", Some(body)).await.expect(201).json();
        assert_eq!(made["permissions"], json!(["messages:read", "keys:write"]), "as much as its maker");
    }
    let none = app.post("/v1/keys", json!({"name": "x", "permissions": []})).await.expect(400).json();
    let fault = &none["details"]["errors"][0];
    assert_eq!(fault["path"], "permissions", "{none}");
    assert!(fault["message"].as_str().is_some_and(|message| message.contains("leave it out for all permissions")), "{none}");
    // A key with all current permissions must not create one that also gets future ones.
    let all: Vec<&str> = nuncio_domain::Permission::ALL.iter().map(|permission| permission.as_str()).collect();
    let strong = app.key(Environment::Test, &all).await;
    let made = with(&app, &strong, "POST", "/v1/keys", Some(json!({"name": "x", "permissions": ["*"]}))).await.expect(201).json();
    assert_eq!(made["permissions"].as_array().map(Vec::len), Some(all.len()), "{made}");
    let refused = app.post("/v1/keys", json!({"name": "", "permissions": ["messages:sent"]})).await.expect(400).json();
    assert!(refused["details"]["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{refused}");
    app.post("/v1/keys", json!({"name": "x", "permissions": ["*", "messages:sent"]})).await.expect(400);
}

// holds: keys.manage
#[tokio::test]
async fn a_repeated_creation_makes_one_key_and_does_not_show_it_again() {
    let app = TestApp::start().await;
    let made = app.once("k-1", "/v1/keys", json!({"name": "shop"})).await.expect(201).json();
    let again = app.once("k-1", "/v1/keys", json!({"name": "shop"})).await.expect(409).json();
    assert_eq!((&again["code"], &again["apiKey"]["id"]), (&json!("idempotency_conflict"), &made["id"]));
    assert_eq!(again["apiKey"]["key"], Value::Null, "{again}");
    let other = app.once("k-1", "/v1/keys", json!({"name": "other"})).await.expect(409).json();
    assert_eq!(other["code"], "idempotency_key_reused");
}

// holds: keys.expiry
#[tokio::test]
async fn a_key_is_refused_from_the_time_on_when_it_expires() {
    for app in TestApp::on_each().await {
        let now = app.node.core.ids().clock.now();
        let expires_at = now.plus(Duration::from_millis(500)).to_string();
        let made = app.post("/v1/keys", json!({"name": "guest", "expiresAt": expires_at})).await.expect(201).json();
        assert_eq!(made["expiresAt"], *expires_at, "{made}");
        let key = made["key"].as_str().expect("a key");
        with(&app, key, "GET", "/v1/me", None).await.expect(200);
        app.clock.advance(Duration::from_millis(499));
        with(&app, key, "GET", "/v1/me", None).await.expect(200);
        // On time, although it is cached for a second; and still, when it is read again.
        app.clock.advance(Duration::from_millis(1));
        for wait in [0, 2] {
            app.advance(Duration::from_secs(wait)).await;
            let refused = with(&app, key, "GET", "/v1/me", None).await.expect(401).json();
            assert_eq!(refused["code"], "unauthorized", "{refused}");
        }
        let listed = app.get("/v1/keys").await.expect(200).json();
        let shown = listed["items"].as_array().expect("keys").iter().find(|shown| shown["id"] == made["id"]).expect("it is listed");
        assert_eq!((&shown["expiresAt"], &shown["revokedAt"]), (&json!(expires_at), &Value::Null), "{shown}");
        assert!(listed["items"].as_array().expect("keys").iter().any(|key| key["expiresAt"].is_null()), "most do not expire: {listed}");
    }
}

// holds: keys.expiry, keys.no_more
#[tokio::test]
async fn a_key_does_not_outlive_the_key_that_creates_it() {
    let app = TestApp::start().await;
    let latest = app.node.core.ids().clock.now().plus(Duration::from_secs(60));
    let made = app.post("/v1/keys", json!({"name": "guest", "expiresAt": latest.to_string()})).await.expect(201).json();
    let key = made["key"].as_str().expect("a key");
    let later = latest.plus(Duration::from_millis(1)).to_string();
    let refused = with(&app, key, "POST", "/v1/keys", Some(json!({"name": "x", "expiresAt": later}))).await.expect(400).json();
    assert_eq!(refused["details"]["errors"][0]["path"], "expiresAt", "{refused}");
    let inherited = with(&app, key, "POST", "/v1/keys", Some(json!({"name": "x"}))).await.expect(201).json();
    assert_eq!(inherited["expiresAt"], latest.to_string(), "{inherited}");
}

// holds: keys.expiry
#[tokio::test]
async fn a_key_expires_in_the_future() {
    let app = TestApp::start().await;
    let now = app.node.core.ids().clock.now();
    for (at, message) in [(now.to_string(), "has passed"), ("2020-01-31T10:30:00+01:00".to_owned(), "has passed"), ("soon".to_owned(), "")]
    {
        let refused = app.post("/v1/keys", json!({"name": "", "expiresAt": at})).await.expect(400).json();
        let errors = refused["details"]["errors"].as_array().expect("errors");
        let error = errors.iter().find(|error| error["path"] == "expiresAt").unwrap_or_else(|| panic!("{refused}"));
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{refused}");
    }
    let made = app.post("/v1/keys", json!({"name": "x", "expiresAt": null})).await.expect(201).json();
    assert_eq!(made["expiresAt"], Value::Null, "{made}");
    app.clock.advance(Duration::from_millis(1));
    let made = app.post("/v1/keys", json!({"name": "x", "expiresAt": "2100-01-01T01:00:00+01:00"})).await.expect(201).json();
    assert_eq!(made["expiresAt"], "2100-01-01T00:00:00.000Z");
    let log = app.get("/v1/audit-log?limit=1").await.expect(200).json();
    assert_eq!(log["items"][0]["after"]["expiresAt"], "2100-01-01T00:00:00.000Z", "{log}");
}

// holds: events.stream, keys.expiry
#[tokio::test]
async fn an_expired_key_cannot_follow_events() {
    let app = TestApp::start().await;
    let keys = app.node.core.keys();
    let expires_at = app.node.core.ids().clock.now().plus(Duration::from_millis(500));
    let everything = nuncio_domain::Permissions::ALL;
    let new = keys.create(app.tenant(), Environment::Test, "guest", everything, Some(expires_at)).await.expect("a key");
    let caller = keys.authenticate(new.secret.expose()).await.expect("a caller");
    assert!(app.node.core.events().may_follow(&caller).await);
    app.clock.advance(Duration::from_millis(500));
    assert!(!app.node.core.events().may_follow(&caller).await);
}

// holds: keys.last_use
#[tokio::test]
async fn keys_show_when_they_were_last_used() {
    for app in TestApp::on_each().await {
        let made = app.post("/v1/keys", json!({"name": "shop"})).await.expect(201).json();
        let key = made["key"].as_str().expect("a key");
        let shown = async || {
            let listed = app.get("/v1/keys").await.expect(200).json();
            let shown = listed["items"].as_array().expect("keys").iter().find(|shown| shown["id"] == made["id"]).expect("it is listed");
            shown["lastUsedAt"].clone()
        };
        let now = || json!(app.node.core.ids().clock.now());
        app.drain().await;
        assert_eq!(shown().await, Value::Null, "never used");
        let first = now();
        with(&app, key, "GET", "/v1/me", None).await.expect(200);
        assert_eq!(shown().await, Value::Null, "the request does not write it");
        app.advance(Duration::from_secs(1)).await;
        assert_eq!(shown().await, first, "the node does");
        // Not written again for two minutes.
        app.advance(Duration::from_secs(60)).await;
        with(&app, key, "GET", "/v1/me", None).await.expect(200);
        app.advance(Duration::from_secs(1)).await;
        assert_eq!(shown().await, first);
        app.advance(Duration::from_secs(60)).await;
        let second = now();
        with(&app, key, "GET", "/v1/me", None).await.expect(200);
        app.node.stop(Duration::ZERO).await;
        assert_eq!(shown().await, second, "a node that stops writes it");
        // A refused key is not used.
        let path = format!("/v1/keys/{}", made["id"].as_str().expect("an id"));
        app.request("DELETE", &path, None).await.expect(204);
        app.clock.advance(Duration::from_secs(300));
        with(&app, key, "GET", "/v1/me", None).await.expect(401);
        app.drain().await;
        assert_eq!(shown().await, second);
    }
}

// holds: connections.test
#[tokio::test]
async fn a_connection_is_tested_without_sending_anything() {
    let app = TestApp::start().await;
    let senders = app.get("/v1/senders").await.expect(200).json();
    let id = senders["items"][0]["id"].as_str().expect("a sender");
    let tested = app.post(&format!("/v1/senders/{id}/channels/sms/test"), json!({})).await.expect(200).json();
    assert_eq!(tested["ok"], true, "{tested}");
    let live = app.key(Environment::Live, &["*"]).await;
    let sender = with(&app, &live, "GET", "/v1/senders", None).await.expect(200).json()["items"][0]["id"].clone();
    let path = format!("/v1/senders/{}/channels/email", sender.as_str().expect("a sender"));
    with(&app, &live, "POST", &format!("{path}/test"), None).await.expect(404);
    let put = json!({"kind": "smtp", "settings": {"host": "127.0.0.1", "port": 1, "tls": "none", "from": "a@example.org"}});
    with(&app, &live, "PUT", &path, Some(put)).await.expect(201);
    let failed = with(&app, &live, "POST", &format!("{path}/test"), None).await.expect(200).json();
    assert!(failed["ok"] == false && failed["message"].as_str().is_some_and(|text| !text.is_empty()), "{failed}");
    assert_eq!(app.get("/v1/messages").await.expect(200).json()["items"], json!([]));
}
