//! Senders: created, updated, listed, deleted, copied.

use std::sync::Arc;
use std::time::Duration;

use nuncio::admin::{Command, CommandOutput, Request, run};
use nuncio_domain::Environment;
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

use crate::broadcasts::{act, add, draft, phones, status};
use crate::scripted::with_stand_in;

const CHANNELS: [&str; 7] = ["sms", "sms_oneway", "whatsapp", "telegram", "email", "instagram", "voice"];

async fn live(app: &TestApp, method: &str, path: &str, body: Option<Value>) -> nuncio_testkit::TestResponse {
    app.with_key(&app.live_key, method, path, body).await
}

async fn make(app: &TestApp, body: Value) -> Value {
    app.post("/v1/senders", body).await.expect(201).json()
}

fn path(sender: &Value) -> String {
    format!("/v1/senders/{}", sender["id"].as_str().expect("an id"))
}

async fn patch(app: &TestApp, sender: &Value, body: Value) -> nuncio_testkit::TestResponse {
    app.request("PATCH", &path(sender), Some(body)).await
}

fn faults(answer: &nuncio_testkit::TestResponse) -> Vec<String> {
    assert_eq!(answer.status.as_u16(), 400, "{}", answer.text);
    let json = answer.json();
    let mut paths: Vec<_> =
        json["details"]["errors"].as_array().expect("faults").iter().map(|e| e["path"].as_str().expect("a path").to_owned()).collect();
    paths.sort();
    paths
}

async fn default_sender(app: &TestApp) -> Value {
    let all = app.get("/v1/senders").await.expect(200).json();
    all["items"].as_array().expect("senders").iter().find(|s| s["isDefault"] == true).cloned().expect("a default sender")
}

// holds: senders.fields, senders.create, senders.get, senders.payment_status
#[tokio::test]
async fn a_sender_has_all_its_fields() {
    for app in TestApp::on_each().await {
        let body = json!({"name": "Shop", "phoneNumber": "+34600111222", "webhookUrl": "https://example.com/hooks",
            "webhookEvents": ["message.delivered", "message.failed", "message.delivered"], "emailReceivingEnabled": true,
            "allowedCountries": ["pt", "ES"], "dailySpendLimit": 12.5});
        let made = make(&app, body).await;
        assert!(made["id"].as_str().is_some_and(|id| id.starts_with("snd_")), "{made}");
        assert_eq!((&made["name"], &made["phoneNumber"], &made["isDefault"]), (&json!("Shop"), &json!("+34600111222"), &json!(false)));
        assert_eq!((&made["allowedCountries"], &made["dailySpendLimit"]), (&json!(["ES", "PT"]), &json!(12.5)));
        assert_eq!(made["emailReceivingEnabled"], true);
        assert_eq!((&made["createdAt"], &made["channels"]), (&made["updatedAt"], &json!(CHANNELS)), "all is simulated");
        let webhook = &made["webhook"];
        assert_eq!(
            (&webhook["url"], &webhook["active"], &webhook["signatureVersion"]),
            (&json!("https://example.com/hooks"), &json!(true), &json!("v1"))
        );
        assert_eq!(webhook["events"], json!(["message.delivered", "message.failed"]));
        assert!(webhook["secret"].as_str().is_some_and(|s| s.starts_with("whsec_") && s.len() == 50), "{webhook}");
        let connections = made["connections"].as_array().expect("connections");
        assert!(connections.iter().all(|c| c["kind"] == "sim" && c["health"] == json!({"state": "ok"})), "{connections:?}");
        assert_eq!(made["whatsapp"]["displayPhoneNumber"], "+34600111222");
        assert_eq!(
            made["whatsapp"]["paymentStatus"],
            json!({"setupStatus": "COMPLETE", "methodStatus": "VALID", "canSendTemplates": true})
        );
        assert!(made["whatsapp"]["phoneNumberId"].as_str().is_some_and(|id| id.starts_with("sim_")));

        let mut shown = made.clone();
        shown["webhook"].as_object_mut().expect("a webhook").remove("secret");
        assert_eq!(app.get(&path(&made)).await.expect(200).json(), shown, "the secret is shown once");
        assert_eq!(app.get("/v1/senders").await.expect(200).json()["items"][0], shown, "newest first");
    }
}

#[tokio::test]
async fn a_sender_with_nothing_but_a_name_has_what_must_be_there() {
    let app = TestApp::start().await;
    let made = make(&app, json!({"name": "Plain", "phoneNumber": null, "webhookUrl": null})).await;
    assert_eq!((&made["phoneNumber"], &made["emailReceivingEnabled"]), (&json!(""), &json!(false)));
    for absent in ["webhook", "allowedCountries", "dailySpendLimit"] {
        assert!(made.get(absent).is_none(), "{absent}");
    }
    let default = default_sender(&app).await;
    assert_eq!((&default["name"], &default["whatsapp"]["paymentStatus"]["canSendTemplates"]), (&json!("Default"), &json!(true)));
    let in_live = live(&app, "POST", "/v1/senders", Some(json!({"name": "Live"}))).await.expect(201).json();
    assert_eq!((&in_live["channels"], &in_live["connections"]), (&json!([]), &json!([])));
    assert!(in_live.get("whatsapp").is_none());
}

// holds: webhooks.guard
#[tokio::test]
async fn each_fault_is_named() {
    let app = TestApp::start().await;
    let url = "https://example.com/hooks";
    for (body, expected) in [
        (json!({}), vec!["name"]),
        (json!({"name": ""}), vec!["name"]),
        (json!({"name": "x".repeat(101)}), vec!["name"]),
        (json!({"name": "é".repeat(100), "phoneNumber": "600111222"}), vec!["phoneNumber"]),
        (json!({"name": "x", "webhookActive": true}), vec!["webhookActive"]),
        (json!({"name": "x", "webhookUrl": "http://example.com/x"}), vec!["webhookUrl"]),
        (json!({"name": "x", "webhookUrl": "https://127.0.0.1/x"}), vec!["webhookUrl"]),
        (json!({"name": "x", "webhookUrl": "nonsense"}), vec!["webhookUrl"]),
        (json!({"name": "x", "webhookUrl": format!("https://example.com/{}", "x".repeat(2_048))}), vec!["webhookUrl"]),
        (json!({"name": "x", "webhookUrl": url, "webhookEvents": []}), vec!["webhookEvents"]),
        (json!({"name": "x", "webhookUrl": url, "webhookEvents": ["message.lost"]}), vec!["webhookEvents[0]"]),
        (json!({"name": "x", "webhookEvents": ["message.sent"]}), vec!["webhookEvents"]),
        (json!({"name": "x", "allowedCountries": []}), vec!["allowedCountries"]),
        (json!({"name": "x", "allowedCountries": ["ES", "Spain", "XX"]}), vec!["allowedCountries[1]", "allowedCountries[2]"]),
        (json!({"name": "x", "dailySpendLimit": -1}), vec!["dailySpendLimit"]),
        (json!({"name": "x", "dailySpendLimit": 0.000_000_1}), vec!["dailySpendLimit"]),
        (json!({"name": "x", "dailySpendLimit": 1e10}), vec!["dailySpendLimit"]),
        (
            json!({"name": "", "phoneNumber": "x", "webhookUrl": "ftp://x", "dailySpendLimit": -1}),
            vec!["dailySpendLimit", "name", "phoneNumber", "webhookUrl"],
        ),
    ] {
        let answer = app.post("/v1/senders", body.clone()).await;
        assert_eq!(faults(&answer), expected, "{body}");
    }
    for (url, setting) in [
        ("http://example.com/x", "net.allow_http"),
        ("https://127.0.0.1/x", "net.allow_loopback"),
        ("https://10.0.0.1/x", "net.allow_networks"),
    ] {
        let answer = app.post("/v1/senders", json!({"name": "x", "webhookUrl": url})).await.expect(400);
        assert!(answer.text.contains(setting), "{}", answer.text);
    }
    assert_eq!(app.get("/v1/senders").await.json()["items"].as_array().map(Vec::len), Some(1), "nothing was written");
}

// holds: senders.update, senders.update.webhook
#[tokio::test]
async fn a_patch_changes_what_it_names_and_null_clears_what_can_be_cleared() {
    for app in TestApp::on_each().await {
        let body = json!({"name": "Shop", "phoneNumber": "+34600111222", "webhookUrl": "https://example.com/a", "webhookEvents": ["message.sent"],
            "allowedCountries": ["ES"], "dailySpendLimit": 1});
        let made = make(&app, body).await;
        app.clock.advance(Duration::from_secs(1));
        let renamed = patch(&app, &made, json!({"name": "Store"})).await.expect(200).json();
        assert_ne!(renamed["updatedAt"], made["updatedAt"]);
        let mut expected = made.clone();
        expected["webhook"].as_object_mut().expect("a webhook").remove("secret");
        (expected["name"], expected["updatedAt"]) = (json!("Store"), renamed["updatedAt"].clone());
        assert_eq!(renamed, expected);
        assert_eq!(patch(&app, &made, json!({})).await.expect(200).json()["name"], "Store");

        let moved = patch(&app, &made, json!({"webhookUrl": "https://example.com/b", "webhookActive": false})).await.expect(200).json();
        assert_eq!(
            moved["webhook"],
            json!({"url": "https://example.com/b", "events": ["message.sent"], "active": false, "signatureVersion": "v1"})
        );
        let usual = patch(&app, &made, json!({"webhookEvents": null})).await.expect(200).json();
        assert_eq!(usual["webhook"]["events"].as_array().map(Vec::len), Some(11), "null is the usual ones");
        let cleared =
            patch(&app, &made, json!({"phoneNumber": null, "allowedCountries": null, "dailySpendLimit": null, "webhookUrl": null})).await;
        let cleared = cleared.expect(200).json();
        assert_eq!(cleared["phoneNumber"], "");
        for absent in ["webhook", "allowedCountries", "dailySpendLimit"] {
            assert!(cleared.get(absent).is_none(), "{absent}");
        }
        patch(&app, &made, json!({"webhookUrl": null})).await.expect(200);
        let again = patch(&app, &made, json!({"webhookUrl": "https://example.com/c"})).await.expect(200).json();
        assert!(again["webhook"]["secret"].is_string(), "the first one again");
        assert_ne!(again["webhook"]["secret"], made["webhook"]["secret"]);
    }
}

#[tokio::test]
async fn what_cannot_be_cleared_is_not_cleared() {
    let app = TestApp::start().await;
    let made = make(&app, json!({"name": "Shop"})).await;
    for field in ["name", "setAsDefault", "webhookActive", "emailReceivingEnabled"] {
        assert_eq!(faults(&patch(&app, &made, json!({field: null})).await), [field]);
    }
    assert_eq!(faults(&patch(&app, &made, json!({"webhookActive": true})).await), ["webhookActive"], "there is no webhook");
    assert_eq!(faults(&patch(&app, &made, json!({"webhookUrl": null, "webhookEvents": ["message.sent"]})).await), ["webhookEvents"]);
    assert_eq!(faults(&patch(&app, &made, json!({"isDefault": true})).await), ["isDefault"], "unknown");
    patch(&app, &json!({"id": "snd_nonsense"}), json!({"name": "x"})).await.expect(404);
}

// holds: senders.default
#[tokio::test]
async fn a_world_has_one_default_sender() {
    for app in TestApp::on_each().await {
        let first = default_sender(&app).await;
        let second = make(&app, json!({"name": "Second", "setAsDefault": true})).await;
        assert_eq!((&second["isDefault"], &default_sender(&app).await["id"]), (&json!(true), &second["id"]));
        let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        assert_eq!(app.message(&id).await["senderId"], second["id"]);
        assert_eq!(faults(&patch(&app, &second, json!({"setAsDefault": false})).await), ["setAsDefault"]);
        patch(&app, &first, json!({"setAsDefault": false})).await.expect(200);
        assert_eq!(patch(&app, &first, json!({"setAsDefault": true})).await.expect(200).json()["isDefault"], true);
        assert_eq!(app.get(&path(&second)).await.json()["isDefault"], false);
    }
}

// holds: senders.list
#[tokio::test]
async fn pages_show_each_sender_once_and_no_other_world() {
    let app = TestApp::start().await;
    for n in 0..4 {
        make(&app, json!({"name": format!("s{n}")})).await;
        app.clock.advance(Duration::from_millis(1)); // ids of the same millisecond have no order
    }
    live(&app, "POST", "/v1/senders", Some(json!({"name": "elsewhere"}))).await.expect(201);
    let (mut names, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("/v1/senders?limit=2{cursor}")).await.expect(200).json();
        names.extend(page["items"].as_array().expect("items").iter().map(|s| s["name"].as_str().expect("a name").to_owned()));
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(names, ["s3", "s2", "s1", "s0", "Default"]);
    for bad in ["limit=0", "limit=101", "cursor=x", "name=x"] {
        app.get(&format!("/v1/senders?{bad}")).await.expect(400);
    }
    live(&app, "GET", &format!("/v1/senders?limit=2{cursor}"), None).await.expect(400);
}

#[tokio::test]
async fn one_key_makes_one_sender() {
    for app in TestApp::on_each().await {
        let auth = format!("Bearer {}", app.test_key);
        let body = json!({"name": "Once", "webhookUrl": "https://example.com/x"});
        let made = app.once("k", "/v1/senders", body.clone()).await.expect(201).json();
        let mut same = body.clone();
        (same["setAsDefault"], same["phoneNumber"]) = (json!(false), json!(null));
        let repeat = app.once("k", "/v1/senders", same).await.expect(409).json();
        assert_eq!((&repeat["code"], &repeat["sender"]["id"]), (&json!("idempotency_conflict"), &made["id"]));
        assert!(repeat["sender"]["webhook"].get("secret").is_none(), "{repeat}");
        let other = app.once("k", "/v1/senders", json!({"name": "Twice"})).await.expect(409).json();
        assert_eq!((&other["code"], &other["error"]["code"]), (&json!("idempotency_key_reused"), &json!("idempotency_key_reused")));
        app.request("DELETE", &path(&made), None).await.expect(204);
        let gone = app.once("k", "/v1/senders", body).await.expect(409).json();
        assert_eq!((&gone["code"], gone.get("sender")), (&json!("idempotency_conflict"), None));
        app.send("POST", "/v1/senders", &[("authorization", &auth), ("idempotency-key", "")], Some(json!({"name": "x"}))).await.expect(400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_requests_neither_double_nor_undo_each_other() {
    for backend in Backend::all() {
        let app = Arc::new(TestApp::on(backend).await);
        let one = |n: usize| {
            let app = Arc::clone(&app);
            tokio::spawn(async move {
                let body = json!({"name": if n == 99 { "other" } else { "same" }});
                app.once("k", "/v1/senders", body).await.status.as_u16()
            })
        };
        let requests: Vec<_> = (0..20).map(one).collect();
        let mut statuses = Vec::new();
        for request in requests {
            statuses.push(request.await.expect("the request ends"));
        }
        assert_eq!((statuses.iter().filter(|s| **s == 201).count(), statuses.iter().filter(|s| **s == 409).count()), (1, 19));

        let made = make(&app, json!({"name": "Shop"})).await;
        let fields = [
            json!({"name": "New"}),
            json!({"phoneNumber": "+34600111222"}),
            json!({"dailySpendLimit": 3}),
            json!({"emailReceivingEnabled": true}),
            json!({"allowedCountries": ["ES"]}),
            json!({"webhookUrl": "https://example.com/x"}),
            json!({"setAsDefault": true}),
        ];
        let changes: Vec<_> = fields
            .into_iter()
            .map(|body| {
                let (app, made) = (Arc::clone(&app), made.clone());
                tokio::spawn(async move { patch(&app, &made, body).await.expect(200) })
            })
            .collect();
        for change in changes {
            change.await.expect("the request ends");
        }
        let after = app.get(&path(&made)).await.expect(200).json();
        let expected = json!({"name": "New", "phoneNumber": "+34600111222", "dailySpendLimit": 3, "emailReceivingEnabled": true, "allowedCountries": ["ES"], "isDefault": true});
        for (field, value) in expected.as_object().expect("fields") {
            assert_eq!(&after[field], value, "{field}");
        }
        assert_eq!(after["webhook"]["url"], "https://example.com/x");
    }
}

// holds: senders.delete, senders.delete.refused
#[tokio::test]
async fn a_sender_goes_only_when_nothing_needs_it() {
    for app in TestApp::on_each().await {
        let default = default_sender(&app).await;
        let refused = app.request("DELETE", &path(&default), None).await.expect(400).json();
        assert_eq!((&refused["code"], &refused["details"]["reason"]), (&json!("invalid_request"), &json!("default_sender")));
        assert!(refused["message"].as_str().is_some_and(|m| !m.is_empty()) && refused.get("error").is_none(), "{refused}");

        let made = make(&app, json!({"name": "Old", "webhookUrl": "https://example.com/x"})).await;
        let auth = format!("Bearer {}", app.test_key);
        let headers = [("authorization", auth.as_str()), ("service-sender", made["id"].as_str().expect("an id"))];
        let ahead = app.node.core.ids().clock.now().plus(std::time::Duration::from_secs(3_600));
        let body = json!({"to": "+34600111222", "text": "later", "scheduledAt": ahead});
        let message = app.send("POST", "/v1/messages", &headers, Some(body)).await.expect(202).json()["message"]["id"].clone();
        let message = message.as_str().expect("an id").to_owned();
        for _ in 0..2 {
            let refused = app.request("DELETE", &path(&made), None).await.expect(400).json();
            assert_eq!(refused["details"]["reason"], "queued_messages");
            app.advance(Duration::from_secs(300)).await; // long ago or just now, it counts
        }
        app.request("POST", &format!("/v1/messages/{message}/cancel"), None).await.expect(200);
        // A person may still approve what the review rejected.
        let lure = json!({"name": "x", "channel": "sms", "text": "Please reply with your password to win", "senderId": made["id"]});
        let broadcast = draft(&app, lure).await;
        add(&app, &broadcast, phones(1)).await;
        act(&app, &broadcast, "send").await.expect(202);
        app.drain().await;
        assert_eq!(status(&app, &broadcast).await, "rejected");
        let refused = app.request("DELETE", &path(&made), None).await.expect(400).json();
        assert_eq!(refused["details"]["reason"], "queued_messages");
        act(&app, &broadcast, "cancel").await.expect(200);
        let answer = app.request("DELETE", &path(&made), None).await.expect(204);
        assert_eq!(answer.text, "");
        assert_eq!(app.message(&message).await["senderId"], made["id"], "its messages stay readable");
        app.get(&path(&made)).await.expect(404);
        app.request("DELETE", &path(&made), None).await.expect(404);
        app.request("POST", &format!("{}/webhook/secret", path(&made)), None).await.expect(404);
        app.send("POST", "/v1/messages", &headers, Some(json!({"to": "+34600111222", "text": "x"}))).await.expect(404);
        let mut tx = app.store().read().await.expect("a reader");
        let left = tx.list_webhooks(app.tenant()).await.expect("webhooks");
        assert_eq!(left, [], "its webhook went with it");
        let world = tx.load_tenant(app.tenant()).await.expect("a look").expect("the world");
        assert!(world.connections.iter().all(|c| c.sender.to_string() != made["id"].as_str().expect("an id")), "and its connections");
    }
}

// holds: senders.countries
#[tokio::test]
async fn countries_that_are_left_out_get_nothing() {
    let app = TestApp::start().await;
    let sender = default_sender(&app).await;
    patch(&app, &sender, json!({"allowedCountries": ["ES"]})).await.expect(200);
    for (to, status) in [("+34600111222", 202), ("+12125550100", 400), ("a@example.org", 202)] {
        let answer = app
            .post("/v1/messages", json!({"to": to, "text": "x", "subject": if to.contains('@') { json!("s") } else { json!(null) }}))
            .await;
        assert_eq!(answer.status.as_u16(), status, "{to}: {}", answer.text);
        if status == 400 {
            assert_eq!(faults(&answer), ["to"]);
            assert!(answer.text.contains("allowedCountries") && answer.text.contains("US"), "{}", answer.text);
        }
    }
    app.post("/v1/messages?dryRun=true", json!({"to": "+12125550100", "text": "x"})).await.expect(400);
    patch(&app, &sender, json!({"allowedCountries": null})).await.expect(200);
    app.post("/v1/messages", json!({"to": "+12125550100", "text": "x"})).await.expect(202);
}

async fn command(app: &TestApp, command: Command) -> nuncio_domain::Result<CommandOutput> {
    run(&app.node.core, Request { project: None, command }).await
}

#[tokio::test]
async fn set_up_is_carried_over_to_the_other_world() {
    for backend in Backend::all() {
        let app = with_stand_in(backend).await;
        let body = json!({"name": "Shop", "phoneNumber": "+34600111222", "webhookUrl": "https://example.com/x", "webhookEvents": ["message.sent"],
            "emailReceivingEnabled": true, "allowedCountries": ["ES"], "dailySpendLimit": 2.5});
        let made = make(&app, body).await;
        app.request("PATCH", &format!("{}/profile", path(&made)), Some(json!({"about": "hello", "vertical": "RETAIL"}))).await.expect(200);
        let id = made["id"].as_str().expect("an id").to_owned();
        let wrong = command(&app, Command::SendersCopy { id: id.clone(), to: Environment::Test }).await.expect_err("it is of that world");
        assert_eq!(wrong.code().as_str(), "not_found");
        let answer = command(&app, Command::SendersCopy { id, to: Environment::Live }).await.expect("a copy");
        let secret = answer.json["webhook"]["secret"].as_str().expect("a secret");
        assert!(answer.text.contains(secret) && made["webhook"]["secret"] != *secret, "a secret of its own, shown once");
        let copied = live(&app, "GET", &path(&answer.json), None).await.expect(200).json();
        for field in ["name", "phoneNumber", "emailReceivingEnabled", "allowedCountries", "dailySpendLimit"] {
            assert_eq!(copied[field], made[field], "{field}");
        }
        assert_eq!((&copied["isDefault"], &copied["connections"]), (&json!(false), &json!([])), "nothing simulated is copied");
        assert_eq!((&copied["webhook"]["url"], &copied["webhook"]["events"]), (&made["webhook"]["url"], &made["webhook"]["events"]));
        let profile = format!("{}/profile", path(&copied));
        live(&app, "GET", &profile, None).await.expect(400);
        // The provider gets the profile when it is finally connected.
        live(&app, "PUT", &format!("{}/channels/whatsapp", path(&copied)), Some(json!({"kind": "stand_in"}))).await.expect(201);
        let profile = live(&app, "GET", &profile, None).await.expect(200).json();
        assert_eq!((&profile["profile"]["about"], &profile["profile"]["vertical"]), (&json!("hello"), &json!("RETAIL")));
    }
}

#[tokio::test]
async fn the_command_line_does_what_the_api_does() {
    let app = TestApp::start().await;
    let create = Command::SendersCreate { env: Environment::Live, sender: json!({"name": "Shop"}) };
    let made = command(&app, create).await.expect("a sender").json;
    let id = made["id"].as_str().expect("an id").to_owned();
    let change = json!({"name": "Store", "setAsDefault": true});
    let update = Command::SendersUpdate { env: Environment::Live, id: id.clone(), change };
    command(&app, update).await.expect("a change");
    let shown = live(&app, "GET", &path(&made), None).await.expect(200).json();
    assert_eq!((&shown["name"], &shown["isDefault"]), (&json!("Store"), &json!(true)));
    command(&app, Command::SendersDelete { env: Environment::Live, id }).await.expect_err("it is the default one");
    let list = command(&app, Command::SendersList { env: Some(Environment::Live) }).await.expect("a list").json;
    let first = list.as_array().expect("senders").iter().find(|s| s["isDefault"] == false).expect("the other one");
    let id = first["id"].as_str().expect("an id").to_owned();
    command(&app, Command::SendersDelete { env: Environment::Live, id: id.clone() }).await.expect("it goes");
    live(&app, "GET", &format!("/v1/senders/{id}"), None).await.expect(404);
}
