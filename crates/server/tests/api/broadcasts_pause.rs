//! A pause withdraws messages that no provider has; after the resume, each recipient gets one.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::{AddressKind, BroadcastId, Micros, Recipient};
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

use crate::broadcasts::{SECOND, act, add, contacts, counts, draft, finish, get, phones, recount, status, text};
use crate::money::{accounts, with_prices};

/// Price of a text message to a Spanish phone.
const SPAIN: i64 = 35_000;
const WHOLE: usize = 200;

/// Limits the rate of the default sender's SMS in the test environment.
async fn throttle(app: &TestApp, messages_per_second: f64, burst: u32) {
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the test world");
    let sender = world.default_sender().expect("a sender").id;
    let put = json!({"kind": "sim", "throttle": {"messagesPerSecond": messages_per_second, "burst": burst}});
    app.request("PUT", &format!("/v1/senders/{sender}/channels/sms"), Some(put)).await.expect(200);
}

/// Starts an environment with prices and a throttled sender, and sends a broadcast there.
async fn throttled(backend: Backend) -> (TestApp, String) {
    let app = with_prices(backend).await;
    app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
    app.node.core.billing().add_money(app.tenant(), Micros(WHOLE as i64 * SPAIN), None).await.expect("a deposit");
    throttle(&app, 10.0, 10).await;
    let id = text(&app).await;
    add(&app, &id, phones(WHOLE)).await;
    act(&app, &id, "send").await.expect(202);
    app.drain().await;
    app.advance(SECOND).await;
    (app, id)
}

/// Returns all messages, newest first.
async fn all_messages(app: &TestApp) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("/v1/messages?limit=100{cursor}")).await.expect(200).json();
        all.extend(page["items"].as_array().expect("items").clone());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Returns how many times each recipient was sent to a provider.
async fn handed(app: &TestApp) -> BTreeMap<String, usize> {
    let mut handed = BTreeMap::new();
    for message in all_messages(app).await {
        let attempts = app.message(message["id"].as_str().expect("an id")).await["attempts"].as_array().map_or(0, Vec::len);
        if attempts > 0 {
            *handed.entry(message["to"].as_str().expect("a recipient").to_owned()).or_default() += attempts;
        }
    }
    handed
}

/// Checks that the broadcast's reservation equals the possible costs of its messages, and that the money adds up.
async fn last_event(app: &TestApp, id: &str) -> Value {
    let uuid = id.parse::<BroadcastId>().expect("an id").uuid();
    let mut tx = app.store().read().await.expect("a reader");
    let events = tx.list_resource_events(app.tenant(), ResourceKind::Broadcast, uuid).await.expect("events");
    events.last().and_then(|(_, occurrences)| occurrences.last()).expect("an event").data["broadcast"].clone()
}

async fn check_money(app: &TestApp, broadcast: &Value) {
    let balance = accounts(app).await;
    let number = |name: &str| (broadcast[name].as_f64().unwrap_or_default() * 1e6).round() as i64;
    assert_eq!((balance.reserved.0, balance.spent.0), (number("reservedAmount"), number("actualCost")));
    assert_eq!(balance.available.0 + balance.reserved.0 + balance.spent.0, WHOLE as i64 * SPAIN);
}

// holds: broadcasts.pause, broadcasts.counters, broadcasts.reserved
#[tokio::test]
async fn a_throttled_broadcast_stops_at_the_pause_and_reaches_everybody_once_after_the_resume() {
    for backend in Backend::all() {
        let (app, id) = throttled(backend).await;
        for round in 0..2 {
            let before = handed(&app).await;
            assert!(before.len() >= 20 + 20 * round && before.len() < WHOLE, "the test must pause in the middle: {}", before.len());
            let answer = act(&app, &id, "pause").await.expect(200).json()["broadcast"].clone();
            counts(&answer);
            for _ in 0..30 {
                app.advance(SECOND).await;
            }
            assert_eq!(handed(&app).await, before, "nothing is handed to a provider after the pause");
            let paused = get(&app, &id).await;
            let sent = before.len() as i64;
            assert_eq!((paused["status"].as_str(), counts(&paused)), (Some("paused"), [WHOLE as i64, WHOLE as i64 - sent, 0, sent, 0, 0]));
            let waiting = contacts(&app, &id, "&status=pending").await;
            assert_eq!(waiting.len(), WHOLE - before.len(), "what waited is back among the recipients");
            assert!(waiting.iter().all(|contact| contact.get("messageId").is_none_or(Value::is_null)), "{waiting:?}");
            recount(&app, &id).await;
            check_money(&app, &paused).await;
            assert_eq!(accounts(&app).await.reserved.0, (WHOLE as i64 - sent) * SPAIN);
            act(&app, &id, "resume").await.expect(200);
            for _ in 0..2 {
                app.advance(SECOND).await;
                counts(&get(&app, &id).await);
            }
        }
        for _ in 0..20 {
            app.advance(SECOND).await;
        }
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("completed"), [200, 0, 0, 200, 0, 0]));
        let handed = handed(&app).await;
        assert_eq!((handed.len(), handed.values().max()), (WHOLE, Some(&1)), "everybody once");
        check_money(&app, &broadcast).await;
        assert_eq!(accounts(&app).await.spent.0, WHOLE as i64 * SPAIN);
        recount(&app, &id).await;
        for message in all_messages(&app).await {
            assert!(matches!(message["status"].as_str(), Some("delivered" | "cancelled")), "{message}");
        }
    }
}

/// A pause can return a recipient to the broadcast while the contact is being erased: by then, a keyed hash stands for the recipient.
// holds: broadcasts.pause, contacts.delete
#[tokio::test]
async fn nobody_who_was_erased_is_sent_to_after_a_pause() {
    for backend in Backend::all() {
        let (app, id) = throttled(backend).await;
        let unsent = contacts(&app, &id, "&status=queued").await[0].clone();
        let identifier = unsent["recipient"].as_str().expect("a recipient").to_owned();
        let erased = Recipient { kind: AddressKind::Phone, identifier };
        let mut tx = app.store().begin().await.expect("a transaction");
        tx.erase_broadcast_contacts(app.tenant(), &erased, "~hash", app.node.core.ids().clock.now()).await.expect("erased");
        tx.commit().await.expect("committed");
        act(&app, &id, "pause").await.expect(200);
        app.advance(SECOND).await;
        let preview = app.post(&format!("/v1/broadcasts/{id}/preview"), json!({"contactId": unsent["id"]})).await;
        assert_eq!(preview.expect(404).json()["message"], "contact of the broadcast not found");
        act(&app, &id, "resume").await.expect(200);
        for _ in 0..30 {
            app.advance(SECOND).await;
        }
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("completed"), [200, 0, 0, 199, 0, 1]));
        check_money(&app, &broadcast).await;
        assert!(all_messages(&app).await.iter().all(|message| !message["to"].as_str().unwrap_or_default().starts_with('~')));
        recount(&app, &id).await;
    }
}

// holds: broadcasts.cancel, broadcasts.counters, broadcasts.reserved
#[tokio::test]
async fn a_throttled_broadcast_stops_at_the_cancel() {
    for backend in Backend::all() {
        for paused in [false, true] {
            let (app, id) = throttled(backend).await;
            let before = handed(&app).await;
            if paused {
                // Nothing is withdrawn yet: the pause is as recent as the cancel.
                act(&app, &id, "pause").await.expect(200);
            }
            act(&app, &id, "cancel").await.expect(200);
            let sent = before.len() as i64;
            let stopped = [WHOLE as i64, 0, 0, sent, 0, WHOLE as i64 - sent];
            assert_eq!(counts(&last_event(&app, &id).await), stopped, "the queued ones are skipped already");
            assert_eq!(contacts(&app, &id, "&status=skipped").await.len() as i64, stopped[5]);
            assert!(contacts(&app, &id, "&status=pending,queued").await.is_empty());
            for _ in 0..30 {
                app.advance(SECOND).await;
            }
            assert_eq!(handed(&app).await, before);
            let cancelled = get(&app, &id).await;
            assert_eq!(counts(&cancelled), stopped);
            check_money(&app, &cancelled).await;
            assert_eq!(accounts(&app).await.reserved, Micros(0));
            recount(&app, &id).await;
            assert_eq!(app.store().read().await.expect("a reader").count_unguarded_messages().await.expect("a count"), 0);
        }
    }
}

/// Messages that wait for their next attempt during the pause, or are deferred after it.
// holds: broadcasts.pause
#[tokio::test]
async fn retries_stop_at_a_pause_too() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        add(&app, &id, (200..230).map(|area| format!("+1{area}5550004")).chain(["+12125550008".to_owned()])).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let before = handed(&app).await;
        assert_eq!(before.values().sum::<usize>(), 31, "each was told to come back, or is unknown");
        act(&app, &id, "pause").await.expect(200);
        app.advance(10 * SECOND).await;
        assert_eq!(handed(&app).await, before);
        assert_eq!(counts(&get(&app, &id).await), [31, 30, 1, 0, 0, 0], "what may have gone out waits for a person, as always");
        recount(&app, &id).await;
        act(&app, &id, "resume").await.expect(200);
        app.drain().await;
        app.advance(10 * SECOND).await;
        assert_eq!(counts(&get(&app, &id).await), [31, 0, 1, 30, 0, 0]);
        recount(&app, &id).await;
    }
}

/// A provider has had one attempt of these: they wait, and continue as the same message.
// holds: broadcasts.pause, broadcasts.cancel
#[tokio::test]
async fn a_fallback_waits_for_the_resume_and_ends_with_a_cancel() {
    for verb in ["resume", "cancel"] {
        for app in TestApp::on_each().await {
            let body = json!({"name": "News", "channel": "whatsapp", "text": "Hello from Acme"});
            let id = crate::broadcasts::draft(&app, body).await;
            add(&app, &id, ["+12125550005".to_owned()]).await;
            act(&app, &id, "send").await.expect(202);
            app.drain().await;
            assert_eq!(counts(&get(&app, &id).await), [1, 0, 1, 0, 0, 0]);
            let message = contacts(&app, &id, "").await[0]["messageId"].as_str().expect("a message").to_owned();
            act(&app, &id, "pause").await.expect(200);
            app.drain().await;
            fail(&app, &message).await;
            app.advance(60 * SECOND).await;
            let attempts = async || app.message(&message).await["attempts"].as_array().map_or(0, Vec::len);
            assert_eq!((attempts().await, counts(&get(&app, &id).await)), (1, [1, 0, 1, 0, 0, 0]));
            act(&app, &id, verb).await.expect(200);
            app.drain().await;
            app.advance(60 * SECOND).await;
            recount(&app, &id).await;
            let ended = get(&app, &id).await;
            match verb {
                "resume" => assert_eq!((attempts().await, counts(&ended)[2]), (2, 1), "the text takes the message, and says nothing more"),
                _ => assert_eq!((attempts().await, counts(&ended)), (1, [1, 0, 0, 0, 1, 0])),
            }
        }
    }
}

/// Reports late that the newest attempt failed.
async fn fail(app: &TestApp, message: &str) {
    use nuncio_domain::lifecycle::{ReceiptKind, Step};
    use nuncio_domain::message::{Failure, FailureCode};
    let now = app.node.core.ids().clock.now();
    let kind = ReceiptKind::Failed(Failure::own(FailureCode::Undeliverable, "x"));
    let step = Step::Receipt { attempt: None, part: 0, kind, at: now };
    let message = message.parse().expect("an id");
    app.store().transition(nuncio_store::Transition::new(app.tenant(), message, step, now)).await.expect("a receipt");
}

/// Hints of a paused broadcast do not use the throttle's rate.
#[tokio::test]
async fn a_pause_leaves_the_throttle_to_others() {
    let (app, id) = throttled(Backend::Sqlite).await;
    let other = text(&app).await;
    add(&app, &other, (0..10).map(|n| format!("+3461000000{n}"))).await;
    app.node.core.billing().add_money(app.tenant(), Micros(10 * SPAIN), None).await.expect("a deposit");
    act(&app, &id, "pause").await.expect(200);
    act(&app, &other, "send").await.expect(202);
    app.drain().await;
    app.advance(SECOND).await;
    app.advance(SECOND).await;
    assert_eq!(counts(&get(&app, &other).await)[3], 10, "all of them go out in the second that they take");
    assert_eq!(status(&app, &id).await, "paused");
}

/// Another node has messages of the broadcast in its lanes.
// holds: broadcasts.pause
#[tokio::test]
async fn every_node_obeys_a_pause_at_once() {
    for backend in Backend::all().into_iter().filter(|backend| *backend == Backend::Postgres) {
        let (app, id) = throttled(backend).await;
        let other = app.another_node().await;
        other.start().await.expect("the node enters");
        // Waiting messages are now due for any node, and the other node scans first.
        app.clock.advance(Duration::from_secs(6));
        other.drain().await.expect("dispatch");
        let before = handed(&app).await;
        assert!(before.len() > 20 && before.len() < WHOLE, "the other node takes part: {}", before.len());
        act(&app, &id, "pause").await.expect(200);
        for _ in 0..3 {
            app.clock.advance(SECOND);
            other.drain().await.expect("dispatch");
        }
        assert_eq!(handed(&app).await, before);
        let sent = before.len() as i64;
        assert_eq!(counts(&get(&app, &id).await), [WHOLE as i64, WHOLE as i64 - sent, 0, sent, 0, 0]);
        act(&app, &id, "resume").await.expect(200);
        for _ in 0..25 {
            app.clock.advance(SECOND);
            other.drain().await.expect("dispatch");
            app.drain().await;
        }
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [WHOLE as i64, 0, 0, WHOLE as i64, 0, 0]);
        let handed = handed(&app).await;
        assert_eq!((handed.len(), handed.values().max()), (WHOLE, Some(&1)), "everybody once");
        recount(&app, &id).await;
    }
}

/// The SMS connection sends one message per second, and 1,200 SMS recipients come first.
// holds: broadcasts.recipients.wait_apart
#[tokio::test]
async fn recipients_without_room_do_not_hide_others() {
    for app in TestApp::on_each().await {
        throttle(&app, 1.0, 1).await;
        let id = draft(&app, json!({"name": "x", "channel": "smart", "text": "Hello from Acme", "emailSubject": "News"})).await;
        for chunk in phones(1_200).collect::<Vec<_>>().chunks(600) {
            add(&app, &id, chunk.to_vec()).await;
        }
        add(&app, &id, (0..3).map(|n| format!("ada{n}@example.org"))).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        for _ in 0..4 {
            app.advance(SECOND).await;
        }
        let delivered = contacts(&app, &id, "&status=delivered").await;
        let mails = delivered.iter().filter(|contact| contact["recipientType"] == "email").count();
        assert_eq!(mails, 3, "{}", get(&app, &id).await);
        assert!(delivered.len() < 100, "the phones wait for their turn: {}", delivered.len());
    }
}

/// The server was down for two hours: what it had queued waits for a person.
// holds: broadcasts.counters
#[tokio::test]
async fn a_broadcast_whose_queued_messages_are_held_is_not_over() {
    for backend in Backend::all() {
        let mut app = TestApp::on(backend).await;
        throttle(&app, 0.01, 1).await;
        let id = text(&app).await;
        add(&app, &id, phones(10)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        assert_eq!(counts(&get(&app, &id).await), [10, 9, 0, 1, 0, 0]);
        app.clock.advance(7_200 * SECOND);
        app.crash().await;
        finish(&app).await;
        assert_eq!((counts(&get(&app, &id).await), status(&app, &id).await.as_str()), ([10, 9, 0, 1, 0, 0], "sending"));
        act(&app, &id, "cancel").await.expect(200);
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [10, 0, 0, 1, 0, 9]);
        recount(&app, &id).await;
    }
}

// holds: broadcasts.reserved
#[tokio::test]
async fn dearer_messages_take_no_more_than_was_set_aside() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        let billing = app.node.core.billing();
        billing.limit_balance(app.tenant(), true).await.expect("a limit");
        let money = Micros(600 * SPAIN);
        billing.add_money(app.tenant(), money, None).await.expect("a deposit");
        let id = text(&app).await;
        add(&app, &id, phones(600)).await;
        app.post(&format!("/v1/broadcasts/{id}/send"), json!({"scheduledAt": "2026-01-01T01:00:00Z"})).await.expect(202);
        app.drain().await;
        assert_eq!(accounts(&app).await.reserved, money);
        // Twice the price: the reservation covers three hundred recipients, more than one step.
        let prices = "channel,country,unit,provider,fee\nsms,*,segment,0.06,0.01\n";
        billing.import_prices(None, prices, true).await.expect("good prices");
        app.advance(3_600 * SECOND).await;
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!(counts(&broadcast), [600, 300, 0, 300, 0, 0], "{broadcast}");
        let balance = accounts(&app).await;
        assert_eq!((balance.available.0, balance.reserved.0, balance.spent), (0, 0, money));
    }
}
