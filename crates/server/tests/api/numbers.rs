//! Phone numbers: the inventory, acquiring, assigning, releasing, renewing.

use std::time::Duration;

use insta::assert_snapshot;
use nuncio_core::numbers::ImportedNumber;
use nuncio_domain::Micros;
use nuncio_testkit::{Backend, TestApp, TestResponse};
use serde_json::{Value, json};

use super::at_once;

const DAY: Duration = Duration::from_secs(86_400);
const FREE: &str = "+12025550142";

async fn acquire(app: &TestApp, phone_number: &str) -> Value {
    app.post("/v1/phone-numbers", json!({"phoneNumber": phone_number})).await.expect(201).json()["phoneNumber"].clone()
}

fn id(of: &Value) -> String {
    of["id"].as_str().expect("an id").to_owned()
}

async fn patch(app: &TestApp, number: &Value, body: Value) -> TestResponse {
    app.request("PATCH", &format!("/v1/phone-numbers/{}", id(number)), Some(body)).await
}

async fn get(app: &TestApp, number: &Value) -> Value {
    app.get(&format!("/v1/phone-numbers/{}", id(number))).await.expect(200).json()["phoneNumber"].clone()
}

/// Creates another sender in the test environment.
async fn sender(app: &TestApp, phone_number: &str) -> nuncio_domain::SenderId {
    let body = if phone_number.is_empty() { json!({"name": "desk"}) } else { json!({"name": "desk", "phoneNumber": phone_number}) };
    let made = app.post("/v1/senders", body).await.expect(201).json();
    made["id"].as_str().and_then(|id| id.parse().ok()).expect("an id")
}

async fn phone_of(app: &TestApp, sender: nuncio_domain::SenderId) -> String {
    app.node.core.tenant_config(app.tenant()).await.expect("the world").sender(sender).expect("the sender").phone_number.clone()
}

/// Adds a number to the inventory of the test environment.
pub(crate) async fn stock(app: &TestApp, phone_number: &str, monthly_price: &str) {
    let number = ImportedNumber {
        phone_number: phone_number.to_owned(),
        capabilities: "sms".to_owned(),
        monthly_price: monthly_price.to_owned(),
        monthly_cost: "0.9".to_owned(),
        upfront_cost: "1".to_owned(),
        ..ImportedNumber::default()
    };
    app.node.core.numbers().import(app.tenant(), &[number], |_| String::new()).await.expect("a good number");
}

fn paths(answer: &TestResponse) -> Vec<String> {
    let errors = answer.json()["details"]["errors"].clone();
    errors.as_array().expect("faults").iter().map(|e| e["path"].as_str().unwrap_or_default().to_owned()).collect()
}

// holds: numbers.available
#[tokio::test]
async fn the_sandbox_has_numbers_to_look_for() {
    for app in TestApp::on_each().await {
        let found = async |query: &str| {
            let answer = app.get(&format!("/v1/phone-numbers/available?{query}")).await.expect(200).json();
            let items = answer["items"].as_array().expect("items").clone();
            items.iter().map(|n| n["phoneNumber"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found("countryCode=US").await, ["+12025550142", "+12025550143", "+12125550164", "+13105550187"]);
        assert_eq!(found("countryCode=us&limit=1").await, ["+12025550142"]);
        assert_eq!(found("countryCode=US&contains=55501&capabilities=mms,voice").await, ["+12025550142", "+12025550143"]);
        assert_eq!(found("countryCode=GB&capabilities=voice").await, ["+447700900123"]);
        for country in ["CA", "FR", "AU"] {
            assert_eq!(found(&format!("countryCode={country}")).await.len(), 1, "{country}");
        }
        assert!(found("countryCode=ES").await.is_empty());
        acquire(&app, FREE).await;
        assert_eq!(found("countryCode=US&contains=0142").await.len(), 0);
    }
}

#[tokio::test]
async fn every_fault_of_a_search_is_told() {
    let app = TestApp::start().await;
    let wrong = app.get("/v1/phone-numbers/available?countryCode=XX&contains=1a&capabilities=fax,sms").await.expect(400);
    assert_eq!(paths(&wrong), ["query.capabilities", "query.countryCode", "query.contains"]);
    let form = app.get("/v1/phone-numbers/available?limit=0&cursor=x").await.expect(400);
    assert_eq!(paths(&form), ["query.limit", "query.cursor", "query.countryCode"]);
    let long = app.get("/v1/phone-numbers/available?countryCode=US&contains=1234567890123456").await.expect(400);
    assert_eq!(paths(&long), ["query.contains"]);
}

// holds: numbers.fields, numbers.get
#[tokio::test]
async fn a_number_as_it_is_shown() {
    let app = TestApp::start().await;
    stock(&app, "+14155550123", "1.15").await;
    let body = json!({"phoneNumber": "+14155550123", "name": "Desk"});
    let acquired = app.post("/v1/phone-numbers", body).await.expect(201).json();
    assert_snapshot!(crate::pretty(&acquired));
    assert_eq!(get(&app, &acquired["phoneNumber"]).await, acquired["phoneNumber"]);
}

#[tokio::test]
async fn what_cannot_be_acquired_is_told() {
    let app = TestApp::start().await;
    let wrong = app.post("/v1/phone-numbers", json!({"phoneNumber": "12", "name": "x".repeat(101)})).await.expect(400);
    assert_eq!(paths(&wrong), ["phoneNumber", "name"]);
    let form = app.post("/v1/phone-numbers", json!({"number": FREE})).await.expect(400);
    assert_eq!(paths(&form), ["phoneNumber", "number"]);
    let missing = app.post("/v1/phone-numbers", json!({"phoneNumber": "+14155550123"})).await.expect(404);
    assert_eq!(missing.json()["code"], "not_found");
    app.post("/v1/phone-numbers", json!({"phoneNumber": FREE, "name": null})).await.expect(201);
    let taken = app.post("/v1/phone-numbers", json!({"phoneNumber": FREE})).await.expect(409);
    assert_eq!((taken.json()["code"].as_str(), taken.header("x-should-retry")), (Some("conflict"), "false"));
    let live = [("authorization", format!("Bearer {}", app.live_key))];
    let live: Vec<_> = live.iter().map(|(n, v)| (*n, v.as_str())).collect();
    app.send("POST", "/v1/phone-numbers", &live, Some(json!({"phoneNumber": "+12025550143"}))).await.expect(404);
}

// holds: numbers.acquire
#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_want_a_number_one_gets_it() {
    for backend in Backend::all() {
        let app = std::sync::Arc::new(TestApp::on(backend).await);
        let tries: Vec<_> = (0..8)
            .map(|_| {
                let app = app.clone();
                tokio::spawn(async move { app.post("/v1/phone-numbers", json!({"phoneNumber": FREE})).await })
            })
            .collect();
        let mut statuses = Vec::new();
        for one in tries {
            let answer = one.await.expect("the request ends");
            statuses.push((answer.status.as_u16(), answer.json()["code"].as_str().map(str::to_owned)));
        }
        assert_eq!(statuses.iter().filter(|(status, _)| *status == 201).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|s| **s == (409, Some("conflict".to_owned()))).count(), 7, "{statuses:?}");
    }
}

#[tokio::test]
async fn a_repeated_acquisition_answers_the_number() {
    let app = TestApp::start().await;
    let post = async |body: Value| app.once("k", "/v1/phone-numbers", body).await;
    post(json!({"phoneNumber": "+14155550123"})).await.expect(404); // does not use up the key
    let first = post(json!({"phoneNumber": FREE})).await.expect(201).json();
    let repeat = post(json!({"phoneNumber": FREE, "name": null})).await.expect(409).json();
    assert_eq!((&repeat["code"], &repeat["phoneNumber"]), (&json!("idempotency_conflict"), &first["phoneNumber"]));
    let other = post(json!({"phoneNumber": "+12025550143"})).await.expect(409).json();
    assert_eq!((&other["code"], &other["phoneNumber"]), (&json!("idempotency_key_reused"), &first["phoneNumber"]));
    let path = format!("/v1/phone-numbers/{}", id(&first["phoneNumber"]));
    app.request("DELETE", &path, None).await.expect(204);
    let released = post(json!({"phoneNumber": FREE})).await.expect(409).json();
    assert_eq!((&released["code"], released.get("phoneNumber")), (&json!("idempotency_conflict"), None));
}

// holds: numbers.list
#[tokio::test]
async fn numbers_are_listed_in_pages() {
    for app in TestApp::on_each().await {
        let mut made = Vec::new();
        for phone_number in ["+12025550142", "+12025550143", "+12125550164"] {
            app.clock.advance(Duration::from_millis(1));
            made.insert(0, id(&acquire(&app, phone_number).await));
        }
        let page = async |query: &str| app.get(&format!("/v1/phone-numbers?{query}")).await.expect(200).json();
        let ids = |page: &Value| page["items"].as_array().expect("items").iter().map(id).collect::<Vec<_>>();
        let first = page("limit=2&status=active").await;
        assert_eq!(ids(&first), made[..2]);
        let cursor = first["nextCursor"].as_str().expect("a cursor");
        let last = page(&format!("status=active&cursor={cursor}")).await;
        assert_eq!((ids(&last), &last["nextCursor"]), (made[2..].to_vec(), &Value::Null));
        app.get(&format!("/v1/phone-numbers?cursor={cursor}")).await.expect(400);
        assert!(ids(&page("status=suspended,pending").await).is_empty());
        assert_eq!(paths(&app.get("/v1/phone-numbers?status=held").await.expect(400)), ["query.status"]);
    }
}

// holds: numbers.update, numbers.update.limits
#[tokio::test]
async fn a_name_is_given_and_cleared() {
    let app = TestApp::start().await;
    let number = acquire(&app, FREE).await;
    let named = patch(&app, &number, json!({"name": "\u{e9}".repeat(100)})).await.expect(200).json();
    assert_eq!(named["phoneNumber"]["name"], "\u{e9}".repeat(100));
    assert_eq!(patch(&app, &number, json!({})).await.expect(200).json()["phoneNumber"]["name"], named["phoneNumber"]["name"]);
    let cleared = patch(&app, &number, json!({"name": null})).await.expect(200).json();
    assert_eq!(cleared["phoneNumber"].get("name"), None);
    for wrong in [json!({"name": "x".repeat(101)}), json!({"name": 7})] {
        assert_eq!(paths(&patch(&app, &number, wrong).await.expect(400)), ["name"]);
    }
    assert_eq!(paths(&patch(&app, &number, json!({"status": "active"})).await.expect(400)), ["status"]);
    app.request("PATCH", "/v1/phone-numbers/num_x", Some(json!({"name": "x"}))).await.expect(404);
}

// holds: numbers.update, numbers.taken
#[tokio::test]
async fn a_number_belongs_to_one_sender() {
    for app in TestApp::on_each().await {
        let number = acquire(&app, FREE).await;
        let (one, other) = (sender(&app, "").await, sender(&app, "").await);
        let assigned = patch(&app, &number, json!({"senderId": one})).await.expect(200).json();
        assert_eq!(assigned["phoneNumber"]["senderId"], one.to_string());
        assert_eq!(phone_of(&app, one).await, FREE, "a sender without a number takes it as its own");
        patch(&app, &number, json!({"senderId": one})).await.expect(200);
        let refused = patch(&app, &number, json!({"senderId": other, "name": "lost"})).await.expect(409).json();
        assert_eq!(refused["code"], "conflict");
        assert_eq!(get(&app, &number).await.get("name"), None, "all or nothing");
        let bound = app.request("DELETE", &format!("/v1/phone-numbers/{}", id(&number)), None).await.expect(409);
        assert_eq!(bound.json()["code"], "conflict");
        let freed = patch(&app, &number, json!({"senderId": null})).await.expect(200).json();
        assert_eq!(freed["phoneNumber"].get("senderId"), None);
        assert_eq!((phone_of(&app, one).await.as_str(), phone_of(&app, other).await.as_str()), ("", ""));
        patch(&app, &number, json!({"senderId": other})).await.expect(200);
        assert_eq!(phone_of(&app, other).await, FREE);
    }
}

#[tokio::test]
async fn a_sender_keeps_the_number_that_it_has() {
    let app = TestApp::start().await;
    let number = acquire(&app, FREE).await;
    let own = sender(&app, "+34600111222").await;
    patch(&app, &number, json!({"senderId": own})).await.expect(200);
    assert_eq!(phone_of(&app, own).await, "+34600111222");
    patch(&app, &number, json!({"senderId": null})).await.expect(200);
    assert_eq!(phone_of(&app, own).await, "+34600111222");
    // A sender whose number was entered by hand also has it.
    let by_hand = sender(&app, FREE).await;
    patch(&app, &number, json!({"senderId": own})).await.expect(409);
    let used = app.request("DELETE", &format!("/v1/phone-numbers/{}", id(&number)), None).await.expect(409).json();
    assert_eq!(used["message"], format!("sender {by_hand} sends from the number; give that sender another phoneNumber first"));
    patch(&app, &number, json!({"senderId": by_hand})).await.expect(200);
}

#[tokio::test]
async fn a_deleted_sender_lets_its_numbers_go() {
    for app in TestApp::on_each().await {
        let number = acquire(&app, FREE).await;
        let one = sender(&app, "").await;
        patch(&app, &number, json!({"senderId": one})).await.expect(200);
        app.request("DELETE", &format!("/v1/senders/{one}"), None).await.expect(204);
        assert_eq!(get(&app, &number).await.get("senderId"), None);
    }
}

#[tokio::test]
async fn senders_of_other_worlds_get_no_number() {
    let app = TestApp::start().await;
    let number = acquire(&app, FREE).await;
    let live = app.node.core.tenant_config(app.project.live).await.expect("the live world").default_sender().expect("a sender").id;
    for sender in [json!(live), json!("snd_x"), json!("")] {
        let missing = patch(&app, &number, json!({"senderId": sender})).await.expect(404).json();
        assert_eq!(missing["code"], "not_found");
    }
}

// holds: numbers.release
#[tokio::test]
async fn a_released_number_can_be_acquired_anew() {
    let app = TestApp::start().await;
    let number = acquire(&app, FREE).await;
    let path = format!("/v1/phone-numbers/{}", id(&number));
    let released = app.request("DELETE", &path, None).await.expect(204);
    assert_eq!(released.text, "");
    app.get(&path).await.expect(404);
    app.request("DELETE", &path, None).await.expect(404);
    assert_eq!(app.get("/v1/phone-numbers").await.expect(200).json(), json!({"items": [], "nextCursor": null}));
    assert_ne!(id(&acquire(&app, FREE).await), id(&number));
}

#[tokio::test]
async fn numbers_renew_every_month_on_their_day() {
    for app in TestApp::on_each().await {
        app.advance(DAY * 30).await; // 31 January
        stock(&app, "+14155550123", "1.15").await;
        let number = acquire(&app, "+14155550123").await;
        assert_eq!(number["nextRenewalDate"], "2026-02-28T00:00:00.000Z");
        app.advance(DAY * 27).await;
        assert_eq!(get(&app, &number).await["nextRenewalDate"], "2026-02-28T00:00:00.000Z", "a day before");
        app.advance(DAY).await;
        let renewed = get(&app, &number).await;
        assert_eq!((&renewed["nextRenewalDate"], &renewed["status"]), (&json!("2026-03-31T00:00:00.000Z"), &json!("active")));
        assert_eq!(renewed["updatedAt"], "2026-02-28T00:00:00.000Z");
        // Missed renewals are charged, month by month.
        app.advance(DAY * 70).await;
        for _ in 0..3 {
            app.advance(Duration::from_secs(1)).await;
        }
        assert_eq!(get(&app, &number).await["nextRenewalDate"], "2026-05-31T00:00:00.000Z");
    }
}

// holds: numbers.renewal
#[tokio::test]
async fn what_is_not_paid_is_suspended_until_it_is() {
    for app in TestApp::on_each().await {
        let core = app.node.core.clone();
        stock(&app, "+14155550123", "1.5").await;
        core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
        let body = json!({"phoneNumber": "+14155550123"});
        let refused = app.post("/v1/phone-numbers", body).await.expect(402).json();
        assert_eq!((&refused["code"], &refused["details"]["required"]), (&json!("insufficient_balance"), &json!(2.5)));
        core.billing().add_money(app.tenant(), Micros(4_500_000), None).await.expect("a deposit");
        let number = acquire(&app, "+14155550123").await;
        let balance = async || app.get("/v1/balance").await.expect(200).json();
        assert_eq!((&balance().await["available"], &balance().await["totalSpent"]), (&json!(2), &json!(2.5)));
        app.advance(DAY * 31).await;
        assert_eq!((&get(&app, &number).await["status"], &balance().await["available"]), (&json!("active"), &json!(0.5)));
        app.advance(DAY * 28).await;
        let unpaid = get(&app, &number).await;
        assert_eq!((&unpaid["status"], &unpaid["nextRenewalDate"]), (&json!("suspended"), &json!("2026-03-02T00:00:00.000Z")));
        assert_eq!(balance().await["available"], 0.5, "nothing was taken");
        core.billing().add_money(app.tenant(), Micros(1_500_000), None).await.expect("a deposit");
        app.advance(DAY).await;
        let paid = get(&app, &number).await;
        assert_eq!((&paid["status"], &paid["nextRenewalDate"]), (&json!("active"), &json!("2026-04-01T00:00:00.000Z")));
        assert_eq!(balance().await, json!({"balance": 0.5, "reserved": 0, "available": 0.5, "currency": "usd", "totalSpent": 5.5}));
        let mut tx = app.store().read().await.expect("a reader");
        let (sum, balance) = tx.sum_transfers(app.tenant()).await.expect("a sum");
        assert_eq!(sum, balance);
    }
}

#[tokio::test]
async fn of_two_nodes_one_renews() {
    for app in TestApp::on_each().await {
        let number = acquire(&app, FREE).await;
        app.clock.advance(DAY * 31);
        // Both nodes saw that it was due; the second one tries when it no longer is.
        let id = id(&number).parse().expect("an id");
        let numbers = app.node.core.numbers();
        let renew = || numbers.renew(app.tenant(), id);
        assert!(at_once(vec![renew(), renew(), renew()]).await.into_iter().all(|done| done.is_ok()));
        assert_eq!(get(&app, &number).await["nextRenewalDate"], "2026-03-01T00:00:00.000Z");
        assert_eq!(app.node.core.numbers().renew_due().await.ok(), Some(false));
    }
}

#[tokio::test]
async fn a_suspended_number_is_given_to_nobody() {
    let app = TestApp::start().await;
    let number = acquire(&app, FREE).await;
    let mut tx = app.store().begin().await.expect("a transaction");
    let mut stored = tx.lock_number(app.tenant(), id(&number).parse().expect("an id")).await.expect("a look").expect("the number");
    stored.renew(false, app.node.core.ids().clock.now());
    tx.update_number(app.tenant(), &stored).await.expect("written");
    tx.commit().await.expect("committed");
    let shown = get(&app, &number).await;
    assert_eq!((&shown["status"], &shown["nextRenewalDate"]), (&json!("suspended"), &json!("2026-01-02T00:00:00.000Z")));
    let refused = patch(&app, &number, json!({"senderId": sender(&app, "").await})).await.expect(400).json();
    assert_eq!((&refused["details"]["currentStatus"], &refused["details"]["allowedFrom"]), (&json!("suspended"), &json!(["active"])));
    let refused = app.post("/v1/invitations", json!({"phoneNumberId": id(&number)})).await.expect(400).json();
    assert_eq!(refused["details"]["currentStatus"], "suspended");
    app.advance(DAY).await; // retried, with enough money
    let shown = get(&app, &number).await;
    assert_eq!((&shown["status"], &shown["nextRenewalDate"]), (&json!("active"), &json!("2026-02-01T00:00:00.000Z")));
}

#[tokio::test]
async fn the_inventory_is_entered_from_the_command_line() {
    let app = TestApp::start().await;
    let run = async |command: Value| {
        let request = serde_json::from_value(json!({"project": null, "command": command})).expect("a command");
        nuncio::admin::run(&app.node.core, request).await
    };
    let number = |phone: &str, price: &str| json!({"phoneNumber": phone, "capabilities": "sms|voice", "monthlyPrice": price});
    let (good, again) = (number("+34600111222", "1"), number("+34600111222", "2"));
    let lines =
        [(2, &good), (3, &number("12", "x")), (4, &json!({"capabilities": "fax"})), (6, &json!({"capabilities": ";"})), (7, &again)];
    let wrong = json!({"numbers_import": {"env": "live", "numbers": lines}});
    let error = run(wrong).await.expect_err("must be refused");
    let told = nuncio::admin::explain(&error);
    for part in [
        "line 3, monthlyPrice: \"x\"",
        "line 3, phoneNumber",
        "line 4, capabilities: \"fax\"",
        "line 4, phoneNumber",
        "line 6, capabilities: is empty",
        "line 7: repeats the phone number +34600111222",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let list = async || run(json!({"numbers_list": {"env": "live"}})).await.expect("a list").json;
    assert_eq!(list().await, json!([]));
    run(json!({"numbers_import": {"env": "live", "numbers": [(2, good), (3, number("+34600111223", "2.5"))]}})).await.expect("entered");
    run(json!({"numbers_add": {"env": "live", "number": number("+34600111222", "3")}})).await.expect("entered anew");
    let listed = list().await;
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&listed[0]["pricing"]["monthlyPrice"], &listed[0]["countryCode"], &listed[0]["id"]),
        (&json!(3), &json!("ES"), &Value::Null)
    );
    assert_eq!(listed[1]["capabilities"], json!(["sms", "voice"]));
}
