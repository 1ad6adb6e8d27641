//! Broadcasts: drafts and recipients, review, enqueueing, and at most one message per recipient.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use nuncio_domain::broadcast::Counts;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{ReceiptKind, Step};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{BroadcastId, Channel, Environment};
use nuncio_store::Transition;
use nuncio_testkit::{Backend, Options, TestApp, TestResponse};
use serde_json::{Value, json};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

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

pub(crate) async fn act(app: &TestApp, id: &str, verb: &str) -> TestResponse {
    app.request("POST", &format!("/v1/broadcasts/{id}/{verb}"), None).await
}

pub(crate) async fn get(app: &TestApp, id: &str) -> Value {
    app.get(&format!("/v1/broadcasts/{id}")).await.expect(200).json()["broadcast"].clone()
}

pub(crate) async fn status(app: &TestApp, id: &str) -> String {
    get(app, id).await["status"].as_str().expect("a status").to_owned()
}

/// Sends a broadcast with this many recipients.
pub(crate) async fn sent(app: &TestApp, count: usize) -> String {
    let id = text(app).await;
    for chunk in phones(count).collect::<Vec<_>>().chunks(1_000) {
        add(app, &id, chunk.to_vec()).await;
    }
    act(app, &id, "send").await.expect(202);
    id
}

/// Runs all work until the broadcast completes.
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

/// Returns the number of messages per recipient, except cancelled ones.
pub(crate) async fn messages(app: &TestApp) -> BTreeMap<String, usize> {
    let (mut all, mut cursor) = (BTreeMap::new(), String::new());
    loop {
        let page = app.get(&format!("/v1/messages?limit=100{cursor}")).await.expect(200).json();
        for message in page["items"].as_array().expect("items").iter().filter(|message| message["status"] != "cancelled") {
            *all.entry(message["to"].as_str().expect("a recipient").to_owned()).or_default() += 1;
        }
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Returns the statuses of events in order, after checking that their sequences have no gap.
pub(crate) async fn told(app: &TestApp, id: &str) -> Vec<String> {
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

/// Checks the counts against the recipients' rows; returns them.
pub(crate) async fn recount(app: &TestApp, id: &str) -> Counts {
    let id: BroadcastId = id.parse().expect("an id");
    let mut tx = app.store().read().await.expect("a reader");
    let counts = tx.find_broadcast(app.tenant(), id).await.expect("a look").expect("the broadcast").counts;
    let (mut all, mut before) = (Counts::default(), None);
    loop {
        let request = nuncio_domain::page::PageRequest::older(100, before);
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

/// Returns the current counts.
pub(crate) async fn now(app: &TestApp, id: &str) -> Counts {
    let id: BroadcastId = id.parse().expect("an id");
    let mut tx = app.store().read().await.expect("a reader");
    tx.find_broadcast(app.tenant(), id).await.expect("a look").expect("the broadcast").counts
}

pub(crate) fn paths(answer: &Value) -> Vec<String> {
    let errors = answer["details"]["errors"].as_array().cloned().unwrap_or_default();
    errors.iter().map(|e| e["path"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_recipient_outside_the_allowed_countries_fails_with_the_reason() {
    for app in TestApp::on_each().await {
        let sender = app.node.core.tenant_config(app.tenant()).await.expect("a world").default_sender().expect("a sender").id;
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"allowedCountries": ["ES"]}))).await.expect(200);
        let id = text(&app).await;
        add(&app, &id, ["+34600111222", "+12135550001"].map(str::to_owned)).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let failed = contacts(&app, &id, "&status=failed").await;
        let reason = failed[0]["errorMessage"].as_str().unwrap_or_default();
        assert!(failed.len() == 1 && reason.starts_with("is a number of US, which is not in the sender's allowedCountries"), "{failed:?}");
    }
}

// holds: broadcasts.get, broadcasts.send, broadcasts.progress, broadcasts.transitions
#[tokio::test]
async fn a_broadcast_reaches_everybody_once() {
    for app in TestApp::on_each().await {
        let id = sent(&app, 3_000).await;
        assert_eq!(status(&app, &id).await, "pending_review");
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!(broadcast["status"], "completed", "{broadcast}");
        assert_eq!(counts(&broadcast), [3_000, 0, 0, 3_000, 0, 0]);
        assert_eq!(broadcast["reviewAttempts"], 1);
        assert!(broadcast["reviewResult"]["score"].as_f64().is_some_and(|score| score > 0.9), "{broadcast}");
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

/// What is held may have gone out: to call the broadcast failed would make somebody send it again.
#[tokio::test]
async fn a_broadcast_with_a_held_message_has_not_failed() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        add(&app, &id, ["+12125550001", "+12125550008"].map(str::to_owned)).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("completed"), [2, 0, 1, 0, 1, 0]));
    }
}

// holds: broadcasts.contacts.list, broadcasts.counters
#[tokio::test]
async fn each_recipient_stands_where_their_message_does() {
    for app in TestApp::on_each().await {
        // Opted out earlier.
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
        // The broadcast completes when the wait for receipts ends; recipients without one keep their status.
        app.advance(Duration::from_secs(86_401)).await;
        app.advance(Duration::from_secs(60)).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("completed"), [8, 0, 2, 3, 2, 1]));
        recount(&app, &id).await;
        // A person decides about the held message: the counts follow, although the broadcast has ended.
        let held = by["+12125550008"]["messageId"].as_str().expect("a message");
        app.post(&format!("/v1/messages/{held}/resolve"), json!({"action": "failed"})).await.expect(200);
        assert_eq!(counts(&get(&app, &id).await), [8, 0, 1, 3, 3, 1]);
        recount(&app, &id).await;
    }
}

// holds: broadcasts.suppressed
#[tokio::test]
async fn a_broadcast_that_nobody_may_get_fails() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        add(&app, &id, phones(2)).await;
        for phone in phones(2) {
            app.post("/v1/suppressions", json!({"identifier": phone})).await.expect(201);
        }
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("failed"), [2, 0, 0, 0, 0, 2]));
    }
}

// holds: broadcasts.progress
#[tokio::test]
async fn no_end_is_estimated_while_only_receipts_are_awaited() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        add(&app, &id, ["+12125550009", "+12125550005"].map(str::to_owned)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        app.advance(10 * SECOND).await;
        let progress = app.get(&format!("/v1/broadcasts/{id}/progress")).await.expect(200).json();
        assert_eq!((&progress["status"], &progress["sending"], &progress["delivered"]), (&json!("sending"), &json!(1), &json!(1)));
        assert!(!progress.to_string().contains("estimatedCompletionAt"), "it would always be a few seconds ahead: {progress}");
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
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the test world");
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

// holds: broadcasts.resume
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_the_middle_of_the_hand_over_loses_and_doubles_nobody() {
    for mut app in TestApp::on_each().await {
        let id = sent(&app, 2_000).await;
        for after in [1, 300, 900] {
            while now(&app, &id).await.handled() < after {
                app.node.tick().await.expect("dispatch");
                tokio::task::yield_now().await;
            }
            app.crash().await;
            app.clock.advance(Duration::from_secs(6)); // the dead node's claim expires
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

/// Receipts of all kinds: late, early, repeated and contradictory.
// holds: broadcasts.counters
#[tokio::test]
async fn counts_add_up_whatever_receipts_come_in_whatever_order() {
    for app in TestApp::on_each().await {
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
                0 => Step::Receipt { attempt: None, part: 0, kind: ReceiptKind::Sent, at: now },
                1 => Step::Receipt { attempt: None, part: 0, kind: ReceiptKind::Delivered, at: now },
                2 => Step::Receipt { attempt: None, part: 0, kind: ReceiptKind::Read, at: now },
                3 => Step::Receipt { attempt: Some(0), part: 0, kind: ReceiptKind::Failed(failure()), at: now },
                4 => Step::Cancel,
                _ => Step::Resolve { action: nuncio_domain::lifecycle::Resolution::Failed },
            };
            app.store().transition(Transition::new(app.tenant(), message, step, now)).await.expect("a step");
            if round % 10 == 0 {
                recount(&app, &id).await;
                counts(&get(&app, &id).await);
            }
        }
        recount(&app, &id).await;
        let event = nuncio_channel::ProviderEvent::Complaint { tenant: app.tenant(), message: messages[0].parse().expect("an id") };
        app.node.events().push(event, Duration::ZERO);
        app.drain().await;
        recount(&app, &id).await;
    }
}

#[tokio::test]
async fn bulk_leaves_room_for_others() {
    let app = TestApp::start().await;
    let id = sent(&app, 1_500).await;
    app.node.tick().await.expect("dispatch");
    let message = app.send_message(json!({"to": "+34699999999", "text": "your code"})).await;
    let born = app.message(&message).await;
    assert!(matches!(born["status"].as_str(), Some("sending" | "sent" | "delivered")), "it found a place at once: {born}");
    finish(&app).await;
    assert_eq!(status(&app, &id).await, "completed");
}

#[tokio::test]
async fn without_receipts_sent_is_delivered() {
    let app = TestApp::start().await;
    let part = nuncio_domain::message::Membership::new(app.node.core.ids().next(), app.node.core.ids().next(), true);
    let id = app.send_message(json!({"to": "+12125550005", "text": "x"})).await;
    app.drain().await;
    let mut tx = app.store().read().await.expect("a reader");
    let mut state = tx.lookup_message(app.tenant(), id.parse().expect("an id")).await.expect("a look").expect("a message").state;
    state.detail.broadcast = Some(nuncio_domain::message::Membership { no_receipts: false, ..part });
    assert_eq!((Counts::of(&state).sending, Counts::of(&state).sent), (1, 1));
    state.detail.broadcast = Some(part);
    assert_eq!((Counts::of(&state).delivered, Counts::of(&state).sending), (1, 0));
}

/// An unknown outcome is held for a person; for email, no receipt will resolve it.
// holds: broadcasts.counters
#[tokio::test]
async fn what_a_person_says_was_sent_counts_as_delivered_without_receipts() {
    for backend in Backend::all() {
        let registry = crate::scripted::Scripted::default().registry();
        let app = TestApp::with(backend, Options { registry, ..Options::default() }).await;
        app.connect(Channel::Email, "scripted", json!({}), json!({})).await;
        let live = format!("Bearer {}", app.live_key);
        let ask = async |method, path: &str, body| app.send(method, path, &[("authorization", live.as_str())], body).await;
        let body = json!({"name": "x", "channel": "email", "text": "Hello from Acme", "emailSubject": "News"});
        let made = ask("POST", "/v1/broadcasts", Some(body)).await.expect(201).json();
        let path = format!("/v1/broadcasts/{}", made["broadcast"]["id"].as_str().expect("an id"));
        let contacts: Vec<_> = (0..3).map(|n| json!({"recipient": format!("r{n}@example.net")})).collect();
        ask("POST", &format!("{path}/contacts"), Some(json!({"contacts": contacts}))).await.expect(201);
        ask("POST", &format!("{path}/send"), None).await.expect(202);
        finish(&app).await;
        let broadcast = ask("GET", &path, None).await.expect(200).json()["broadcast"].clone();
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("completed"), [3, 0, 3, 0, 0, 0]));
        let contacts = ask("GET", &format!("{path}/contacts"), None).await.expect(200).json();
        for (n, action) in ["sent", "failed", "sent"].into_iter().enumerate() {
            let message = contacts["items"][n]["messageId"].as_str().expect("a message");
            ask("POST", &format!("/v1/messages/{message}/resolve"), Some(json!({"action": action}))).await.expect(200);
        }
        let broadcast = ask("GET", &path, None).await.expect(200).json()["broadcast"].clone();
        assert_eq!((counts(&broadcast), &broadcast["sentCount"]), ([3, 0, 0, 2, 1, 0], &json!(0)));
    }
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
