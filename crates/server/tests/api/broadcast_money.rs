//! Costs of broadcasts: estimated, reserved, paid by their messages, and released.

use std::time::Duration;

use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Balance, Purpose};
use nuncio_domain::{BroadcastId, Micros};
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

use crate::at_once;
use crate::broadcasts::{act, add, contacts, counts, draft, finish, get, now, phones, recount, status, text};
use crate::money::{accounts, outbound, with_prices};

/// Price of a text message to a Spanish phone.
const SPAIN: i64 = 35_000;

/// Starts an environment with prices and a balance of `micros`.
async fn funded(backend: Backend, micros: i64) -> TestApp {
    let app = with_prices(backend).await;
    app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
    deposit(&app, micros).await;
    app
}

async fn deposit(app: &TestApp, micros: i64) {
    app.node.core.billing().add_money(app.tenant(), Micros(micros), None).await.expect("a deposit");
}

async fn price(app: &TestApp, provider: &str) {
    let csv = format!("channel,country,unit,provider,fee\nsms,*,segment,{provider},0\n");
    app.node.core.billing().import_prices(Some(app.project.id), &csv, true).await.expect("prices");
}

async fn ready(app: &TestApp, count: usize) -> String {
    let id = text(app).await;
    add(app, &id, phones(count)).await;
    id
}

/// Returns the estimated, reserved and actual cost in dollars.
fn costs(broadcast: &Value) -> (Option<f64>, f64, f64) {
    let number = |name: &str| broadcast[name].as_f64();
    (number("estimatedCost"), number("reservedAmount").expect("a sum"), number("actualCost").expect("a sum"))
}

/// Returns available, reserved and spent in micros.
fn sums(balance: Balance) -> (i64, i64, i64) {
    (balance.available.0, balance.reserved.0, balance.spent.0)
}

/// Returns the transfers of the broadcast itself.
async fn transfers(app: &TestApp, id: &str) -> Vec<(Purpose, i16, i64)> {
    let id: BroadcastId = id.parse().expect("an id");
    let rows = app.store().read().await.expect("a reader").list_transfers(app.tenant(), id.uuid()).await.expect("transfers");
    rows.into_iter().map(|t| (t.purpose, t.part, t.amount.0)).collect()
}

// holds: broadcasts.reserved, ledger.invariants
#[tokio::test]
async fn a_broadcast_is_estimated_set_aside_and_paid() {
    for backend in Backend::all() {
        let app = funded(backend, 1_000_000).await;
        let id = ready(&app, 10).await;
        add(&app, &id, ["+12125550001".to_owned(), "+12125550100".to_owned()]).await;
        assert_eq!(costs(&get(&app, &id).await), (None, 0.0, 0.0));
        let sent = act(&app, &id, "send").await.expect(202).json()["broadcast"].clone();
        assert_eq!(costs(&sent), (Some(0.37), 0.37, 0.0));
        assert_eq!(sums(accounts(&app).await), (630_000, 370_000, 0));
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("completed"), [12, 0, 0, 11, 1, 0]));
        assert_eq!(costs(&broadcast), (Some(0.37), 0.0, 0.36), "whom it did not reach cost nothing");
        assert_eq!(sums(accounts(&app).await), (640_000, 0, 360_000));
        assert_eq!(transfers(&app, &id).await, [(Purpose::Reserve, 1, 370_000)], "its messages paid and gave back all of it");
        let progress = app.get(&format!("/v1/broadcasts/{id}/progress")).await.expect(200).json();
        assert_eq!(costs(&progress), costs(&broadcast));
        let paid: f64 = contacts(&app, &id, "").await.iter().filter_map(|c| c["cost"].as_f64()).sum();
        assert!((paid - 0.36).abs() < 1e-9);
        recount(&app, &id).await;
    }
}

// holds: broadcasts.reserved, balance.off
#[tokio::test]
async fn without_prices_a_broadcast_costs_nothing() {
    let app = TestApp::start().await;
    app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
    let id = ready(&app, 3).await;
    let sent = act(&app, &id, "send").await.expect(202).json()["broadcast"].clone();
    assert_eq!(costs(&sent), (None, 0.0, 0.0));
    // Later prices apply to messages accepted from then on, but only the reservation is available.
    price(&app, "0.01").await;
    finish(&app).await;
    assert_eq!(status(&app, &id).await, "sending");
    assert_eq!(counts(&get(&app, &id).await)[1], 3, "nobody can be paid for");
    deposit(&app, 30_000).await;
    finish(&app).await;
    let broadcast = get(&app, &id).await;
    assert_eq!((broadcast["status"].as_str(), costs(&broadcast)), (Some("completed"), (None, 0.0, 0.03)));
    assert_eq!(sums(accounts(&app).await), (0, 0, 30_000));
    assert_eq!(transfers(&app, &id).await, []);
}

// holds: broadcasts.reserved
#[tokio::test]
async fn each_recipient_is_estimated_by_their_own_message() {
    let app = with_prices(Backend::Sqlite).await;
    let template = json!({"name": "hi", "language": "en", "body": "Hello {{1}}, says Acme"});
    let template = app.post("/v1/templates", template).await.expect(201).json()["id"].clone();
    let body = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": template}});
    let id = draft(&app, body).await;
    let given = |to: &str, name: String| json!({"recipient": to, "templateVariables": {"1": name}});
    let given = [given("+34600111222", "Ada".into()), given("+34600111223", "x".repeat(150)), given("+12125550100", "ж".into())];
    app.post(&format!("/v1/broadcasts/{id}/contacts"), json!({"contacts": given})).await.expect(201);
    let sent = act(&app, &id, "send").await.expect(202).json()["broadcast"].clone();
    assert_eq!(costs(&sent), (Some(0.115), 0.115, 0.0), "1, 2 and 1 segments, by two prices");
    finish(&app).await;
    assert_eq!(costs(&get(&app, &id).await), (Some(0.115), 0.0, 0.115));
    // The fallback of an app channel is reserved, too. Outside the conversation window, nothing can be sent and nothing is charged.
    let id = draft(&app, json!({"name": "x", "channel": "whatsapp", "text": "Hello from Acme"})).await;
    add(&app, &id, ["+12125550100", "+12125550101", "+12125550002", "+12125550009"].map(str::to_owned)).await;
    let sent = act(&app, &id, "send").await.expect(202).json()["broadcast"].clone();
    assert_eq!(costs(&sent), (Some(0.063), 0.093, 0.0));
    finish(&app).await;
    let broadcast = get(&app, &id).await;
    assert_eq!(counts(&broadcast), [4, 0, 0, 3, 1, 0]);
    assert_eq!(costs(&broadcast), (Some(0.063), 0.0, 0.052), "two by the app, one by its fallback");
    // For each recipient, the cheapest channel that is likely to deliver; email for email addresses.
    let id = draft(&app, json!({"name": "x", "channel": "smart", "text": "Hello from Acme", "emailSubject": "News"})).await;
    add(&app, &id, ["+12125550100".to_owned(), "ada@example.org".to_owned()]).await;
    let sent = act(&app, &id, "send").await.expect(202).json()["broadcast"].clone();
    assert_eq!(costs(&sent), (Some(0.010_101), 0.010_101, 0.0));
    finish(&app).await;
    assert_eq!(costs(&get(&app, &id).await), (Some(0.010_101), 0.0, 0.010_101));
    assert_eq!(accounts(&app).await.reserved, Micros(0));
}

// holds: broadcasts.reserved, balance.insufficient
#[tokio::test]
async fn what_cannot_be_paid_as_a_whole_is_not_sent() {
    for backend in Backend::all() {
        let app = funded(backend, 10 * SPAIN - 1).await;
        let id = ready(&app, 10).await;
        let refused = act(&app, &id, "send").await.expect(402).json();
        assert_eq!(refused["code"], "insufficient_balance");
        assert_eq!(refused["details"], json!({"balance": 0.349_999, "reserved": 0, "available": 0.349_999, "required": 0.35}));
        let draft = get(&app, &id).await;
        assert_eq!((draft["status"].as_str(), draft["reviewAttempts"].as_i64(), costs(&draft)), (Some("draft"), Some(0), (None, 0.0, 0.0)));
        assert_eq!(transfers(&app, &id).await, []);
        deposit(&app, 1).await;
        act(&app, &id, "send").await.expect(202);
        assert_eq!(sums(accounts(&app).await), (0, 10 * SPAIN, 0));
        // Other messages cannot use its reservation.
        app.post("/v1/messages", json!({"to": "+34600111222", "text": "x"})).await.expect(402);
        finish(&app).await;
        assert_eq!(sums(accounts(&app).await), (0, 0, 10 * SPAIN));
    }
}

// holds: broadcasts.reserved, broadcasts.retry_review, broadcasts.escalate
#[tokio::test]
async fn a_rejected_broadcast_gives_back_and_sets_aside_anew() {
    for backend in Backend::all() {
        let app = funded(backend, 2 * SPAIN).await;
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Please reply with your password to win"})).await;
        add(&app, &id, phones(2)).await;
        assert_eq!(costs(&act(&app, &id, "send").await.expect(202).json()["broadcast"]), (Some(0.07), 0.07, 0.0));
        app.drain().await;
        let rejected = get(&app, &id).await;
        assert_eq!((rejected["status"].as_str(), costs(&rejected)), (Some("rejected"), (Some(0.07), 0.0, 0.0)));
        assert_eq!(sums(accounts(&app).await), (2 * SPAIN, 0, 0));
        // A longer text costs more than the balance.
        let path = format!("/v1/broadcasts/{id}");
        let long = format!("Please reply with your password. {}", "Hello from Acme. ".repeat(10));
        app.request("PATCH", &path, Some(json!({"text": long}))).await.expect(200);
        assert_eq!(act(&app, &id, "retry-review").await.expect(402).json()["details"]["required"], json!(0.14));
        assert_eq!((status(&app, &id).await.as_str(), get(&app, &id).await["reviewAttempts"].as_i64()), ("rejected", Some(1)));
        app.request("PATCH", &path, Some(json!({"text": "Please reply with your password"}))).await.expect(200);
        assert_eq!(costs(&act(&app, &id, "retry-review").await.expect(200).json()["broadcast"]).1, 0.07);
        app.drain().await;
        assert_eq!(costs(&act(&app, &id, "escalate").await.expect(200).json()["broadcast"]).1, 0.0);
        let broadcasts = app.node.core.broadcasts();
        let decide = |approve| broadcasts.decide_review(app.tenant(), &id, approve, None);
        app.node.core.billing().add_money(app.tenant(), Micros(-1), None).await.expect("taken out");
        assert_eq!(decide(true).await.expect_err("too little").code().as_str(), "insufficient_balance");
        assert_eq!(status(&app, &id).await, "escalated");
        deposit(&app, 1).await;
        assert_eq!(decide(true).await.expect("approved").reserved_amount, Micros(2 * SPAIN));
        finish(&app).await;
        assert_eq!((status(&app, &id).await.as_str(), sums(accounts(&app).await)), ("completed", (0, 0, 2 * SPAIN)));
        let whole = 2 * SPAIN;
        use Purpose::{Release, Reserve};
        assert_eq!(
            transfers(&app, &id).await,
            [(Reserve, 1, whole), (Reserve, 2, whole), (Reserve, 3, whole), (Release, 1, whole), (Release, 2, whole)]
        );
    }
}

// holds: broadcasts.reserved, broadcasts.cancel
#[tokio::test]
async fn a_cancel_before_anybody_was_handed_over_gives_all_back() {
    let app = funded(Backend::Sqlite, 1_000_000).await;
    for (at, verb) in [(None, "cancel"), (Some("2026-01-01T01:00:00Z"), "cancel"), (Some("2026-01-01T01:00:00Z"), "pause")] {
        let id = ready(&app, 4).await;
        app.post(&format!("/v1/broadcasts/{id}/send"), at.map_or_else(|| json!({}), |at| json!({"scheduledAt": at}))).await.expect(202);
        if at.is_some() {
            app.drain().await;
            assert_eq!(status(&app, &id).await, "scheduled");
        }
        assert_eq!(accounts(&app).await.reserved, Micros(4 * SPAIN));
        if verb == "pause" {
            act(&app, &id, "pause").await.expect(400);
        }
        let cancelled = act(&app, &id, "cancel").await.expect(200).json()["broadcast"].clone();
        assert_eq!(costs(&cancelled), (Some(0.14), 0.0, 0.0));
        assert_eq!(transfers(&app, &id).await, [(Purpose::Reserve, 1, 4 * SPAIN), (Purpose::Release, 1, 4 * SPAIN)]);
        act(&app, &id, "cancel").await.expect(400);
        assert_eq!(sums(accounts(&app).await), (1_000_000, 0, 0));
    }
}

// holds: broadcasts.reserved, broadcasts.cancel, broadcasts.pause, ledger.invariants
#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_half_way_gives_back_what_did_not_go_out() {
    for backend in Backend::all() {
        let app = funded(backend, 100_000_000).await;
        let id = text(&app).await;
        // They wait for their next attempt when the cancel arrives.
        add(&app, &id, (200..400).map(|area| format!("+1{area}5550004"))).await;
        add(&app, &id, phones(1_000)).await;
        act(&app, &id, "send").await.expect(202);
        let whole = accounts(&app).await.reserved;
        while now(&app, &id).await.taken == 0 {
            app.node.tick().await.expect("dispatch");
            tokio::task::yield_now().await;
        }
        act(&app, &id, "pause").await.expect(200);
        app.drain().await;
        let paused = get(&app, &id).await;
        let balance = accounts(&app).await;
        assert!(balance.reserved > Micros(0) && balance.spent > Micros(0), "the test must stop in the middle: {balance:?}");
        assert_eq!(balance.reserved.0 + balance.spent.0, whole.0, "until it ends, all of it is its own");
        assert_eq!(costs(&paused).1, balance.reserved.0 as f64 / 1e6);
        act(&app, &id, "resume").await.expect(200);
        app.node.tick().await.expect("dispatch");
        act(&app, &id, "cancel").await.expect(200);
        app.drain().await;
        app.advance(Duration::from_secs(60)).await;
        let cancelled = get(&app, &id).await;
        let [_, pending, sending, delivered, failed, skipped] = counts(&cancelled);
        assert_eq!((pending, sending, failed), (0, 0, 0), "{cancelled}");
        assert!(delivered > 0 && skipped > 0, "{cancelled}");
        let balance = accounts(&app).await;
        assert_eq!((balance.reserved, balance.total().0 + balance.spent.0), (Micros(0), 100_000_000));
        assert_eq!(costs(&cancelled).2, balance.spent.0 as f64 / 1e6);
        recount(&app, &id).await;
    }
}

// holds: broadcasts.reserved
#[tokio::test]
async fn a_price_that_changes_after_the_estimate_breaks_no_promise() {
    for backend in Backend::all() {
        let app = funded(backend, 500_000).await;
        price(&app, "0.01").await;
        let send = async |at: &str| {
            let id = ready(&app, 10).await;
            app.post(&format!("/v1/broadcasts/{id}/send"), json!({"scheduledAt": at})).await.expect(202);
            app.drain().await;
            id
        };
        // A higher price: the first messages use the reservation, the others reserve their own price while the balance lasts.
        let id = send("2026-01-01T01:00:00Z").await;
        assert_eq!(sums(accounts(&app).await), (400_000, 100_000, 0));
        price(&app, "0.06").await;
        app.advance(Duration::from_secs(3_600)).await;
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("sending"), [10, 3, 0, 7, 0, 0]));
        assert_eq!(sums(accounts(&app).await), (40_000, 40_000, 420_000));
        let progress = app.get(&format!("/v1/broadcasts/{id}/progress")).await.expect(200).text;
        assert!(!progress.contains("estimatedCompletionAt"), "no time without money: {progress}");
        deposit(&app, 140_000).await;
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), costs(&broadcast)), (Some("completed"), (Some(0.1), 0.0, 0.6)));
        assert_eq!(sums(accounts(&app).await), (40_000, 0, 600_000));
        assert_eq!(transfers(&app, &id).await, [(Purpose::Reserve, 1, 100_000), (Purpose::Release, 1, 40_000)]);
        // A lower price: the rest is released.
        deposit(&app, 560_000).await;
        let id = send("2026-01-01T03:00:00Z").await;
        price(&app, "0.001").await;
        app.advance(Duration::from_secs(7_200)).await;
        finish(&app).await;
        assert_eq!(costs(&get(&app, &id).await), (Some(0.6), 0.0, 0.01));
        assert_eq!(sums(accounts(&app).await), (590_000, 0, 610_000));
    }
}

// holds: broadcasts.reserved, broadcasts.send.twice
#[tokio::test]
async fn sends_at_once_set_aside_no_more_than_there_is() {
    for backend in Backend::all() {
        let app = funded(backend, 10 * SPAIN).await;
        let (one, other) = (ready(&app, 6).await, ready(&app, 6).await);
        let sends = [&one, &other, &one, &other].map(|id| act(&app, id, "send"));
        let mut answers: Vec<_> = at_once(sends.into()).await.into_iter().map(|answer| answer.status.as_u16()).collect();
        answers.sort_unstable();
        assert_eq!((answers[0], answers.contains(&402)), (202, true), "{answers:?}");
        assert!(answers[1..].iter().all(|status| matches!(status, 400 | 402)), "{answers:?}");
        assert_eq!(sums(accounts(&app).await), (4 * SPAIN, 6 * SPAIN, 0));
        finish(&app).await;
        assert_eq!(sums(accounts(&app).await), (4 * SPAIN, 0, 6 * SPAIN));
    }
}

// holds: broadcasts.reserved
#[tokio::test]
async fn a_broadcast_counts_to_the_day_on_which_it_is_sent() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        let sender = app.node.core.tenant_config(app.tenant()).await.expect("a world").default_sender().expect("a sender").id;
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"dailySpendLimit": 0.15}))).await.expect(200);
        let id = ready(&app, 3).await;
        add(&app, &id, ["+12125550001".to_owned()]).await;
        act(&app, &id, "send").await.expect(202);
        let message = json!({"to": "+34600111222", "text": "x"});
        let over = app.post("/v1/messages", message.clone()).await;
        assert_eq!(over.status.as_u16(), 202, "0.115 and 0.035 are 0.15");
        let next = ready(&app, 1).await;
        let over = act(&app, &next, "send").await.expect(402).json();
        // The message may have been charged by now, or not.
        let (charged, reserved) = if over["details"]["balance"] == 0 { (json!(0), 0.15) } else { (json!(-0.035), 0.115) };
        let details = json!({"dailySpendLimit": 0.15, "spentToday": 0.15, "required": 0.035,
            "balance": charged, "reserved": reserved, "available": -0.15});
        assert_eq!(over["details"], details);
        assert_eq!(status(&app, &next).await, "draft");
        // Failures do not count, and nothing counts twice.
        finish(&app).await;
        assert_eq!(status(&app, &id).await, "completed");
        let over = act(&app, &next, "send").await.expect(402).json();
        assert_eq!(over["details"]["spentToday"], json!(0.14));
        app.advance(Duration::from_secs(86_400)).await;
        act(&app, &next, "send").await.expect(202);
        finish(&app).await;
        assert_eq!(sums(accounts(&app).await), (-175_000, 0, 175_000));
        // Costs beyond the reservation wait for another day.
        price(&app, "0.05").await;
        let id = ready(&app, 2).await;
        app.post(&format!("/v1/broadcasts/{id}/send"), json!({"scheduledAt": "2026-01-02T12:00:00Z"})).await.expect(202);
        app.drain().await;
        price(&app, "0.1").await;
        app.advance(Duration::from_secs(43_200)).await;
        finish(&app).await;
        assert_eq!((status(&app, &id).await.as_str(), counts(&get(&app, &id).await)), ("sending", [2, 1, 0, 1, 0, 0]));
        app.advance(Duration::from_secs(43_200)).await;
        act(&app, &id, "resume").await.expect(200); // paused: past due after the advance
        finish(&app).await;
        assert_eq!((status(&app, &id).await.as_str(), counts(&get(&app, &id).await)), ("completed", [2, 0, 0, 2, 0, 0]));
        assert_eq!(accounts(&app).await.reserved, Micros(0));
    }
}

/// Random broadcasts with crashes, cancels, pauses, opt-outs and price changes: whenever nothing is in flight, reservations and spending
/// match the broadcasts; in the end, nothing is reserved.
// holds: broadcasts.reserved, ledger.invariants
#[tokio::test(flavor = "multi_thread")]
async fn the_books_are_even_whatever_becomes_of_broadcasts() {
    for backend in Backend::all() {
        let mut app = funded(backend, 20_000_000).await;
        let mut seed = 20_260_101_u64;
        let mut dice = move |faces: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % faces
        };
        let (mut ids, mut deposited, mut refused) = (Vec::new(), 20_000_000, 0);
        for round in 0..40 {
            let channel = ["sms", "whatsapp", "smart", "voice"][dice(4) as usize];
            let text =
                if dice(5) == 0 { "Please reply with your password".to_owned() } else { "Hello from Acme. ".repeat(1 + dice(12) as usize) };
            let id = draft(&app, json!({"name": "x", "channel": channel, "text": text})).await;
            let area = 201 + dice(700);
            let odd = (0..dice(10)).map(|n| format!("+1{}555000{n}", area + n));
            add(&app, &id, odd.chain(phones(1 + dice(120) as usize))).await;
            let at = if dice(6) == 0 { json!({"scheduledAt": "2026-01-05T00:00:00Z"}) } else { json!({}) };
            match app.post(&format!("/v1/broadcasts/{id}/send"), at).await.status.as_u16() {
                202 => {}
                402 => refused += 1,
                other => panic!("{other}"),
            }
            ids.push(id);
            for _ in 0..dice(4) {
                app.node.tick().await.expect("dispatch");
                tokio::task::yield_now().await;
            }
            let some = ids[dice(ids.len() as u64) as usize].clone();
            match dice(9) {
                0 | 1 => drop(act(&app, &some, "cancel").await),
                2 => drop(act(&app, &some, "pause").await),
                3 => drop(act(&app, &some, "escalate").await),
                4 => price(&app, ["0.01", "0.06", "0.2"][dice(3) as usize]).await,
                5 if round % 3 == 0 => {
                    app.crash().await;
                    app.clock.advance(Duration::from_secs(6));
                }
                6 => {
                    deposit(&app, 500_000).await;
                    deposited += 500_000;
                }
                7 => app.advance(Duration::from_secs(40)).await,
                _ => {}
            }
            if dice(4) == 0 {
                app.drain().await;
                check_sums(&app, &ids, deposited).await;
            }
        }
        assert!(refused > 2 && refused < 30, "{refused} of 40 were refused");
        for id in &ids {
            act(&app, id, "resume").await;
            if status(&app, id).await == "escalated" {
                drop(app.node.core.broadcasts().decide_review(app.tenant(), id, dice(2) == 0, None).await);
            }
        }
        deposit(&app, 500_000_000).await;
        deposited += 500_000_000;
        for _ in 0..6 {
            app.advance(Duration::from_secs(86_400)).await;
            for id in &ids {
                for contact in contacts(&app, id, "&status=sending").await {
                    let message = contact["messageId"].as_str().expect("a message");
                    app.post(&format!("/v1/messages/{message}/resolve"), json!({"action": "sent"})).await;
                }
                act(&app, id, "resume").await;
            }
            finish(&app).await;
        }
        let mut ends = std::collections::BTreeSet::new();
        for id in &ids {
            ends.insert(status(&app, id).await);
            let broadcast = get(&app, id).await;
            assert_eq!(costs(&broadcast).1, 0.0, "{broadcast}");
            recount(&app, id).await;
        }
        assert!(!ends.contains("sending") && !ends.contains("scheduled"), "{ends:?}");
        assert!(ends.contains("completed") && ends.contains("cancelled"), "{ends:?}");
        assert_eq!(check_sums(&app, &ids, deposited).await.reserved, Micros(0));
    }
}

/// Checks that the reserved and spent amounts match the broadcasts exactly.
async fn check_sums(app: &TestApp, ids: &[String], deposited: i64) -> Balance {
    let balance = accounts(app).await;
    assert!(balance.available >= Micros(0), "{balance:?}");
    assert_eq!(balance.total().0 + balance.spent.0, deposited, "{balance:?}");
    let (mut reserved, mut spent) = (0, 0);
    let mut tx = app.store().read().await.expect("a reader");
    for id in ids {
        let broadcast = tx.find_broadcast(app.tenant(), id.parse().expect("an id")).await.expect("a look").expect("the broadcast");
        assert!(broadcast.unspent() >= Micros(0), "{broadcast:?}");
        reserved += broadcast.held_money().0;
        spent += broadcast.counts.cost;
    }
    // Replies to STOP cost money, too.
    for answer in outbound(app).await.into_iter().filter(|message| message.state.detail.broadcast.is_none()) {
        reserved += answer.state.detail.money.as_ref().map_or(0, |money| money.open().0);
        spent += answer.state.detail.cost.map_or(0, |cost| cost.total().0);
    }
    assert_eq!((balance.reserved.0, balance.spent.0), (reserved, spent));
    balance
}
