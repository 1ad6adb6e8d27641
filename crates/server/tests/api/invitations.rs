//! Invitations in the API. `invite.rs` tests the client's pages.

use std::time::Duration;

use insta::assert_snapshot;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::invitation::Invitation;
use nuncio_domain::{Environment, InvitationId};
use nuncio_testkit::{TestApp, TestResponse};
use serde_json::{Value, json};

use super::at_once;

const DAY: Duration = Duration::from_secs(86_400);

async fn invite(app: &TestApp, body: Value) -> Value {
    app.post("/v1/invitations", body).await.expect(201).json()["invitation"].clone()
}

fn path(invitation: &Value) -> String {
    format!("/v1/invitations/{}", invitation["id"].as_str().expect("an id"))
}

async fn get(app: &TestApp, invitation: &Value) -> Value {
    app.get(&path(invitation)).await.expect(200).json()["invitation"].clone()
}

/// Returns the events of an invitation: sequence, previous and new status; and the last one in full.
pub(super) async fn events(app: &TestApp, invitation: &Value) -> (Vec<(i64, String, String)>, Value) {
    let id: InvitationId = invitation["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let mut tx = app.store().read().await.expect("a reader");
    let rows = tx.list_resource_events(app.tenant(), ResourceKind::Invitation, id.uuid()).await.expect("events");
    let (mut told, mut last) = (Vec::new(), Value::Null);
    for (sequence, occurrences) in rows {
        let data = Value::Object(occurrences[0].data.clone());
        assert_eq!((occurrences.len(), occurrences[0].kind.as_str(), occurrences[0].sender), (1, "invitation.status_changed", None));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        told.push((sequence, text(&data["previousStatus"]), text(&data["invitation"]["status"])));
        last = data;
    }
    (told, last)
}

fn paths(answer: &TestResponse) -> Vec<String> {
    let errors = answer.json()["details"]["errors"].clone();
    errors.as_array().expect("faults").iter().map(|e| e["path"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn number(app: &TestApp, phone_number: &str) -> String {
    let acquired = app.post("/v1/phone-numbers", json!({"phoneNumber": phone_number})).await.expect(201).json();
    acquired["phoneNumber"]["id"].as_str().expect("an id").to_owned()
}

/// Whoever has the link can make a sender.
#[tokio::test]
async fn a_key_that_only_reads_does_not_get_the_link() {
    let app = TestApp::start().await;
    let mut made = invite(&app, json!({})).await;
    let reads = app.key(Environment::Test, &["invitations:read"]).await;
    let found = app.with_key(&reads, "GET", &path(&made), None).await.expect(200).json();
    let listed = app.with_key(&reads, "GET", "/v1/invitations", None).await.expect(200).json();
    assert_eq!(get(&app, &made).await, made, "a key that can write gets it");
    (made["url"], made["token"]) = (json!(""), json!(""));
    assert_eq!((&found["invitation"], &listed["items"][0]), (&made, &made));
}

// holds: invitations.fields, invitations.get
#[tokio::test]
async fn an_invitation_as_it_is_shown() {
    let app = TestApp::start().await;
    let plain = app.post("/v1/invitations", json!({})).await.expect(201).json();
    assert_snapshot!(crate::pretty(&plain));
    let full = json!({"clientName": "Ada", "clientEmail": "Ada@EXAMPLE.org", "clientPhone": "+34600111222", "expiresInDays": 30,
        "phoneNumberId": number(&app, "+12025550142").await, "allowedPhoneCountries": ["es", "ES", "FR"]});
    let made = invite(&app, full).await;
    assert_eq!((&made["clientEmail"], &made["expiresAt"]), (&json!("Ada@example.org"), &json!("2026-01-31T00:00:00.000Z")));
    assert_eq!(get(&app, &made).await, made);
    assert!(
        made["url"]
            .as_str()
            .is_some_and(|url| url == format!("https://nuncio.example/invite/{}", made["token"].as_str().unwrap_or_default()))
    );
}

#[tokio::test]
async fn an_invitation_needs_no_body() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let wanted = get(&app, &invite(&app, json!({})).await).await;
    for headers in [&[("authorization", auth.as_str())][..], &[("authorization", &auth), ("content-type", "application/json")]] {
        let made = app.raw("POST", "/v1/invitations", headers, Vec::new()).await.expect(201).json()["invitation"].clone();
        assert_eq!((&made["status"], &made["expiresAt"]), (&wanted["status"], &wanted["expiresAt"]), "as with an empty object");
    }
}

#[tokio::test]
async fn tokens_are_256_bits_and_lie_encrypted() {
    for app in TestApp::on_each().await {
        let (one, other) = (invite(&app, json!({})).await, invite(&app, json!({})).await);
        assert_ne!(one["token"], other["token"]);
        let token = one["token"].as_str().expect("a token");
        assert_eq!(token.len(), 54, "256 random bits and a checksum");
        let id = one["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let stored = app.store().read().await.expect("a reader").find_invitation(app.tenant(), id).await.expect("a look").expect("it");
        assert!(!stored.sealed.expose().windows(token.len()).any(|part| part == token.as_bytes()));
        assert!(!format!("{stored:?}").contains(token));
    }
}

#[tokio::test]
async fn a_link_whose_key_is_gone_hides_no_other() {
    let app = TestApp::start().await;
    let made = invite(&app, json!({})).await;
    let id = made["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let stored = app.store().read().await.expect("a reader").find_invitation(app.tenant(), id).await.expect("a look").expect("it");
    let mut tx = app.store().begin().await.expect("a transaction");
    let sealed = nuncio_domain::Redacted::new(vec![0; 60]);
    tx.insert_invitation(app.tenant(), &Invitation { id: app.node.core.ids().next(), sealed, ..stored }).await.expect("written");
    tx.commit().await.expect("committed");
    let items = app.get("/v1/invitations").await.expect(200).json()["items"].clone();
    let mut urls: Vec<_> = items.as_array().expect("items").iter().map(|i| i["url"].as_str().unwrap_or("none")).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["", made["url"].as_str().unwrap_or_default()]);
}

// holds: invitations.create
#[tokio::test]
async fn every_fault_is_told() {
    let app = TestApp::start().await;
    let wrong = json!({"clientName": "x".repeat(101), "clientEmail": "a@b", "clientPhone": "600", "expiresInDays": 31,
        "allowedPhoneCountries": ["ES", "ESP", "XX", "é"]});
    let answer = app.post("/v1/invitations", wrong).await.expect(400);
    let expected = [
        "clientName",
        "clientEmail",
        "clientPhone",
        "expiresInDays",
        "allowedPhoneCountries[1]",
        "allowedPhoneCountries[2]",
        "allowedPhoneCountries[3]",
    ];
    assert_eq!(paths(&answer), expected);
    for (body, path) in [
        (json!({"expiresInDays": 0}), "expiresInDays"),
        (json!({"allowedPhoneCountries": vec!["ES"; 251]}), "allowedPhoneCountries"),
        (json!({"clientNam": "x"}), "clientNam"),
        (json!({"expiresInDays": "7"}), "expiresInDays"),
        (json!({"expiresInDays": -1}), "expiresInDays"),
    ] {
        assert_eq!(paths(&app.post("/v1/invitations", body).await.expect(400)), [path]);
    }
    for number in ["num_x", "num_01hgw2bbg0e9tatjpp9vyrkcyk"] {
        app.post("/v1/invitations", json!({"phoneNumberId": number})).await.expect(404);
    }
    invite(&app, json!({"clientName": "é".repeat(100), "clientEmail": null, "expiresInDays": 1, "allowedPhoneCountries": []})).await;
}

#[tokio::test]
async fn a_repeat_answers_the_original() {
    for app in TestApp::on_each().await {
        let post = async |body: Value| app.once("k", "/v1/invitations", body).await;
        post(json!({"expiresInDays": 99})).await.expect(400);
        let first = post(json!({"clientName": "Ada"})).await.expect(201).json()["invitation"].clone();
        let repeat = post(json!({"clientName": "Ada"})).await.expect(409).json();
        assert_eq!((&repeat["code"], &repeat["invitation"]), (&json!("idempotency_conflict"), &first));
        let other = post(json!({"clientName": "Bob"})).await.expect(409).json();
        assert_eq!((&other["code"], &other["invitation"]["id"]), (&json!("idempotency_key_reused"), &first["id"]));
        assert_eq!(app.get("/v1/invitations").await.json()["items"].as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test]
async fn a_number_is_set_aside_for_one_invitation() {
    for app in TestApp::on_each().await {
        let number = number(&app, "+12025550142").await;
        let first = invite(&app, json!({"phoneNumberId": number, "expiresInDays": 1})).await;
        assert_eq!(app.post("/v1/invitations", json!({"phoneNumberId": number})).await.expect(409).json()["code"], "conflict");
        let sender = app.post("/v1/senders", json!({"name": "desk"})).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        let path_of_number = format!("/v1/phone-numbers/{number}");
        app.request("PATCH", &path_of_number, Some(json!({"senderId": sender}))).await.expect(409);
        app.request("DELETE", &path_of_number, None).await.expect(409);
        let take = json!({"phoneNumber": "+12025550142"});
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(take)).await.expect(409);
        app.post(&format!("{}/cancel", path(&first)), json!({})).await.expect(200);
        let second = invite(&app, json!({"phoneNumberId": number, "expiresInDays": 1})).await;
        app.clock.advance(DAY);
        assert_eq!(get(&app, &second).await["status"], "expired");
        app.request("PATCH", &path_of_number, Some(json!({"senderId": sender}))).await.expect(200);
        let taken = app.post("/v1/invitations", json!({"phoneNumberId": number})).await.expect(409).json();
        assert!(taken["message"].as_str().is_some_and(|m| m.contains(&sender)), "{taken}");
    }
}

// holds: invitations.cancel
#[tokio::test]
async fn an_open_invitation_is_cancelled_once() {
    for app in TestApp::on_each().await {
        let made = invite(&app, json!({})).await;
        let cancelled = app.request("POST", &format!("{}/cancel", path(&made)), None).await.expect(200).json()["invitation"].clone();
        assert_eq!(cancelled["status"], "cancelled");
        let (told, last) = events(&app, &made).await;
        assert_eq!(told, [(1, "pending".to_owned(), "cancelled".to_owned())]);
        let told = &last["invitation"];
        assert_eq!((told["id"].as_str(), told.get("token"), told.get("url")), (made["id"].as_str(), None, None), "no secrets in the log");
        app.drain().await;
        let log = app.get("/v1/events").await.expect(200).json();
        let newest = &log["items"][0];
        assert_eq!((&newest["type"], &newest["senderId"]), (&json!("invitation.status_changed"), &Value::Null), "{log}");
        assert_eq!((&newest["data"]["previousStatus"], &newest["data"]["invitation"]["id"]), (&json!("pending"), &made["id"]));
        let again = app.request("POST", &format!("{}/cancel", path(&made)), None).await.expect(400).json();
        assert_eq!(again["details"], json!({"currentStatus": "cancelled", "allowedFrom": ["pending", "in_progress"]}));
        app.post("/v1/invitations/inv_x/cancel", json!({})).await.expect(404);
    }
}

// holds: invitations.expiry
#[tokio::test]
async fn an_invitation_ends_at_its_moment_and_tells_so() {
    for app in TestApp::on_each().await {
        let made = invite(&app, json!({})).await;
        assert_eq!(made["expiresAt"], "2026-01-08T00:00:00.000Z");
        app.clock.advance(DAY * 7 - Duration::from_millis(1));
        assert_eq!(get(&app, &made).await["status"], "pending");
        app.clock.advance(Duration::from_millis(1));
        assert_eq!(get(&app, &made).await["status"], "expired", "though nobody wrote it down yet");
        let listed = app.get("/v1/invitations?status=expired").await.expect(200).json();
        assert_eq!(listed["items"][0]["id"], made["id"]);
        assert_eq!(events(&app, &made).await.0, []);
        let late = app.post(&format!("{}/cancel", path(&made)), json!({})).await.expect(400).json();
        assert_eq!(late["details"]["currentStatus"], "expired");
        for _ in 0..2 {
            app.advance(Duration::from_secs(1)).await;
            assert_eq!(events(&app, &made).await.0, [(1, "pending".to_owned(), "expired".to_owned())]);
        }
        assert_eq!(get(&app, &made).await["status"], "expired");
    }
}

#[tokio::test]
async fn of_two_nodes_one_tells_of_the_end() {
    for app in TestApp::on_each().await {
        let made = invite(&app, json!({"expiresInDays": 1})).await;
        app.clock.advance(DAY);
        // All nodes saw that it had ended; the others try after the event is stored.
        let id = made["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
        let invitations = app.node.core.invitations();
        let expire = || invitations.expire(app.tenant(), id);
        assert!(at_once(vec![expire(), expire(), expire()]).await.into_iter().all(|done| done.is_ok()));
        assert_eq!(events(&app, &made).await.0.len(), 1);
    }
}

// holds: invitations.list
#[tokio::test]
async fn invitations_are_listed_in_pages() {
    for app in TestApp::on_each().await {
        let mut made = Vec::new();
        for _ in 0..3 {
            app.clock.advance(Duration::from_millis(1));
            made.insert(0, invite(&app, json!({})).await);
        }
        app.post(&format!("{}/cancel", path(&made[1])), json!({})).await.expect(200);
        let page = async |query: &str| app.get(&format!("/v1/invitations?{query}")).await.expect(200).json();
        let ids = |page: &Value| page["items"].as_array().expect("items").iter().map(|i| i["id"].clone()).collect::<Vec<_>>();
        let first = page("limit=1&status=pending").await;
        assert_eq!(ids(&first), [made[0]["id"].clone()]);
        let cursor = first["nextCursor"].as_str().expect("a cursor");
        let last = page(&format!("status=pending&cursor={cursor}")).await;
        assert_eq!((ids(&last), &last["nextCursor"]), (vec![made[2]["id"].clone()], &Value::Null));
        app.get(&format!("/v1/invitations?cursor={cursor}")).await.expect(400);
        assert_eq!(ids(&page("status=cancelled,completed").await), [made[1]["id"].clone()]);
        let wrong = app.get("/v1/invitations?status=open&limit=101").await.expect(400);
        assert_eq!(paths(&wrong), ["query.limit"], "form first");
        assert_eq!(paths(&app.get("/v1/invitations?status=open").await.expect(400)), ["query.status"]);
    }
}
