//! Prices, costs, the balance, and their `dryRun`.

use std::time::Duration;

use nuncio::admin::{self, Command, CommandOutput, Request};
use nuncio_domain::ledger::Balance;
use nuncio_domain::message::{Direction, Message};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{Channel, Micros, ProjectId};
use nuncio_store::MessageFilter;
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

use crate::contacts::write;

const PRICES: &str = "channel,country,unit,provider,fee,effective_from\n\
                      sms,*,segment,0.05,0.01,\n\
                      sms,ES,segment,0.03,0.005,2026-01-01\n\
                      sms,US,segment,0.0075,0.0025,\n\
                      whatsapp,US,message,0.02,0.001,\n\
                      voice,*,minute,0.1,0,\n\
                      email,*,message,0.0001,0.000001,\n";

pub(crate) async fn with_prices(backend: Backend) -> TestApp {
    let app = TestApp::on(backend).await;
    assert_eq!(app.node.core.billing().import_prices(None, PRICES, false).await.expect("good prices").imported, 6);
    app
}

async fn balance(app: &TestApp) -> Value {
    app.get("/v1/balance").await.expect(200).json()
}

/// Returns the balance, after checking that it equals the sum of the transfers and that no money is lost or created.
pub(crate) async fn accounts(app: &TestApp) -> Balance {
    let mut tx = app.store().read().await.expect("a reader");
    let balance = tx.find_balance(app.tenant()).await.expect("a balance");
    assert_eq!(tx.sum_transfers(app.tenant()).await.expect("a sum"), (balance, balance));
    balance
}

// holds: balance.off, balance.get
#[tokio::test]
async fn without_prices_nothing_costs_anything() {
    let app = TestApp::start().await;
    app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
    let id = app.send_message(json!({"to": "+34600111222", "text": "hello"})).await;
    app.drain().await;
    let message = app.message(&id).await;
    assert_eq!((&message["status"], &message["segments"]), (&json!("delivered"), &json!(1)));
    assert!(["cost", "costProvider", "costTotal"].iter().all(|field| message.get(field).is_none()), "{message}");
    let nothing = json!({"balance": 0, "reserved": 0, "available": 0, "currency": "usd", "totalSpent": 0});
    assert_eq!(balance(&app).await, nothing);
}

// holds: balance.get, messages.cost, messages.segments
#[tokio::test]
async fn a_message_is_estimated_reserved_and_settled() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        app.node.core.billing().add_money(app.tenant(), Micros(1_000_000), None).await.expect("a deposit");
        let body = json!({"to": "+34600111222", "text": "ж".repeat(71), "scheduledAt": "2026-01-01T01:00:00Z"});
        let answer = app.post("/v1/messages", body).await.expect(202).json();
        assert_eq!((&answer["message"]["segments"], answer["message"].get("cost")), (&json!(2), None));
        assert_eq!(balance(&app).await, json!({"balance": 1, "reserved": 0.07, "available": 0.93, "currency": "usd", "totalSpent": 0}));
        app.advance(Duration::from_secs(3_600)).await;
        let message = app.message(answer["message"]["id"].as_str().unwrap_or_default()).await;
        assert_eq!(
            (&message["cost"], &message["costProvider"], &message["costTotal"]),
            (&json!(0.01), &json!(0.06), &json!(0.07)),
            "{message}"
        );
        assert_eq!(balance(&app).await, json!({"balance": 0.93, "reserved": 0, "available": 0.93, "currency": "usd", "totalSpent": 0.07}));
        accounts(&app).await;
    }
}

// holds: messages.cost, messages.suppressed
#[tokio::test]
async fn what_fails_costs_nothing_and_a_fallback_only_what_arrives() {
    let app = with_prices(Backend::Sqlite).await;
    for (to, channel, status, cost) in [
        ("+12125550001", "sms", "failed", None),
        ("+12125550002", "sms", "failed", None),
        ("+12125550002", "whatsapp", "delivered", Some(0.01)),
        ("+12125550100", "whatsapp", "delivered", Some(0.021)),
        ("+12125550100", "voice", "delivered", Some(0.1)),
    ] {
        let id = app.send_message(json!({"to": to, "text": "x", "channel": channel})).await;
        app.drain().await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["costTotal"].as_f64()), (Some(status), cost), "{to} {channel}: {message}");
        assert_eq!(accounts(&app).await.reserved, Micros(0), "{to} {channel}");
    }
    // Both routes were used: their costs add up.
    let id = app.send_message(json!({"to": "+12125550005", "text": "x", "channel": "whatsapp", "fallbackAfterSeconds": 60})).await;
    app.drain().await;
    app.advance(Duration::from_secs(61)).await;
    assert_eq!(app.message(&id).await.get("costTotal"), None, "not known yet");
    app.advance(Duration::from_secs(86_401)).await;
    let message = app.message(&id).await;
    assert_eq!((&message["costTotal"], &message["channel"], &message["segments"]), (&json!(0.031), &json!("sms"), &json!(1)), "{message}");
    // Suppressed: no cost, no reservation.
    app.send_message(json!({"to": "+12125550007", "text": "x"})).await;
    app.drain().await;
    app.advance(Duration::from_secs(1)).await;
    let before = accounts(&app).await;
    let answer = app.post("/v1/messages", json!({"to": "+12125550007", "text": "again"})).await.expect(202).json();
    assert_eq!((answer["message"]["errorCode"].as_str(), answer["message"].get("cost")), (Some("recipient_suppressed"), None));
    assert_eq!(accounts(&app).await, before);
}

// holds: balance.insufficient
#[tokio::test]
async fn beyond_the_limit_is_402_and_uses_up_no_key() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
        app.node.core.billing().add_money(app.tenant(), Micros(80_000), Some("receipt 1")).await.expect("a deposit");
        let (done, _) = app.node.core.billing().add_money(app.tenant(), Micros(80_000), Some("receipt 1")).await.expect("an answer");
        assert!(!done, "the same deposit twice");
        for other in [-10_000, 90_000] {
            let error =
                app.node.core.billing().add_money(app.tenant(), Micros(other), Some("receipt 1")).await.expect_err("another amount");
            assert_eq!(error.to_string(), "the reference was already used for 0.08; nothing changed");
        }
        assert_eq!(accounts(&app).await.available, Micros(80_000));
        // Scheduled: the reservation remains.
        let body = |key: &str| json!({"to": "+34600111222", "text": "x", "idempotencyKey": key, "scheduledAt": "2026-01-01T01:00:00Z"});
        app.send_message(body("a")).await;
        app.send_message(body("b")).await;
        let plan = app.post("/v1/messages?dryRun=true", body("c")).await.expect(200).json();
        assert_eq!((&plan["plan"]["affordable"], &plan["plan"]["required"]), (&json!(false), &json!(0.035)));
        let refused = app.post("/v1/messages", body("c")).await.expect(402).json();
        assert_eq!(refused["code"], "insufficient_balance");
        assert_eq!(refused["details"], json!({"balance": 0.08, "reserved": 0.07, "available": 0.01, "required": 0.035}));
        app.post("/v1/messages", body("a")).await.expect(409);
        app.advance(Duration::from_secs(3_600)).await;
        app.post("/v1/messages", body("c")).await.expect(402);
        app.node.core.billing().add_money(app.tenant(), Micros(25_000), None).await.expect("a deposit");
        let id = app.send_message(body("c")).await;
        app.drain().await;
        app.advance(Duration::from_secs(1)).await;
        assert_eq!(app.message(&id).await["costTotal"], json!(0.035));
        let left = accounts(&app).await;
        assert_eq!((left.available, left.reserved, left.spent), (Micros(0), Micros(0), Micros(105_000)));
        let error = app.node.core.billing().add_money(app.tenant(), Micros(-1), None).await.expect_err("there is nothing left to take out");
        assert_eq!(error.code().as_str(), "insufficient_balance");
        // The live environment has a separate balance.
        let live = [("authorization", format!("Bearer {}", app.live_key))];
        let live: Vec<_> = live.iter().map(|(n, v)| (*n, v.as_str())).collect();
        assert_eq!(app.send("GET", "/v1/balance", &live, None).await.expect(200).json()["totalSpent"], json!(0));
        app.node.core.billing().limit_balance(app.tenant(), false).await.expect("no limit");
        app.send_message(body("d")).await;
        app.drain().await;
        assert_eq!(balance(&app).await["available"], json!(-0.035));
    }
}

#[tokio::test]
async fn a_hundred_at_once_under_one_key_are_charged_once() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        let body = json!({"to": "+34600111222", "text": "x", "idempotencyKey": "k"});
        let all = (0..100).map(|_| app.post("/v1/messages", body.clone()));
        let mut statuses: Vec<_> = Vec::new();
        for answer in futures_join(all).await {
            statuses.push(answer.status.as_u16());
        }
        statuses.sort_unstable();
        assert_eq!((statuses[0], statuses[1], statuses[99]), (202, 409, 409));
        app.drain().await;
        assert_eq!(accounts(&app).await.spent, Micros(35_000));
    }
}

/// Polls all futures in turns.
async fn futures_join<T>(all: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut all: Vec<_> = all.map(|one| (Box::pin(one), None)).collect();
    std::future::poll_fn(|context| {
        for (one, answer) in all.iter_mut().filter(|(_, answer)| answer.is_none()) {
            if let std::task::Poll::Ready(value) = one.as_mut().poll(context) {
                *answer = Some(value);
            }
        }
        if all.iter().all(|(_, answer)| answer.is_some()) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    all.into_iter().filter_map(|(_, answer)| answer).collect()
}

/// Whatever happens to messages: final ones have no reservation, payments equal the sum of their costs, and the ledger balances.
#[tokio::test]
async fn money_adds_up_whatever_happens() {
    for backend in Backend::all() {
        let mut app = with_prices(backend).await;
        app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
        app.node.core.billing().add_money(app.tenant(), Micros(2_000_000), None).await.expect("a deposit");
        let mut ids = Vec::new();
        let mut seed = 12_345_u64;
        let mut refused = 0;
        for round in 0..120 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let dice = seed >> 33;
            let channel = ["auto", "sms", "whatsapp", "voice"][(dice / 7 % 4) as usize];
            let on_unknown = ["resend", "hold", "fail"][(dice / 31 % 3) as usize];
            let to = format!("+1{}555{:04}", 202 + round % 7, dice % 9);
            let text = "x".repeat(1 + (dice % 400) as usize);
            let mut body = json!({"to": to, "text": text, "channel": channel, "onUnknown": on_unknown});
            if dice.is_multiple_of(5) {
                body["fallbackAfterSeconds"] = json!(30);
            }
            if dice.is_multiple_of(11) {
                body["scheduledAt"] = json!("2026-01-02T00:00:00Z");
            }
            let answer = app.post("/v1/messages", body).await;
            match answer.status.as_u16() {
                202 => ids.push(answer.json()["message"]["id"].as_str().unwrap_or_default().to_owned()),
                402 => refused += 1,
                _ => panic!("{}", answer.text),
            }
            match dice % 6 {
                0 => {
                    app.drain().await;
                    check(&app).await;
                }
                1 => {
                    app.advance(Duration::from_secs(40)).await;
                    check(&app).await;
                }
                2 if round % 40 == 20 => app.crash().await,
                3 => drop(app.post(&format!("/v1/messages/{}/cancel", ids.last().map_or("x", |id| id)), json!({})).await),
                _ => {}
            }
            // Attempts are in flight: two reads see different moments.
            let balance = app.store().read().await.expect("a reader").find_balance(app.tenant()).await.expect("a balance");
            assert!(balance.available >= Micros(0) && balance.reserved >= Micros(0), "{balance:?}");
        }
        assert!(refused > 0 && ids.len() > 40, "{refused} refused, {} accepted", ids.len());
        for id in &ids {
            app.post(&format!("/v1/messages/{id}/resolve"), json!({"action": "sent"})).await;
        }
        for _ in 0..5 {
            app.advance(Duration::from_secs(86_400)).await;
        }
        assert!(outbound(&app).await.iter().all(|message| message.state.is_final()));
        assert_eq!(check(&app).await.reserved, Micros(0));
    }
}

/// Returns all outbound messages, including replies to STOP.
pub(crate) async fn outbound(app: &TestApp) -> Vec<Message> {
    let filter = MessageFilter { direction: Some(Direction::Outbound), ..MessageFilter::default() };
    let (mut tx, mut all, mut before) = (app.store().read().await.expect("a reader"), Vec::new(), None);
    loop {
        let page = tx.list_messages(app.tenant(), &filter, PageRequest::older(1_000, before)).await.expect("messages");
        all.extend(page.items);
        before = page.next;
        if before.is_none() {
            return all;
        }
    }
}

async fn check(app: &TestApp) -> Balance {
    let balance = accounts(app).await;
    assert!(balance.available >= Micros(0), "{balance:?}");
    assert_eq!(balance.total().0 + balance.spent.0, 2_000_000, "{balance:?}");
    let (mut reserved, mut spent) = (0, 0);
    for message in outbound(app).await {
        let money = message.state.detail.money.as_ref();
        let open = money.map_or(0, |money| money.open().0);
        assert!(open == 0 || !message.state.is_final(), "something is reserved for a final message: {message:?}");
        reserved += open;
        spent += message.state.detail.cost.map_or(0, |cost| cost.total().0);
    }
    assert_eq!((balance.reserved.0, balance.spent.0), (reserved, spent));
    balance
}

#[tokio::test]
async fn prices_change_for_what_is_accepted_afterwards() {
    let app = with_prices(Backend::Sqlite).await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    app.node
        .core
        .billing()
        .import_prices(Some(app.project.id), "channel,country,unit,provider,fee\nsms,*,message,0.5,0\n", false)
        .await
        .expect("prices");
    let next = app.send_message(json!({"to": "+34600111222", "text": "x".repeat(500)})).await;
    app.drain().await;
    assert_eq!(app.message(&id).await["costTotal"], json!(0.035), "what was promised holds");
    assert_eq!(app.message(&next).await["costTotal"], json!(0.5), "the project's own price goes first");
    let other = app.node.core.projects().create("other", None).await.expect("a project");
    assert_eq!(app.node.core.billing().list_prices(Some(other.id)).await.expect("a list"), []);
    // A date in the future.
    app.node
        .core
        .billing()
        .import_prices(Some(app.project.id), "channel,country,unit,provider,fee,effective_from\nsms,*,message,1,0,2026-01-03\n", false)
        .await
        .expect("prices");
    app.clock.advance(Duration::from_secs(2));
    let before = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    app.advance(Duration::from_secs(3 * 86_400)).await;
    let after = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    app.drain().await;
    assert_eq!((&app.message(&before).await["costTotal"], &app.message(&after).await["costTotal"]), (&json!(0.5), &json!(1)));
    let error = app
        .node
        .core
        .billing()
        .import_prices(None, "channel,country,unit,provider,fee\nfax,*,message,1,0\nsms,es,message,1,0\nsms,UK,message,1,0\n", true)
        .await;
    let faults = error.expect_err("two bad lines").details()["errors"].clone();
    assert_eq!(faults.as_array().map(Vec::len), Some(2), "{faults}");
    assert!(faults[1]["message"].as_str().is_some_and(|message| message.contains("write GB")), "{faults}");
    assert_eq!(app.node.core.billing().list_prices(None).await.expect("a list").len(), 6, "nothing of a bad file is taken over");
}

#[tokio::test]
async fn the_list_of_prices_has_those_of_the_project_too() {
    let app = TestApp::start().await;
    let list = async |own: bool| {
        let request = Request { project: None, command: Command::PricesList { own } };
        admin::run(&app.node.core, request).await.expect("a list")
    };
    assert!(list(false).await.text.starts_with("no prices: nothing is charged"));
    let import = async |project: Option<ProjectId>, price: &str| {
        let file = format!("channel,country,unit,provider,fee\nsms,*,segment,{price},0\n");
        app.node.core.billing().import_prices(project, &file, false).await.expect("prices");
    };
    import(Some(app.project.id), "0.5").await;
    for (own, expected) in [(false, vec![json!(app.project.id)]), (true, vec![json!(app.project.id)])] {
        let listed = list(own).await;
        assert_eq!(projects(&listed), expected);
        assert_eq!(listed.table.expect("a table").rows[0][..2], [app.project.name.as_str(), "sms"]);
    }
    import(None, "0.1").await;
    assert_eq!(projects(&list(false).await), [json!(app.project.id), Value::Null]);
    assert_eq!(projects(&list(true).await), [json!(app.project.id)]);
    app.node.core.billing().import_prices(Some(app.project.id), "channel,country,unit,provider,fee\n", true).await.expect("none");
    assert!(list(true).await.text.starts_with("no prices for this project only"));
}

fn projects(listed: &CommandOutput) -> Vec<Value> {
    listed.json.as_array().expect("a list").iter().map(|price| price["project"].clone()).collect()
}

// holds: messages.dry_run, messages.segments
#[tokio::test]
async fn dry_run_says_what_it_would_take_and_cost() {
    let app = with_prices(Backend::Sqlite).await;
    let plan = |body: Value| async {
        let answer = app.post("/v1/messages?dryRun=true", body).await.expect(200).json();
        answer["plan"].clone()
    };
    let smart = plan(json!({"to": "+34600111222", "text": format!("{}\u{2019}", "a".repeat(70))})).await;
    assert_eq!(
        (&smart["segments"], &smart["encoding"], &smart["forcedBy"]),
        (&json!(2), &json!("ucs2"), &json!({"character": "\u{2019}", "position": 70}))
    );
    assert_eq!(smart["estimatedCost"], json!({"cost": 0.01, "costProvider": 0.06, "costTotal": 0.07}));
    assert_eq!((&smart["affordable"], &smart["degraded"], smart.get("window")), (&json!(true), &json!([]), None));
    let plain = plan(json!({"to": "+34600111222", "text": "a".repeat(160), "channel": "whatsapp"})).await;
    assert_eq!((&plain["segments"], &plain["encoding"], &plain["fallbackChannel"]), (&json!(1), &json!("gsm7"), &json!("sms")));
    assert_eq!((&plain["window"]["open"], &plain["required"], plain.get("estimatedCost")), (&json!(true), &json!(0.035), None));
    let rich = plan(json!({"to": "+34600111222", "messageType": "buttons", "text": "?", "channel": "sms",
        "content": {"buttons": [{"id": "1", "title": "Yes"}]}}))
    .await;
    assert_eq!(rich["degraded"], json!(["sms: the buttons are sent as a numbered list"]));
    let mail = plan(json!({"to": "a@example.org", "subject": "s", "text": "x"})).await;
    assert_eq!((mail.get("segments"), mail.get("encoding"), &mail["required"]), (None, None, &json!(0.000101)));
    app.post("/v1/messages?dryRun=true", json!({"to": "+12125550009", "text": "x", "channel": "whatsapp"})).await.expect(400);
    app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
    assert_eq!(plan(json!({"to": "+34600111222", "text": "x"})).await["affordable"], false);
    app.post("/v1/suppressions", json!({"identifier": "+34600111222"})).await.expect(201);
    let free = plan(json!({"to": "+34600111222", "text": "x"})).await;
    assert_eq!((free.get("required"), free.get("estimatedCost"), &free["affordable"]), (None, None, &json!(true)), "{free}");
    app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    app.node.core.billing().limit_balance(app.tenant(), false).await.expect("no limit");
    assert_eq!(accounts(&app).await, Balance::default(), "a plan reserves nothing");
}

#[tokio::test]
async fn messages_at_the_same_moment_share_a_daily_limit() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        let sender = app.node.core.tenant_config(app.tenant()).await.expect("a world").default_sender().expect("a sender").id;
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"dailySpendLimit": 0.2}))).await.expect(200);
        let body = |n: usize| json!({"to": format!("+3460011{n:04}"), "text": "x"});
        let messages: Vec<_> = (0..30).map(body).collect();
        let results = app.post("/v1/messages/batch", json!({"messages": messages})).await.expect(200).json();
        let statuses: Vec<_> = results["results"].as_array().expect("results").iter().map(|r| r["status"].as_i64()).collect();
        assert_eq!(statuses.iter().filter(|status| **status == Some(202)).count(), 5, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == Some(402)).count(), 25, "{statuses:?}");

        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"dailySpendLimit": 0.4}))).await.expect(200);
        let answers = futures::future::join_all((0..30).map(|n| app.post("/v1/messages", body(n)))).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 202).count(), 6, "0.175 of 0.4 was spent");
    }
}

#[tokio::test]
async fn a_sender_spends_no_more_than_its_daily_limit() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        let sender = app.node.core.tenant_config(app.tenant()).await.expect("a world").default_sender().expect("a sender").id;
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"dailySpendLimit": 0.08}))).await.expect(200);
        let body = |key: &str| json!({"to": "+34600111222", "text": "x", "idempotencyKey": key});
        for key in ["a", "b"] {
            app.send_message(body(key)).await;
            app.drain().await;
        }
        let over = app.post("/v1/messages", body("c")).await.expect(402).json();
        assert_eq!(over["code"], "insufficient_balance");
        let money = app.get("/v1/balance").await.expect(200).json();
        let mut details = json!({"dailySpendLimit": 0.08, "spentToday": 0.07, "required": 0.035});
        for figure in ["balance", "reserved", "available"] {
            details[figure] = money[figure].clone();
        }
        assert_eq!(over["details"], details);
        assert_eq!(app.post("/v1/messages?dryRun=true", body("c")).await.expect(200).json()["plan"]["affordable"], false);
        app.post("/v1/messages", body("a")).await.expect(409);
        // What costs nothing is accepted.
        app.post("/v1/suppressions", json!({"identifier": "+34600111444"})).await.expect(201);
        let to_suppressed = json!({"to": "+34600111444", "text": "x"});
        let answer = app.post("/v1/messages", to_suppressed.clone()).await.expect(202).json();
        assert_eq!(answer["message"]["errorCode"], "recipient_suppressed", "{answer}");
        assert_eq!(app.post("/v1/messages?dryRun=true", to_suppressed).await.expect(200).json()["plan"]["affordable"], true);
        // Failed and free messages do not count, nor do those of another sender.
        app.send_message(json!({"to": "+12125550001", "text": "x"})).await;
        app.drain().await;
        assert_eq!(app.post("/v1/messages", body("c")).await.expect(402).json()["details"]["spentToday"], json!(0.07));
        app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp", "fallbackEnabled": false})).await;
        let other = app.post("/v1/senders", json!({"name": "Other"})).await.expect(201).json()["id"].clone();
        let headers =
            [("authorization", format!("Bearer {}", app.test_key)), ("service-sender", other.as_str().unwrap_or_default().to_owned())];
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        app.send("POST", "/v1/messages", &headers, Some(body("d"))).await.expect(202);
        app.drain().await;
        app.advance(Duration::from_secs(86_400)).await;
        app.send_message(body("c")).await;
        app.drain().await;
        assert_eq!(accounts(&app).await.reserved, Micros(0));
    }
}

// holds: suppressions.stop
#[tokio::test]
async fn an_answer_to_stop_costs_what_a_message_costs_and_is_never_refused() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
        app.node.core.billing().add_money(app.tenant(), Micros(40_000), None).await.expect("a deposit");
        write(&app, Channel::Sms, "+34600111222", "STOP", None).await;
        let answer = outbound(&app).await.remove(0);
        assert_eq!((answer.state.detail.segments, app.message(&answer.id.to_string()).await["costTotal"].clone()), (Some(1), json!(0.035)));
        let left = accounts(&app).await;
        assert_eq!((left.available, left.reserved, left.spent), (Micros(5_000), Micros(0), Micros(35_000)));
        write(&app, Channel::Sms, "+34600111333", "STOP", None).await;
        let answer = app.message(&outbound(&app).await.remove(0).id.to_string()).await;
        assert_eq!((&answer["to"], &answer["status"], answer.get("costTotal")), (&json!("+34600111333"), &json!("delivered"), None));
        assert_eq!(accounts(&app).await, left);
    }
}
