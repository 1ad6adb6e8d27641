//! Provider accounts of a sender's channels.

use std::time::Duration;

use nuncio::admin::{Command, NewThrottle, Request, run};
use nuncio_domain::Environment;
use nuncio_testkit::{TestApp, TestResponse};
use serde_json::{Map, Value, json};

async fn live(app: &TestApp, method: &str, path: &str, body: Option<Value>) -> TestResponse {
    app.with_key(&app.live_key, method, path, body).await
}

async fn default_path(app: &TestApp, key: &str) -> String {
    let all = app.send("GET", "/v1/senders", &[("authorization", &format!("Bearer {key}"))], None).await.expect(200).json();
    format!("/v1/senders/{}", all["items"][0]["id"].as_str().expect("an id"))
}

fn smtp(extra: Value) -> Value {
    let mut body = json!({"kind": "smtp", "settings": {"host": "127.0.0.1", "port": 9, "tls": "none", "from": "a@example.org"}});
    body.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
    body
}

// holds: senders.channels
#[tokio::test]
async fn a_provider_account_is_set_shown_and_removed() {
    for app in TestApp::on_each().await {
        let sender = default_path(&app, &app.live_key).await;
        let path = format!("{sender}/channels/email");
        live(&app, "GET", &path, None).await.expect(404);
        let put = smtp(json!({"secrets": {"dkim_key": "hunter2"}, "throttle": {"messagesPerSecond": 0.5, "burst": 2}}));
        let refused = live(&app, "PUT", &path, Some(put)).await.expect(400);
        assert!(!refused.text.contains("hunter2"), "{}", refused.text);
        let put = smtp(json!({"throttle": {"messagesPerSecond": 0.5, "burst": 2}}));
        let made = live(&app, "PUT", &path, Some(put)).await.expect(201).json();
        assert!(made["id"].as_str().is_some_and(|id| id.starts_with("cnx_")), "{made}");
        assert_eq!((&made["channel"], &made["kind"], &made["settings"]["host"]), (&json!("email"), &json!("smtp"), &json!("127.0.0.1")));
        assert_eq!((&made["throttle"], &made["health"]), (&json!({"messagesPerSecond": 0.5, "burst": 2}), &json!({"state": "ok"})));
        assert_eq!(live(&app, "GET", &path, None).await.expect(200).json(), made);
        let shown = live(&app, "GET", &sender, None).await.json();
        assert_eq!((&shown["channels"], &shown["connections"][0]["id"]), (&json!(["email"]), &made["id"]));

        app.clock.advance(Duration::from_secs(1));
        let again = live(&app, "PUT", &path, Some(smtp(json!({})))).await.expect(200).json();
        assert_eq!((&again["id"], &again["createdAt"]), (&made["id"], &made["createdAt"]), "messages that wait name it");
        assert!(again.get("throttle").is_none() && again["updatedAt"] != made["updatedAt"], "{again}");
        live(&app, "DELETE", &path, None).await.expect(204);
        live(&app, "DELETE", &path, None).await.expect(404);
        live(&app, "GET", &path, None).await.expect(404);
        assert_eq!(live(&app, "GET", &sender, None).await.json()["channels"], json!([]));
    }
}

// holds: senders.channels.secrets
#[tokio::test]
async fn secrets_are_kept_and_never_shown() {
    let app = TestApp::start().await;
    let path = format!("{}/channels/email", default_path(&app, &app.live_key).await);
    let settings = json!({"host": "127.0.0.1", "port": 9, "tls": "required", "from": "a@example.org", "username": "me"});
    let body = |secrets: Value| json!({"kind": "smtp", "settings": settings, "secrets": secrets});
    live(&app, "PUT", &path, Some(body(json!({})))).await.expect(400); // a user name needs a password
    let answers = [
        live(&app, "PUT", &path, Some(body(json!({"password": "hunter2"})))).await.expect(201),
        live(&app, "PUT", &path, Some(body(json!({})))).await.expect(200), // still stored
        live(&app, "GET", &path, None).await.expect(200),
        live(&app, "PUT", &path, Some(body(json!({"passwort": "hunter2"})))).await.expect(400),
        live(&app, "PUT", &path, Some(body(json!({"password": ""})))).await.expect(400), // removed, and the user name needs one
        live(&app, "PUT", &path, Some(body(json!({"password": {"hunter2": 1}})))).await.expect(400),
        live(&app, "PUT", &path, Some(json!({"kind": "sms", "secrets": "hunter2"}))).await.expect(400),
    ];
    // A caller who changes the server must not receive the stored secrets there.
    let elsewhere = json!({"host": "203.0.113.9", "port": 9, "tls": "required", "from": "a@example.org", "username": "me"});
    let refused = live(&app, "PUT", &path, Some(json!({"kind": "smtp", "settings": elsewhere}))).await.expect(400);
    assert_eq!(refused.json()["details"]["errors"][0]["path"], "secrets.password", "{}", refused.text);
    for answer in answers {
        assert!(!answer.text.contains("hunter2"), "{}", answer.text);
    }
    let world = app.store().read().await.expect("a reader").load_tenant(app.project.live).await.expect("a look").expect("the world");
    let sealed = world.connections[0].sealed.expose();
    assert!(!sealed.windows(7).any(|w| w == b"hunter2"), "encrypted at rest");
}

#[tokio::test]
async fn each_fault_is_named() {
    let app = TestApp::start().await;
    let sender = default_path(&app, &app.live_key).await;
    let path = format!("{sender}/channels/email");
    for (body, expected) in [
        (json!({}), vec!["kind"]),
        (json!({"kind": "carrier_pigeon"}), vec!["kind"]),
        (json!({"kind": "smtp"}), vec!["settings.from", "settings.host"]),
        (smtp(json!({"color": 1})), vec!["color"]),
        (smtp(json!({"throttle": {"messagesPerSecond": 0, "burst": 0}})), vec!["throttle.burst", "throttle.messagesPerSecond"]),
        (smtp(json!({"throttle": {"messagesPerSecond": 10_001, "burst": 100_001}})), vec!["throttle.burst", "throttle.messagesPerSecond"]),
        (smtp(json!({"throttle": {"messagesPerSecond": 1}})), vec!["throttle.burst"]),
    ] {
        let answer = live(&app, "PUT", &path, Some(body.clone())).await.expect(400);
        let json = answer.json();
        let mut paths: Vec<_> =
            json["details"]["errors"].as_array().expect("faults").iter().map(|e| e["path"].as_str().expect("a path")).collect();
        paths.sort_unstable();
        assert_eq!(paths, expected, "{body}");
    }
    let wrong = live(&app, "PUT", &format!("{sender}/channels/sms"), Some(smtp(json!({})))).await.expect(400);
    assert_eq!(wrong.json()["details"]["errors"][0]["path"], "kind", "smtp carries no sms");
    for method in ["GET", "PUT", "DELETE"] {
        let body = (method == "PUT").then(|| smtp(json!({})));
        live(&app, method, &format!("{sender}/channels/pigeon"), body.clone()).await.expect(404);
        live(&app, method, "/v1/senders/snd_01hgw2bbg0e9tatjpp9vyrkcyk/channels/email", body).await.expect(404);
    }
}

#[tokio::test]
async fn in_the_test_world_everything_is_simulated() {
    let app = TestApp::start().await;
    let sender = default_path(&app, &app.test_key).await;
    let path = format!("{sender}/channels/email");
    let refused = app.request("PUT", &path, Some(smtp(json!({})))).await.expect(400).json();
    assert_eq!(refused["details"]["errors"][0]["path"], "kind");
    let refused = app.request("PUT", &path, Some(json!({"kind": "sim", "secrets": {"a": "b"}}))).await.expect(400).json();
    assert_eq!(refused["details"]["errors"][0], json!({"path": "secrets.a", "message": "is not a known name; there are none"}));
    app.request("DELETE", &path, None).await.expect(204);
    let mail = json!({"to": "a@example.org", "subject": "s", "text": "x"});
    assert_eq!(app.post("/v1/messages", mail.clone()).await.expect(400).json()["code"], "sender_not_configured");
    app.request("PUT", &path, Some(json!({"kind": "sim"}))).await.expect(201);
    app.post("/v1/messages", mail).await.expect(202);
}

#[tokio::test]
async fn a_field_of_a_request_without_fields_is_refused() {
    let app = TestApp::start().await;
    let path = default_path(&app, &app.test_key).await;
    for request in ["channels/email/verification", "channels/email/test"] {
        let answer = app.post(&format!("{path}/{request}"), json!({"adress": "a@example.org"})).await.expect(400).json();
        assert_eq!(answer["message"], "adress: is unknown; no fields are allowed here", "{request}");
    }
}

/// The simulator's "deliveries" would count, and be charged.
// holds: senders.channels.live
#[tokio::test]
async fn in_the_live_environment_nothing_is_simulated() {
    let app = TestApp::start().await;
    let sender = default_path(&app, &app.live_key).await;
    let refused = |errors: &Value| {
        assert_eq!(errors[0]["path"], "kind", "{errors}");
        let message = errors[0]["message"].as_str().expect("a message");
        assert!(message.contains("kannel, smpp, twilio"), "it names those that would be right: {message}");
    };
    let answer = live(&app, "PUT", &format!("{sender}/channels/sms"), Some(json!({"kind": "sim"}))).await.expect(400).json();
    refused(&answer["details"]["errors"]);
    let answer = live(&app, "PUT", &format!("{sender}/channels/sms"), Some(json!({"kind": "smmp"}))).await.expect(400).json();
    assert_eq!(answer["message"], "kind: is \"smmp\"; must be one of kannel, smpp, twilio");
    let command = |env| Command::ConnectionsSet {
        throttle: NewThrottle::Keep,
        env,
        sender: None,
        channel: "sms".into(),
        kind: "sim".into(),
        settings: Map::new(),
        secrets: Map::new(),
    };
    let set = async |env| run(&app.node.core, Request { project: None, command: command(env) }).await;
    refused(&set(Environment::Live).await.expect_err("it is live").details()["errors"]);
    set(Environment::Test).await.expect("the test environment has no other");
    let send = live(&app, "POST", "/v1/messages", Some(json!({"to": "+34600111222", "text": "x"}))).await.expect(400).json();
    assert_eq!(send["code"], "sender_not_configured");
    // A sender copied from the sandbox has no simulator.
    let id = default_path(&app, &app.test_key).await.rsplit('/').next().expect("an id").to_owned();
    let copy = Request { project: None, command: Command::SendersCopy { id, to: Environment::Live } };
    let copied = run(&app.node.core, copy).await.expect("a copy").json;
    assert_eq!(copied["connections"], json!([]));
}

#[tokio::test]
async fn health_tells_of_a_provider_that_is_down() {
    let app = TestApp::start().await;
    let sender = default_path(&app, &app.live_key).await;
    let path = format!("{sender}/channels/email");
    live(&app, "PUT", &path, Some(smtp(json!({})))).await.expect(201);
    let began = app.node.core.ids().clock.now().to_string();
    live(&app, "POST", "/v1/messages", Some(json!({"to": "b@example.net", "subject": "s", "text": "x"}))).await.expect(202);
    app.drain().await;
    let health = async || live(&app, "GET", &path, None).await.expect(200).json()["health"].clone();
    let resting = health().await;
    assert_eq!((&resting["state"], &resting["since"]), (&json!("resting"), &json!(began)));
    assert!(resting["reason"].as_str().is_some_and(|why| !why.is_empty()), "{resting}");
    assert_eq!(live(&app, "GET", &sender, None).await.json()["connections"][0]["health"], resting);
    app.clock.advance(Duration::from_secs(3_600));
    let failing = health().await;
    assert_eq!((&failing["state"], &failing["since"]), (&json!("failing"), &json!(began)), "about to be tried again");
    // A new connection has no failures.
    live(&app, "PUT", &path, Some(smtp(json!({})))).await.expect(200);
    assert_eq!(health().await, json!({"state": "ok"}));
}
