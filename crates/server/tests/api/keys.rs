//! API keys, managed by an API key.

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
        app.clock.advance(std::time::Duration::from_millis(1)); // newer than the key in use
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
        app.request("DELETE", &path, None).await.expect(204);
        app.advance(std::time::Duration::from_secs(2)).await;
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
    for permissions in [Value::Null, json!([])] {
        let made = with(&app, &weak, "POST", "/v1/keys", Some(json!({"name": "x", "permissions": permissions}))).await.expect(201).json();
        assert_eq!(made["permissions"], json!(["messages:read", "keys:write"]), "as much as its maker");
    }
    // A key with all current permissions must not create one that also gets future ones.
    let all: Vec<&str> = nuncio_domain::Permission::ALL.iter().map(|permission| permission.as_str()).collect();
    let strong = app.key(Environment::Test, &all).await;
    let made = with(&app, &strong, "POST", "/v1/keys", Some(json!({"name": "x", "permissions": ["*"]}))).await.expect(201).json();
    assert_eq!(made["permissions"].as_array().map(Vec::len), Some(all.len()), "{made}");
    let refused = app.post("/v1/keys", json!({"name": "", "permissions": ["messages:sent"]})).await.expect(400).json();
    assert!(refused["details"]["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{refused}");
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
