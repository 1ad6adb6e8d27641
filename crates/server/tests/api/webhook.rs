//! Webhook endpoints and signing secrets.

use std::time::Duration;

use nuncio_core::webhooks::{Target, Targets};
use nuncio_testkit::{Backend, Options, Receiver, TestApp, TestResponse, sealer};
use serde_json::{Value, json};

async fn put(app: &TestApp, body: Value) -> TestResponse {
    app.request("PUT", "/v1/webhook", Some(body)).await
}

/// Returns the endpoints of the test environment with their secrets.
async fn targets(app: &TestApp) -> Vec<Target> {
    let mut tx = app.store().read().await.expect("a reader");
    let world = tx.load_tenant(app.tenant()).await.expect("a look").expect("the world");
    let targets = Targets::read(&mut *tx, &sealer(), &world, app.node.core.ids().clock.now()).await.expect("targets");
    let senders = world.senders.iter().map(|sender| Some(sender.id));
    std::iter::once(None).chain(senders).filter_map(|of| targets.find(of).cloned()).collect()
}

/// Returns the current signing secrets, with at most one webhook.
async fn signing(app: &TestApp) -> Vec<String> {
    let mut targets = targets(app).await;
    assert!(targets.len() <= 1, "{targets:?}");
    targets.pop().map(|target| target.secrets.iter().map(|secret| secret.expose().clone()).collect()).unwrap_or_default()
}

fn secret(answer: &Value) -> String {
    answer["secret"].as_str().expect("a secret").to_owned()
}

// holds: webhooks.world
#[tokio::test]
async fn the_world_has_a_webhook_of_its_own() {
    for app in TestApp::on_each().await {
        app.get("/v1/webhook").await.expect(404);
        app.request("DELETE", "/v1/webhook", None).await.expect(404);
        let made = put(&app, json!({"url": "https://example.com/a"})).await.expect(201).json();
        assert_eq!((&made["active"], &made["signatureVersion"]), (&json!(true), &json!("v1")));
        assert_eq!(made["events"], json!(["template.status_changed", "invitation.status_changed", "contact.merged", "contact.opted_out"]));
        assert_eq!(signing(&app).await, [secret(&made)]);
        let mut shown = made.clone();
        shown.as_object_mut().expect("an object").remove("secret");
        assert_eq!(app.get("/v1/webhook").await.expect(200).json(), shown, "the secret is shown once");
        let changed =
            put(&app, json!({"url": "https://example.com/b", "events": ["contact.merged"], "active": false})).await.expect(200).json();
        assert_eq!(
            changed,
            json!({"url": "https://example.com/b", "events": ["contact.merged"], "active": false, "signatureVersion": "v1"})
        );
        assert_eq!(signing(&app).await, [""; 0], "it is off");
        put(&app, json!({"url": "https://example.com/b"})).await.expect(200);
        assert_eq!(signing(&app).await, [secret(&made)], "the secret stayed");
        app.with_key(&app.live_key, "GET", "/v1/webhook", None).await.expect(404);
        app.request("DELETE", "/v1/webhook", None).await.expect(204);
        app.get("/v1/webhook").await.expect(404);
        assert_ne!(secret(&put(&app, json!({"url": "https://example.com/a"})).await.expect(201).json()), secret(&made));
    }
}

#[tokio::test]
async fn each_fault_is_named() {
    let app = TestApp::start().await;
    for (body, expected) in [
        (json!({}), "url"),
        (json!({"url": "http://example.com"}), "url"),
        (json!({"url": "https://user:secret@example.com"}), "url"),
        (json!({"url": "https://example.com", "events": []}), "events"),
        (json!({"url": "https://example.com", "events": ["x"]}), "events[0]"),
        (json!({"url": "https://example.com", "events": ["webhook.test", "message.sent"]}), "events[1]"),
        (json!({"url": "https://example.com", "active": "yes"}), "active"),
        (json!({"url": "https://example.com", "secret": "mine"}), "secret"),
    ] {
        let answer = put(&app, body.clone()).await.expect(400).json();
        assert_eq!(answer["details"]["errors"][0]["path"], expected, "{body}");
    }
}

// holds: webhooks.rotation
#[tokio::test]
async fn after_a_rotation_two_secrets_sign_for_a_day() {
    for app in TestApp::on_each().await {
        let made = put(&app, json!({"url": "https://example.com/a"})).await.expect(201).json();
        let first = secret(&made);
        let second = secret(&app.request("POST", "/v1/webhook/secret", None).await.expect(200).json());
        assert_ne!(first, second);
        assert_eq!(signing(&app).await, [second.clone(), first]);
        app.clock.advance(Duration::from_secs(86_399));
        assert_eq!(signing(&app).await.len(), 2);
        app.clock.advance(Duration::from_secs(1));
        assert_eq!(signing(&app).await, std::slice::from_ref(&second));
        let third = secret(&app.post("/v1/webhook/secret", json!({"expireOld": "24h"})).await.expect(200).json());
        assert_eq!(signing(&app).await, [third.clone(), second]);
        let fourth = secret(&app.post("/v1/webhook/secret", json!({"expireOld": "now"})).await.expect(200).json());
        assert_eq!(signing(&app).await, [fourth]);
        for bad in [json!({"expireOld": "later"}), json!({"expire": "now"})] {
            app.post("/v1/webhook/secret", bad).await.expect(400);
        }
        app.request("DELETE", "/v1/webhook", None).await.expect(204);
        assert_eq!(app.post("/v1/webhook/secret", json!({})).await.expect(400).json()["code"], "invalid_request");
    }
}

// holds: senders.secret
#[tokio::test]
async fn a_second_rotation_ends_no_secret_before_its_day_is_over() {
    for app in TestApp::on_each().await {
        let first = secret(&put(&app, json!({"url": "https://example.com/a"})).await.expect(201).json());
        let rotate = async || secret(&app.request("POST", "/v1/webhook/secret", None).await.expect(200).json());
        let second = rotate().await;
        app.advance(Duration::from_secs(3_600)).await;
        let third = rotate().await;
        assert_eq!(signing(&app).await, [third.clone(), second.clone(), first]);
        app.advance(Duration::from_secs(23 * 3_600)).await;
        assert_eq!(signing(&app).await, [third.clone(), second]);
        app.advance(Duration::from_secs(3_600)).await;
        assert_eq!(signing(&app).await, [third]);
    }
}

#[tokio::test]
async fn a_senders_secret_rotates_too() {
    let app = TestApp::start().await;
    let made = app.post("/v1/senders", json!({"name": "x"})).await.expect(201).json();
    let sender = format!("/v1/senders/{}", made["id"].as_str().expect("an id"));
    let rotate = format!("{sender}/webhook/secret");
    app.post(&rotate, json!({})).await.expect(400);
    let set = app.request("PATCH", &sender, Some(json!({"webhookUrl": "https://example.com/a"}))).await.expect(200).json();
    let first = secret(&set["webhook"]);
    let second = secret(&app.request("POST", &rotate, None).await.expect(200).json());
    assert_eq!(signing(&app).await, [second, first]);
    assert!(app.get(&sender).await.json()["webhook"].get("secret").is_none());
    let third = secret(&app.post(&rotate, json!({"expireOld": "now"})).await.expect(200).json());
    assert_eq!(signing(&app).await, [third]);
    app.post("/v1/senders/snd_01hgw2bbg0e9tatjpp9vyrkcyk/webhook/secret", json!({})).await.expect(404);
}

#[tokio::test]
async fn switching_on_forgets_what_failed() {
    let app = TestApp::start().await;
    let made = app.post("/v1/senders", json!({"name": "x", "webhookUrl": "https://example.com/a"})).await.expect(201).json();
    let path = format!("/v1/senders/{}", made["id"].as_str().expect("an id"));
    let patch = async |body: Value| app.request("PATCH", &path, Some(body)).await.expect(200).json()["webhook"].clone();
    let fail = async || {
        let now = app.node.core.ids().clock.now();
        let mut tx = app.store().begin().await.expect("a transaction");
        let mut webhook = tx.list_webhooks(app.tenant()).await.expect("webhooks").pop().expect("the webhook");
        (webhook.active, webhook.failing_since, webhook.disabled_reason) = (false, Some(now), Some("gone".to_owned()));
        tx.put_webhook(app.tenant(), &webhook).await.expect("written");
        tx.commit().await.expect("committed");
    };
    fail().await;
    let shown = patch(json!({"name": "y"})).await;
    assert_eq!((&shown["active"], &shown["disabledReason"]), (&json!(false), &json!("gone")));
    assert!(shown["failingSince"].is_string());
    let moved = patch(json!({"webhookUrl": "https://example.com/b"})).await;
    assert_eq!((&moved["active"], moved.get("failingSince")), (&json!(false), None), "another address has not failed yet");
    let on = patch(json!({"webhookActive": true})).await;
    assert_eq!((&on["active"], on.get("failingSince"), on.get("disabledReason")), (&json!(true), None, None));
}

#[tokio::test]
async fn a_secret_that_cannot_be_opened_stops_nobody_else_and_a_rotation_mends_it() {
    let app = TestApp::start().await;
    put(&app, json!({"url": "https://example.com/a"})).await.expect(201);
    app.post("/v1/senders", json!({"name": "x", "webhookUrl": "https://example.com/b"})).await.expect(201);
    let mut tx = app.store().begin().await.expect("a transaction");
    let mut webhook = tx.find_webhook(app.tenant(), None).await.expect("a look").expect("the webhook");
    webhook.sealed = nuncio_domain::Redacted::new(vec![0; 64]);
    tx.put_webhook(app.tenant(), &webhook).await.expect("written");
    tx.commit().await.expect("committed");
    let secrets = async || targets(&app).await.into_iter().map(|target| target.secrets.len()).collect::<Vec<_>>();
    assert_eq!(secrets().await, [0, 1]);
    app.post("/v1/webhook/secret", json!({})).await.expect(200);
    assert_eq!(secrets().await, [1, 1]);
}

#[tokio::test]
async fn what_is_set_up_is_posted_to_and_what_is_removed_is_not() {
    for backend in Backend::all() {
        let mut options = Options::default();
        (options.dispatch.guard.allow_http, options.dispatch.guard.allow_loopback) = (true, true);
        let app = TestApp::with(backend, options).await;
        let receiver = Receiver::start().await;
        let default = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/senders/{default}");
        let send = async || {
            app.post("/v1/messages", json!({"to": "+34600111222", "text": "x"})).await.expect(202);
            app.drain().await;
        };
        send().await; // no webhook gets it
        app.request("PATCH", &path, Some(json!({"webhookUrl": receiver.url, "webhookEvents": ["message.delivered"]}))).await.expect(200);
        send().await;
        assert_eq!(receiver.got().len(), 1);
        app.request("POST", &format!("{path}/webhook/secret"), None).await.expect(200);
        app.advance(Duration::from_secs(2)).await;
        send().await;
        let got = receiver.got();
        assert_eq!(got.len(), 2);
        assert_eq!(got[1].header("webhook-signature").split(' ').count(), 2, "the old secret signs too");
        app.request("PATCH", &path, Some(json!({"webhookUrl": null}))).await.expect(200);
        app.advance(Duration::from_secs(2)).await;
        send().await;
        assert_eq!(receiver.got().len(), 2);
    }
}

/// Literal addresses of such networks. The error names the setting that permits them.
// holds: webhooks.guard
#[tokio::test]
async fn names_that_lead_inside_are_refused_when_they_are_set() {
    let app = TestApp::start().await;
    let made = app.post("/v1/senders", json!({"name": "Shop"})).await.expect(201).json();
    let sender = format!("/v1/senders/{}", made["id"].as_str().expect("an id"));
    for (host, setting) in [
        ("localhost", "net.allow_loopback"),
        ("localhost:8443", "net.allow_loopback"),
        ("hooks.localhost", "net.allow_loopback"),
        ("127.0.0.1", "net.allow_loopback"),
        ("foo.internal", "net.allow_networks"),
        ("metadata.google.internal", "net.allow_networks"),
        ("printer.local", "net.allow_networks"),
        ("hooks", "net.allow_networks"),
        ("10.0.0.1", "net.allow_networks"),
    ] {
        let url = format!("https://{host}/hook");
        for (method, path, field, body) in [
            ("PUT", "/v1/webhook", "url", json!({"url": url})),
            ("POST", "/v1/senders", "webhookUrl", json!({"name": "x", "webhookUrl": url})),
            ("PATCH", sender.as_str(), "webhookUrl", json!({"webhookUrl": url})),
        ] {
            let refused = app.request(method, path, Some(body)).await.expect(400).json();
            let fault = &refused["details"]["errors"][0];
            assert_eq!(fault["path"], field, "{method} {path} {url}");
            assert!(fault["message"].as_str().is_some_and(|m| m.contains(setting)), "{url}: {fault}");
        }
    }
    put(&app, json!({"url": "https://hooks.example.com/x"})).await.expect(201);
}
