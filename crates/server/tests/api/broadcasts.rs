//! Broadcasts: drafts and recipients, review, hand-over, and that nobody gets two.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::broadcast::Counts;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{ReceiptKind, Step};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{BroadcastId, Channel, Environment};
use nuncio_store::Transition;
use nuncio_testkit::{Answer, Backend, TestApp};
use serde_json::{Value, json};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn draft(app: &TestApp, body: Value) -> String {
    app.post("/v1/broadcasts", body).await.expect(201).json()["broadcast"]["id"].as_str().expect("an id").to_owned()
}

pub(crate) async fn text(app: &TestApp) -> String {
    draft(app, json!({"name": "News", "channel": "sms", "text": "Hello from Acme"})).await
}

pub(crate) async fn add(app: &TestApp, id: &str, recipients: impl IntoIterator<Item = String>) -> Value {
    let contacts: Vec<_> = recipients.into_iter().map(|r| json!({"recipient": r})).collect();
    app.post(&format!("/v1/broadcasts/{id}/contacts"), json!({"contacts": contacts})).await.expect(201).json()
}

pub(crate) fn phones(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("+3460{n:07}"))
}

pub(crate) async fn act(app: &TestApp, id: &str, verb: &str) -> Answer {
    app.request("POST", &format!("/v1/broadcasts/{id}/{verb}"), None).await
}

pub(crate) async fn get(app: &TestApp, id: &str) -> Value {
    app.get(&format!("/v1/broadcasts/{id}")).await.expect(200).json()["broadcast"].clone()
}

pub(crate) async fn status(app: &TestApp, id: &str) -> String {
    get(app, id).await["status"].as_str().expect("a status").to_owned()
}

/// A broadcast with so many recipients that was sent.
async fn sent(app: &TestApp, count: usize) -> String {
    let id = text(app).await;
    for chunk in phones(count).collect::<Vec<_>>().chunks(1_000) {
        add(app, &id, chunk.to_vec()).await;
    }
    act(app, &id, "send").await.expect(202);
    id
}

/// Runs everything until the broadcast has seen that it is through.
pub(crate) async fn finish(app: &TestApp) {
    app.drain().await;
    for _ in 0..3 {
        app.advance(2 * SECOND).await;
    }
}

pub(crate) fn counts(broadcast: &Value) -> [i64; 6] {
    let number = |name: &str| broadcast[name].as_i64().unwrap_or_else(|| panic!("{name}: {broadcast}"));
    let all = ["totalContacts", "pendingCount", "sendingCount", "deliveredCount", "failedCount", "skippedCount"].map(number);
    assert_eq!(all[0], all[1..].iter().sum::<i64>(), "{broadcast}");
    all
}

pub(crate) async fn contacts(app: &TestApp, id: &str, query: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("/v1/broadcasts/{id}/contacts?limit=100{query}{cursor}")).await.expect(200).json();
        all.extend(page["items"].as_array().expect("items").clone());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// How many messages each recipient has.
async fn messages(app: &TestApp) -> BTreeMap<String, usize> {
    let (mut all, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = app.get(&format!("/v1/messages?limit=100{cursor}")).await.expect(200).json();
        for message in page["items"].as_array().expect("items") {
            *all.entry(message["to"].as_str().expect("a recipient").to_owned()).or_default() += 1;
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// The statuses that were told, in order, after a look at whether their numbers have no gap that two events would share.
async fn told(app: &TestApp, id: &str) -> Vec<String> {
    let uuid = id.parse::<BroadcastId>().expect("an id").uuid();
    let mut tx = app.store().read().await.expect("a reader");
    let events = tx.list_resource_events(app.tenant(), ResourceKind::Broadcast, uuid).await.expect("events");
    let mut next = 0;
    let mut previous = None::<String>;
    let mut statuses = Vec::new();
    for (sequence, occurrences) in events {
        assert!(sequence > next);
        next = sequence + occurrences.len() as i64 - 1;
        for occurrence in occurrences {
            let (from, to) = (occurrence.data["previousStatus"].as_str(), occurrence.data["broadcast"]["status"].as_str());
            assert!(previous.is_none() || previous.as_deref() == from);
            previous = to.map(str::to_owned);
            statuses.extend(previous.clone());
        }
    }
    statuses
}

/// Whether the counts are what the recipients' own rows say.
pub(crate) async fn recount(app: &TestApp, id: &str) -> Counts {
    let id: BroadcastId = id.parse().expect("an id");
    let mut tx = app.store().read().await.expect("a reader");
    let counts = tx.find_broadcast(app.tenant(), id).await.expect("a look").expect("the broadcast").counts;
    let (mut all, mut before) = (Counts::default(), None);
    loop {
        let request = nuncio_domain::page::PageRequest { limit: 100, before };
        let page = tx.list_broadcast_contacts(app.tenant(), id, &[], request).await.expect("contacts");
        for contact in &page.items {
            let state = match contact.message {
                Some(message) => Some(tx.lookup_message(app.tenant(), message).await.expect("a look").expect("a message").state),
                None => None,
            };
            all.add(&state.map_or_else(|| Counts::of_status(contact.status), |state| Counts::of(&state)));
        }
        before = page.next;
        if before.is_none() {
            assert_eq!(counts, all);
            return counts;
        }
    }
}

/// The counts as they are at this moment.
pub(crate) async fn now(app: &TestApp, id: &str) -> Counts {
    let id: BroadcastId = id.parse().expect("an id");
    let mut tx = app.store().read().await.expect("a reader");
    tx.find_broadcast(app.tenant(), id).await.expect("a look").expect("the broadcast").counts
}

fn paths(answer: &Value) -> Vec<String> {
    let errors = answer["details"]["errors"].as_array().cloned().unwrap_or_default();
    errors.iter().map(|e| e["path"].as_str().unwrap_or_default().to_owned()).collect()
}

// holds: broadcasts.get, broadcasts.send, broadcasts.progress, broadcasts.transitions
#[tokio::test]
async fn a_broadcast_reaches_everybody_once() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = sent(&app, 3_000).await;
        assert_eq!(status(&app, &id).await, "pending_review");
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!(broadcast["status"], "completed", "{broadcast}");
        assert_eq!(counts(&broadcast), [3_000, 0, 0, 3_000, 0, 0]);
        assert_eq!((broadcast["reviewAttempts"].as_i64(), broadcast["reviewResult"]["score"].as_f64()), (Some(1), Some(1.0)));
        let messages = messages(&app).await;
        assert_eq!(messages.len(), 3_000);
        assert!(messages.values().all(|count| *count == 1));
        assert_eq!(told(&app, &id).await, ["pending_review", "approved", "sending", "completed"]);
        let progress = app.get(&format!("/v1/broadcasts/{id}/progress")).await.expect(200).json();
        assert_eq!((progress["percentComplete"].as_i64(), progress["delivered"].as_i64()), (Some(100), Some(3_000)));
        let one = &contacts(&app, &id, "&status=delivered").await[0];
        let message = app.message(one["messageId"].as_str().expect("a message")).await;
        assert_eq!((&message["to"], message["broadcastId"].as_str()), (&one["recipient"], Some(id.as_str())));
        assert_eq!((one["recipientType"].as_str(), one["processedAt"].is_string()), (Some("phone"), true));
        recount(&app, &id).await;
    }
}

// holds: broadcasts.contacts.list, broadcasts.counters
#[tokio::test]
async fn each_recipient_stands_where_their_message_does() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        // Opted out before.
        app.send_message(json!({"to": "+12135550007", "text": "x"})).await;
        app.drain().await;
        app.advance(SECOND).await;
        let id = text(&app).await;
        let special = ["+12125550001", "+12125550002", "+12125550003", "+12125550005", "+12125550008", "+12135550007"];
        add(&app, &id, special.map(str::to_owned).into_iter().chain(phones(2))).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("sending"), [8, 0, 3, 2, 2, 1]));
        assert_eq!(broadcast["sentCount"], 1);
        recount(&app, &id).await;
        app.advance(Duration::from_secs(60)).await;
        let broadcast = get(&app, &id).await;
        assert_eq!(counts(&broadcast), [8, 0, 2, 3, 2, 1], "the time-out was tried again");
        let by = contacts(&app, &id, "").await;
        let by: HashMap<_, _> = by.iter().map(|c| (c["recipient"].as_str().unwrap_or_default(), c)).collect();
        let of = |to: &str| (by[to]["status"].as_str().unwrap_or_default(), by[to]["errorCode"].as_str().unwrap_or_default());
        assert_eq!(of("+12125550001"), ("failed", "invalid_recipient"));
        assert_eq!(of("+12125550002"), ("failed", "undeliverable"));
        assert_eq!(of("+12125550005"), ("sending", ""));
        assert_eq!(of("+12125550008"), ("sending", ""), "held: a broadcast does not resend what may have gone out");
        assert_eq!(of("+12135550007"), ("skipped", "recipient_suppressed"));
        assert_eq!(contacts(&app, &id, "&status=failed").await.len(), 2);
        assert_eq!(contacts(&app, &id, "&status=failed,skipped").await.len(), 3);
        app.get(&format!("/v1/broadcasts/{id}/contacts?status=lost")).await.expect(400);
        // Once nobody waits for the receipt any more it is through, and who told nothing stays where they are.
        app.advance(Duration::from_secs(86_401)).await;
        app.advance(Duration::from_secs(60)).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("completed"), [8, 0, 2, 3, 2, 1]));
        recount(&app, &id).await;
        // A person decides about the held one: the numbers follow, the broadcast is over.
        let held = by["+12125550008"]["messageId"].as_str().expect("a message");
        app.post(&format!("/v1/messages/{held}/resolve"), json!({"action": "failed"})).await.expect(200);
        assert_eq!(counts(&get(&app, &id).await), [8, 0, 1, 3, 3, 1]);
        recount(&app, &id).await;
    }
}

// holds: broadcasts.suppressed
#[tokio::test]
async fn a_stop_during_a_broadcast_is_respected() {
    let app = TestApp::start().await;
    let id = text(&app).await;
    add(&app, &id, phones(10)).await;
    act(&app, &id, "send").await.expect(202);
    let recipient = nuncio_domain::Recipient { kind: nuncio_domain::AddressKind::Phone, identifier: "+34600000003".into() };
    let world = app.node.core.world(app.tenant()).await.expect("the test world");
    let mut tx = app.store().begin().await.expect("a transaction");
    let suppression = nuncio_store::Suppression {
        id: app.node.core.ids().next(),
        recipient,
        sender: Some(world.default_sender().expect("a sender").id),
        reason: nuncio_store::SuppressionReason::OptOut,
        source: "test".into(),
    };
    tx.insert_suppression(app.tenant(), &suppression, app.node.core.ids().clock.now()).await.expect("written");
    tx.commit().await.expect("committed");
    finish(&app).await;
    assert_eq!(counts(&get(&app, &id).await), [10, 0, 0, 9, 0, 1]);
    assert_eq!(contacts(&app, &id, "&status=skipped").await[0]["recipient"], "+34600000003");
}

// holds: broadcasts.create, broadcasts.fields, broadcasts.list, broadcasts.update, broadcasts.delete
#[tokio::test]
async fn drafts_are_made_edited_listed_and_deleted() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let body = json!({"name": "A", "channel": "auto", "text": "Hello", "metadata": {"a": 1}, "scheduledAt": "2026-06-01T00:00:00Z"});
        let id = draft(&app, body).await;
        let made = get(&app, &id).await;
        assert_eq!(
            (made["status"].as_str(), made["channel"].as_str(), made["messageType"].as_str()),
            (Some("draft"), Some("smart"), Some("text"))
        );
        assert_eq!((made["totalContacts"].as_i64(), made["scheduledAt"].as_str()), (Some(0), Some("2026-06-01T00:00:00.000Z")));
        assert!(made["senderId"].is_string() && made.get("estimatedCost").is_none(), "{made}");
        let path = format!("/v1/broadcasts/{id}");
        let patch = json!({"name": "B", "text": "Bye", "metadata": null, "emailSubject": "News"});
        let changed = app.request("PATCH", &path, Some(patch)).await.expect(200).json()["broadcast"].clone();
        assert_eq!((changed["name"].as_str(), changed["text"].as_str(), changed.get("metadata")), (Some("B"), Some("Bye"), None));
        assert_eq!(changed["emailSubject"], "News");
        let kept = app.request("PATCH", &path, Some(json!({}))).await.expect(200).json()["broadcast"].clone();
        assert_eq!((kept["name"].as_str(), kept["text"].as_str()), (Some("B"), Some("Bye")));
        assert_eq!(paths(&app.request("PATCH", &path, Some(json!({"name": null}))).await.expect(400).json()), ["name"]);
        assert_eq!(paths(&app.request("PATCH", &path, Some(json!({"text": null}))).await.expect(400).json()), ["text"]);
        assert_eq!(paths(&app.request("PATCH", &path, Some(json!({"channel": "sms"}))).await.expect(400).json()), ["channel"]);
        app.clock.advance(Duration::from_millis(1));
        let other = text(&app).await;
        let list = app.get("/v1/broadcasts?limit=1&status=draft,sending").await.expect(200).json();
        assert_eq!(list["items"][0]["id"], other.as_str());
        let next = format!("/v1/broadcasts?limit=1&status=draft,sending&cursor={}", list["nextCursor"].as_str().expect("a cursor"));
        assert_eq!(app.get(&next).await.expect(200).json()["items"][0]["id"], id.as_str());
        assert_eq!(app.get("/v1/broadcasts?status=paused").await.expect(200).json()["items"], json!([]));
        app.get("/v1/broadcasts?status=gone").await.expect(400);
        add(&app, &id, phones(3)).await;
        app.request("DELETE", &path, None).await.expect(204);
        app.get(&path).await.expect(404);
        let live = format!("Bearer {}", app.live_key);
        app.send("GET", &format!("/v1/broadcasts/{other}"), &[("authorization", &live)], None).await.expect(404);
    }
}

#[tokio::test]
async fn every_fault_of_a_broadcast_is_told() {
    let app = TestApp::start().await;
    let wrong = async |body: Value| {
        let answer = app.post("/v1/broadcasts", body).await.expect(400).json();
        paths(&answer)
    };
    assert_eq!(wrong(json!({"channel": "pigeon", "colour": "red"})).await.len(), 3);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms"})).await, ["text"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x".repeat(1_601)})).await, ["text"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "email", "text": "x"})).await, ["emailSubject"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "emailSubject": "x"})).await, ["emailSubject"]);
    assert_eq!(
        wrong(json!({"name": "x", "channel": "voice", "messageType": "image", "content": {"mediaUrl": "https://e.org/x"}})).await,
        ["messageType"]
    );
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "messageType": "image"})).await, ["content.mediaUrl"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "content": {"emoji": "x"}})).await, ["content.emoji"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "messageType": "sticker"})).await, ["messageType"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "scheduledAt": "2027-01-02T00:00:00Z"})).await, ["scheduledAt"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "metadata": {"a": "x".repeat(17_000)}})).await, ["metadata"]);
    app.post("/v1/broadcasts", json!({"name": "x", "channel": "sms", "text": "x", "senderId": "snd_nobody"})).await.expect(404);
    let template = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": "tpl_nothing"}});
    app.post("/v1/broadcasts", template).await.expect(404);
}

// holds: broadcasts.idempotency
#[tokio::test]
async fn one_key_makes_one_broadcast() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let body = json!({"name": "x", "channel": "sms", "text": "x", "idempotencyKey": "k"});
        let id = draft(&app, body.clone()).await;
        let auth = format!("Bearer {}", app.test_key);
        let headers = [("authorization", auth.as_str()), ("idempotency-key", "k")];
        let bare = json!({"name": "x", "channel": "sms", "text": "x"});
        let repeat = app.send("POST", "/v1/broadcasts", &headers, Some(bare)).await.expect(409).json();
        assert_eq!((repeat["broadcast"]["id"].as_str(), repeat["code"].as_str()), (Some(id.as_str()), Some("idempotency_conflict")));
        let reused = app.post("/v1/broadcasts", json!({"name": "y", "channel": "sms", "text": "x", "idempotencyKey": "k"})).await;
        assert_eq!(reused.expect(409).json()["code"], "idempotency_key_reused");
        assert_eq!(app.get("/v1/broadcasts").await.json()["items"].as_array().map(Vec::len), Some(1));
    }
}

// holds: broadcasts.contacts.add, broadcasts.contacts.remove, broadcasts.update
#[tokio::test]
async fn recipients_are_added_counted_and_removed() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = text(&app).await;
        let given = ["+34600111222", "+34600111222", "nonsense", "a@example.org", "12345", "+34600111223"];
        let outcome = add(&app, &id, given.map(str::to_owned)).await;
        assert_eq!((outcome["added"].as_i64(), outcome["duplicates"].as_i64(), outcome["invalid"].as_i64()), (Some(2), Some(1), Some(3)));
        assert_eq!(outcome["errors"][0]["recipient"], "nonsense");
        let outcome = add(&app, &id, ["+34600111222".to_owned()]).await;
        assert_eq!(outcome, json!({"added": 0, "duplicates": 1, "invalid": 0}));
        assert_eq!(counts(&get(&app, &id).await), [2, 2, 0, 0, 0, 0]);
        let path = format!("/v1/broadcasts/{id}/contacts");
        let many: Vec<_> = phones(1_001).map(|r| json!({"recipient": r})).collect();
        app.post(&path, json!({"contacts": many})).await.expect(400);
        app.post(&path, json!({"contacts": []})).await.expect(400);
        let variables = json!({"contacts": [{"recipient": "+34600111224", "templateVariables": {"1": "x"}}]});
        assert_eq!(app.post(&path, variables).await.expect(201).json()["invalid"], 1);
        let one = contacts(&app, &id, "&status=pending").await[0]["id"].as_str().expect("an id").to_owned();
        app.request("DELETE", &format!("{path}/{one}"), None).await.expect(204);
        app.request("DELETE", &format!("{path}/{one}"), None).await.expect(404);
        app.request("DELETE", &format!("{path}/bct_none"), None).await.expect(404);
        assert_eq!(counts(&get(&app, &id).await)[0], 1);
        act(&app, &id, "send").await.expect(202);
        let late = app.post(&path, json!({"contacts": [{"recipient": "+34600111229"}]})).await.expect(400).json();
        assert_eq!(late["details"], json!({"currentStatus": "pending_review", "allowedFrom": ["draft"]}));
        let left = contacts(&app, &id, "").await[0]["id"].as_str().expect("an id").to_owned();
        app.request("DELETE", &format!("{path}/{left}"), None).await.expect(400);
        app.request("DELETE", &format!("/v1/broadcasts/{id}"), None).await.expect(400);
        assert_eq!(
            app.request("PATCH", &format!("/v1/broadcasts/{id}"), Some(json!({"text": "y"}))).await.expect(400).json()["code"],
            "broadcast_not_editable"
        );
    }
}

#[tokio::test]
async fn templates_go_to_each_with_their_own_values() {
    let app = TestApp::start().await;
    let template = json!({"name": "hi", "language": "en", "body": "Hello {{1}} of {{2}}, says Acme"});
    let template = app.post("/v1/templates", template).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
    let body = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": template, "templateVariables": {"2": "Rome"}}});
    let id = draft(&app, body).await;
    let given = json!({"contacts": [
        {"recipient": "+34600111222", "templateVariables": {"1": "Ada"}},
        {"recipient": "+34600111223", "templateVariables": {"1": "Bo", "2": "Oslo"}},
        {"recipient": "+34600111224"},
        {"recipient": "+34600111225", "templateVariables": {"1": "x", "9": "x"}},
    ]});
    let outcome = app.post(&format!("/v1/broadcasts/{id}/contacts"), given).await.expect(201).json();
    assert_eq!((outcome["added"].as_i64(), outcome["invalid"].as_i64()), (Some(2), Some(2)));
    assert!(outcome["errors"][0]["reason"].as_str().is_some_and(|r| r.contains("templateVariables.1")), "{outcome}");
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    let mut texts = Vec::new();
    for contact in contacts(&app, &id, "").await {
        texts.push(app.message(contact["messageId"].as_str().expect("a message")).await["text"].clone());
        assert!(contact["variables"]["templateVariables"]["1"].is_string());
    }
    texts.sort_by_key(Value::to_string);
    assert_eq!(texts, ["Hello Ada of Rome, says Acme", "Hello Bo of Oslo, says Acme"]);
    let body = json!({"name": "x", "channel": "whatsapp", "messageType": "template", "content": {"templateId": template, "templateVariables": {"1": "a", "2": "b"}}});
    let id = draft(&app, body).await;
    add(&app, &id, phones(1)).await;
    assert_eq!(act(&app, &id, "send").await.expect(400).json()["code"], "template_not_approved");
}

#[tokio::test]
async fn a_smart_broadcast_reaches_phones_and_mailboxes() {
    let app = TestApp::start().await;
    let id = draft(&app, json!({"name": "x", "channel": "smart", "text": "Hello from Acme", "emailSubject": "News"})).await;
    let outcome = add(&app, &id, ["+34600111222".to_owned(), "ada@example.org".to_owned(), "4711".to_owned()]).await;
    assert_eq!((outcome["added"].as_i64(), outcome["invalid"].as_i64()), (Some(2), Some(1)));
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    assert_eq!(counts(&get(&app, &id).await), [2, 0, 0, 2, 0, 0]);
}

// holds: broadcasts.send.empty, broadcasts.transitions
#[tokio::test]
async fn what_cannot_go_out_is_said_before_and_after() {
    let app = TestApp::start().await;
    let id = text(&app).await;
    assert_eq!(act(&app, &id, "send").await.expect(400).json()["code"], "no_contacts");
    for verb in ["pause", "resume", "escalate", "retry-review"] {
        assert_eq!(act(&app, &id, verb).await.expect(400).json()["details"]["currentStatus"], "draft", "{verb}");
    }
    let path = format!("/v1/broadcasts/{id}/schedule");
    app.request("PATCH", &path, Some(json!({"scheduledAt": "2026-02-01T00:00:00Z"}))).await.expect(400);
    let live = format!("Bearer {}", app.live_key);
    let auth = [("authorization", live.as_str())];
    let made =
        app.send("POST", "/v1/broadcasts", &auth, Some(json!({"name": "x", "channel": "sms", "text": "x"}))).await.expect(201).json();
    let path = format!("/v1/broadcasts/{}", made["broadcast"]["id"].as_str().expect("an id"));
    let contacts = json!({"contacts": [{"recipient": "+34600111222"}]});
    app.send("POST", &format!("{path}/contacts"), &auth, Some(contacts)).await.expect(201);
    let refused = app.send("POST", &format!("{path}/send"), &auth, None).await.expect(400).json();
    assert_eq!(refused["code"], "sender_not_configured");
    // Nobody can be reached: outside the window, on WhatsApp. The broadcast fails, and says why for each.
    let id = draft(&app, json!({"name": "x", "channel": "whatsapp", "text": "Hello"})).await;
    add(&app, &id, ["+12125550009".to_owned()]).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    let broadcast = get(&app, &id).await;
    assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("failed"), [1, 0, 0, 0, 1, 0]));
    assert_eq!(self::contacts(&app, &id, "&status=failed").await[0]["errorCode"], "window_closed");
    // All are refused by the provider: nothing went out either.
    let id = text(&app).await;
    add(&app, &id, ["+12125550001".to_owned(), "+12135550001".to_owned()]).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    assert_eq!(status(&app, &id).await, "failed");
}

// holds: broadcasts.review, broadcasts.retry_review, broadcasts.escalate, broadcasts.transitions
#[tokio::test]
async fn a_rejected_broadcast_is_edited_reviewed_again_and_escalated() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let bad = "Please reply with your password to win";
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": bad})).await;
        add(&app, &id, phones(2)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), broadcast["reviewAttempts"].as_i64()), (Some("rejected"), Some(1)));
        let review = &broadcast["reviewResult"];
        assert!(review["score"].as_f64().is_some_and(|s| s < 0.6) && review["reviewedAt"].is_string(), "{review}");
        assert_eq!(review["flaggedContent"], json!([bad]));
        assert!(review["categories"].as_array().is_some_and(|c| c.contains(&json!("credential_request"))), "{review}");
        assert_eq!(counts(&broadcast), [2, 2, 0, 0, 0, 0]);
        let refused = act(&app, &id, "retry-review").await.expect(400).json();
        assert_eq!((refused["code"].as_str(), refused["details"]["currentStatus"].as_str()), (Some("invalid_request"), Some("rejected")));
        let path = format!("/v1/broadcasts/{id}");
        app.request("PATCH", &path, Some(json!({"name": "another name"}))).await.expect(200);
        act(&app, &id, "retry-review").await.expect(400); // a name is no content
        for attempt in 2..=3 {
            app.request("PATCH", &path, Some(json!({"text": format!("{bad} {attempt}")}))).await.expect(200);
            assert_eq!(act(&app, &id, "retry-review").await.expect(200).json()["broadcast"]["status"], "pending_review");
            app.drain().await;
            assert_eq!((status(&app, &id).await.as_str(), get(&app, &id).await["reviewAttempts"].as_i64()), ("rejected", Some(attempt)));
        }
        app.request("PATCH", &path, Some(json!({"text": "Hello from Acme"}))).await.expect(200);
        assert_eq!(act(&app, &id, "retry-review").await.expect(400).json()["code"], "review_attempts_exhausted");
        assert_eq!(act(&app, &id, "escalate").await.expect(200).json()["broadcast"]["status"], "escalated");
        act(&app, &id, "escalate").await.expect(400);
        let request = |command| nuncio::admin::Request { project: None, command };
        let listed = nuncio::admin::run(&app.node.core, request(nuncio::admin::Command::ReviewsList)).await.expect("a list");
        assert!(listed.text.contains(&id), "{}", listed.text);
        let decide = nuncio::admin::Command::ReviewsDecide { id: id.clone(), approve: true, reason: Some("a game".into()) };
        nuncio::admin::run(&app.node.core, request(decide)).await.expect("approved");
        finish(&app).await;
        assert_eq!(status(&app, &id).await, "completed");
        assert!(get(&app, &id).await["reviewResult"]["reasoning"].as_str().is_some_and(|r| r.contains("a game")));
        let told = told(&app, &id).await;
        assert_eq!(told[told.len() - 4..], ["escalated", "approved", "sending", "completed"]);
    }
}

// holds: broadcasts.escalate
#[tokio::test]
async fn what_an_operator_refuses_is_over() {
    let app = TestApp::start().await;
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Buy cocaine now"})).await;
    add(&app, &id, phones(1)).await;
    act(&app, &id, "send").await.expect(202);
    app.drain().await;
    act(&app, &id, "escalate").await.expect(200);
    let core = &app.node.core;
    assert!(core.decide_review(app.project.live, &id, false, None).await.is_err(), "another world");
    assert_eq!(core.decide_review(app.tenant(), &id, false, Some("no")).await.expect("refused").status, "rejected_final");
    assert!(core.decide_review(app.tenant(), &id, true, None).await.is_err());
    for verb in ["send", "cancel", "escalate", "retry-review", "resume"] {
        act(&app, &id, verb).await.expect(400);
    }
    assert!(messages(&app).await.is_empty());
}

// holds: broadcasts.schedule
#[tokio::test]
async fn a_scheduled_broadcast_waits_and_can_be_moved() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = text(&app).await;
        add(&app, &id, phones(2)).await;
        app.post(&format!("/v1/broadcasts/{id}/send"), json!({"scheduledAt": "2028-01-01T00:00:00Z"})).await.expect(400);
        app.post(&format!("/v1/broadcasts/{id}/send"), json!({"scheduledAt": "2026-01-01T01:00:00Z"})).await.expect(202);
        app.drain().await;
        assert_eq!(status(&app, &id).await, "scheduled");
        let path = format!("/v1/broadcasts/{id}/schedule");
        app.request("PATCH", &path, Some(json!({"scheduledAt": "2025-01-01T00:00:00Z"}))).await.expect(400);
        app.request("PATCH", &path, Some(json!({}))).await.expect(400);
        let moved = app.request("PATCH", &path, Some(json!({"scheduledAt": "2026-01-01T02:00:00Z"}))).await.expect(200).json();
        assert_eq!(moved["broadcast"]["scheduledAt"], "2026-01-01T02:00:00.000Z");
        app.advance(Duration::from_secs(7_199)).await;
        assert_eq!(status(&app, &id).await, "scheduled");
        app.advance(SECOND).await;
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), broadcast["startedAt"].as_str()), (Some("completed"), Some("2026-01-01T02:00:00.000Z")));
        let past = text(&app).await;
        add(&app, &past, phones(1)).await;
        app.post(&format!("/v1/broadcasts/{past}/send"), json!({"scheduledAt": "2025-01-01T00:00:00Z"})).await.expect(202);
        finish(&app).await;
        assert_eq!(status(&app, &past).await, "completed");
    }
}

#[tokio::test]
async fn what_is_found_long_after_its_time_waits_for_a_person() {
    let mut app = TestApp::start().await;
    let id = text(&app).await;
    add(&app, &id, phones(2)).await;
    app.post(&format!("/v1/broadcasts/{id}/send"), json!({"scheduledAt": "2026-01-01T01:00:00Z"})).await.expect(202);
    app.drain().await;
    app.clock.advance(Duration::from_secs(4 * 3_600));
    app.crash().await;
    app.drain().await;
    let broadcast = get(&app, &id).await;
    assert_eq!((broadcast["status"].as_str(), broadcast["heldReason"].as_str()), (Some("paused"), Some("past_due")));
    assert!(messages(&app).await.is_empty());
    act(&app, &id, "resume").await.expect(200);
    finish(&app).await;
    assert_eq!(status(&app, &id).await, "completed");
}

// holds: broadcasts.send.twice
#[tokio::test(flavor = "multi_thread")]
async fn of_two_sends_at_once_one_wins() {
    for backend in Backend::all() {
        let app = Arc::new(TestApp::on(backend).await);
        let id = text(&app).await;
        add(&app, &id, phones(20)).await;
        let sends: Vec<_> = (0..8)
            .map(|_| {
                let (app, id) = (app.clone(), id.clone());
                tokio::spawn(async move { act(&app, &id, "send").await.status.as_u16() })
            })
            .collect();
        let mut statuses = Vec::new();
        for send in sends {
            statuses.push(send.await.expect("it ends"));
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 400, 400, 400, 400, 400, 400, 400]);
        finish(&app).await;
        assert_eq!(get(&app, &id).await["reviewAttempts"], 1);
        assert_eq!(messages(&app).await.values().copied().collect::<Vec<_>>(), [1; 20]);
    }
}

// holds: broadcasts.pause
#[tokio::test(flavor = "multi_thread")]
async fn pause_stops_and_resume_goes_on() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = sent(&app, 2_000).await;
        while status(&app, &id).await != "sending" {
            app.node.dispatch.tick().await.expect("dispatch");
            tokio::task::yield_now().await;
        }
        act(&app, &id, "pause").await.expect(200);
        let handed = now(&app, &id).await.handled();
        app.drain().await;
        app.advance(Duration::from_secs(30)).await;
        let paused = get(&app, &id).await;
        assert_eq!(
            (paused["status"].as_str(), counts(&paused)[1]),
            (Some("paused"), 2_000 - handed),
            "nobody is handed over after a pause"
        );
        assert!(handed < 2_000, "the test must pause in the middle");
        act(&app, &id, "pause").await.expect(400);
        act(&app, &id, "resume").await.expect(200);
        act(&app, &id, "resume").await.expect(400);
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [2_000, 0, 0, 2_000, 0, 0]);
        assert!(messages(&app).await.values().all(|count| *count == 1));
    }
}

// holds: broadcasts.cancel
#[tokio::test(flavor = "multi_thread")]
async fn cancel_takes_back_what_no_provider_has() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = text(&app).await;
        // Those that are told to come back wait for their next attempt when the cancel comes.
        let slow = (200..700).map(|area| format!("+1{area}5550004"));
        add(&app, &id, slow).await;
        add(&app, &id, phones(1_000)).await;
        act(&app, &id, "send").await.expect(202);
        while now(&app, &id).await.taken == 0 {
            app.node.dispatch.tick().await.expect("dispatch");
            tokio::task::yield_now().await;
        }
        let cancelled = act(&app, &id, "cancel").await.expect(200).json()["broadcast"].clone();
        assert_eq!(cancelled["status"], "cancelled");
        counts(&cancelled);
        act(&app, &id, "cancel").await.expect(400);
        app.drain().await;
        app.advance(Duration::from_secs(60)).await;
        let broadcast = get(&app, &id).await;
        let [total, pending, sending, delivered, failed, skipped] = counts(&broadcast);
        assert_eq!((total, pending, sending, failed), (1_500, 0, 0, 0), "{broadcast}");
        assert!(delivered > 0 && skipped > 0, "{broadcast}");
        recount(&app, &id).await;
        let stopped = contacts(&app, &id, "&status=skipped").await;
        assert_eq!(stopped.len() as i64, skipped);
        assert!(contacts(&app, &id, "&status=pending").await.is_empty());
        for contact in stopped.iter().filter_map(|c| c["messageId"].as_str()) {
            assert_eq!(app.message(contact).await["status"], "cancelled");
        }
        assert_eq!(told(&app, &id).await.last().map(String::as_str), Some("cancelled"));
    }
}

#[tokio::test]
async fn a_message_whose_attempt_was_under_way_at_the_cancel_does_not_start_again() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = text(&app).await;
        add(&app, &id, ["+12125550003".to_owned()]).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        assert_eq!(counts(&get(&app, &id).await), [1, 0, 1, 0, 0, 0]);
        // The status alone, as if the node had died before it took anything back.
        let brd: BroadcastId = id.parse().expect("an id");
        let mut tx = app.store().begin().await.expect("a transaction");
        let mut broadcast = tx.find_broadcast(app.tenant(), brd).await.expect("a look").expect("the broadcast");
        let seen = broadcast.version;
        (broadcast.status, broadcast.due_at, broadcast.version) = (nuncio_domain::broadcast::Status::Cancelled, None, seen + 1);
        assert!(tx.update_broadcast(&broadcast, seen).await.expect("written"));
        tx.commit().await.expect("committed");
        app.advance(Duration::from_secs(60)).await;
        assert_eq!(counts(&get(&app, &id).await), [1, 0, 0, 0, 0, 1]);
        let message = contacts(&app, &id, "").await[0]["messageId"].as_str().expect("a message").to_owned();
        let message = app.message(&message).await;
        assert_eq!((message["status"].as_str(), message["attempts"].as_array().map(Vec::len)), (Some("cancelled"), Some(1)));
    }
}

// holds: broadcasts.resume
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_the_middle_of_the_hand_over_loses_and_doubles_nobody() {
    for backend in Backend::all() {
        let mut app = TestApp::on(backend).await;
        let id = sent(&app, 2_000).await;
        for after in [1, 300, 900] {
            while now(&app, &id).await.handled() < after {
                app.node.dispatch.tick().await.expect("dispatch");
                tokio::task::yield_now().await;
            }
            app.crash().await;
            app.clock.advance(Duration::from_secs(6)); // the dead node's lease
        }
        finish(&app).await;
        app.advance(Duration::from_secs(120)).await;
        let messages = messages(&app).await;
        assert_eq!(messages.len(), 2_000, "nobody is lost");
        assert!(messages.values().all(|count| *count == 1), "nobody gets two");
        recount(&app, &id).await;
        let broadcast = get(&app, &id).await;
        let [total, pending, sending, delivered, failed, skipped] = counts(&broadcast);
        assert_eq!((total, pending, failed, skipped), (2_000, 0, 0, 0), "{broadcast}");
        for contact in contacts(&app, &id, "&status=sending").await {
            let message = app.message(contact["messageId"].as_str().expect("a message")).await;
            assert!(message["heldReason"] == "unknown_outcome" || message["status"] == "sent", "{message}");
        }
        assert_eq!(sending + delivered, 2_000);
        assert_eq!(app.store().read().await.expect("a reader").count_unguarded_messages().await.expect("a count"), 0);
    }
}

/// Receipts of all kinds, late, early, repeated and contradicting each other.
// holds: broadcasts.counters
#[tokio::test]
async fn counts_add_up_whatever_receipts_come_in_whatever_order() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = text(&app).await;
        let silent = (200..230).map(|area| format!("+1{area}5550005"));
        add(&app, &id, silent.chain((200..205).map(|area| format!("+1{area}5550003"))).chain(phones(5))).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let messages: Vec<_> = contacts(&app, &id, "").await.iter().filter_map(|c| c["messageId"].as_str().map(str::to_owned)).collect();
        assert_eq!(messages.len(), 40);
        let entropy = &app.node.core.ids().entropy;
        for round in 0..150 {
            let message = messages[entropy.below(messages.len() as u64) as usize].parse().expect("an id");
            let now = app.node.core.ids().clock.now();
            let failure = || Failure::own(FailureCode::Undeliverable, "x");
            let step = match entropy.below(6) {
                0 => Step::Receipt { attempt: None, kind: ReceiptKind::Sent, at: now },
                1 => Step::Receipt { attempt: None, kind: ReceiptKind::Delivered, at: now },
                2 => Step::Receipt { attempt: None, kind: ReceiptKind::Read, at: now },
                3 => Step::Receipt { attempt: Some(0), kind: ReceiptKind::Failed(failure()), at: now },
                4 => Step::Cancel,
                _ => Step::Resolve { action: nuncio_domain::lifecycle::Resolution::Failed },
            };
            app.store().transition(Transition { tenant: app.tenant(), id: message, step, now }).await.expect("a step");
            if round % 10 == 0 {
                recount(&app, &id).await;
                counts(&get(&app, &id).await);
            }
        }
        recount(&app, &id).await;
        let event = nuncio_channel::ProviderEvent::Complaint { tenant: app.tenant(), message: messages[0].parse().expect("an id") };
        app.node.dispatch.services().events.push(event, Duration::ZERO);
        app.drain().await;
        recount(&app, &id).await;
    }
}

#[tokio::test]
async fn bulk_leaves_room_for_others() {
    let app = TestApp::start().await;
    let id = sent(&app, 1_500).await;
    app.node.dispatch.tick().await.expect("dispatch");
    let message = app.send_message(json!({"to": "+34699999999", "text": "your code"})).await;
    let born = app.message(&message).await;
    assert!(matches!(born["status"].as_str(), Some("sending" | "sent" | "delivered")), "it found a place at once: {born}");
    finish(&app).await;
    assert_eq!(status(&app, &id).await, "completed");
}

#[tokio::test]
async fn without_receipts_sent_is_delivered() {
    let app = TestApp::start().await;
    let part =
        nuncio_domain::broadcast::Part { broadcast: app.node.core.ids().next(), contact: app.node.core.ids().next(), no_receipts: true };
    let id = app.send_message(json!({"to": "+12125550005", "text": "x"})).await;
    app.drain().await;
    let mut tx = app.store().read().await.expect("a reader");
    let mut state = tx.lookup_message(app.tenant(), id.parse().expect("an id")).await.expect("a look").expect("a message").state;
    state.detail.broadcast = Some(nuncio_domain::broadcast::Part { no_receipts: false, ..part });
    assert_eq!((Counts::of(&state).sending, Counts::of(&state).sent), (1, 1));
    state.detail.broadcast = Some(part);
    assert_eq!((Counts::of(&state).delivered, Counts::of(&state).sending), (1, 0));
}

#[tokio::test]
async fn a_live_broadcast_by_email_waits_for_its_provider() {
    let app = TestApp::start().await;
    app.connect(Channel::Email, "smtp", json!({"host": "127.0.0.1", "port": 9, "tls": "none", "from": "a@example.org"}), json!({})).await;
    let live = format!("Bearer {}", app.key(Environment::Live, &[]).await);
    let auth = [("authorization", live.as_str())];
    let body = json!({"name": "x", "channel": "email", "text": "Hello from Acme", "emailSubject": "News"});
    let made = app.send("POST", "/v1/broadcasts", &auth, Some(body)).await.expect(201).json();
    let path = format!("/v1/broadcasts/{}", made["broadcast"]["id"].as_str().expect("an id"));
    let contacts: Vec<_> = (0..50).map(|n| json!({"recipient": format!("r{n}@example.net")})).collect();
    app.send("POST", &format!("{path}/contacts"), &auth, Some(json!({"contacts": contacts}))).await.expect(201);
    app.send("POST", &format!("{path}/send"), &auth, None).await.expect(202);
    app.drain().await;
    app.advance(Duration::from_secs(30)).await;
    let broadcast = app.send("GET", &path, &auth, None).await.expect(200).json()["broadcast"].clone();
    assert_eq!(broadcast["status"], "sending");
    assert_eq!(counts(&broadcast)[3..], [0, 0, 0]);
    app.send("POST", &format!("{path}/cancel"), &auth, None).await.expect(200);
    app.drain().await;
    app.advance(Duration::from_secs(600)).await;
    let broadcast = app.send("GET", &path, &auth, None).await.expect(200).json()["broadcast"].clone();
    assert_eq!(counts(&broadcast), [50, 0, 0, 0, 0, 50]);
}
