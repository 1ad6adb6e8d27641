//! Speed of all pages with a million messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use nuncio_domain::id::Id as _;
use nuncio_domain::user::Role;
use nuncio_domain::{AddressKind, Channel, Clock as _, ContactId, MessageId, Recipient, Timestamp};
use nuncio_store::{Accept, Accepted, DAY, HOUR, Traffic, TrafficRow};
use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

use crate::dashboard::{Browser, person};

/// Number of messages; `NUNCIO_TEST_MESSAGES` overrides it.
const MESSAGES: u64 = 1_000_000;
/// Messages per recipient.
const EACH: u64 = 10;
/// Maximum response time of a page, as the median of [`TRIES`].
const TIME: Duration = Duration::from_millis(100);
const TRIES: usize = 7;
/// Maximum size of a page, in bytes.
const WEIGHT: usize = 100_000;

/// Fills the test environment with a month of messages, some of them failed, to a tenth as many contacts, and the figures of their hours and days.
async fn fill(app: &TestApp, count: u64) -> MessageId {
    let first = app.send_message(json!({"to": "+34600000000", "text": "Your parcel is on its way", "metadata": {"order": "1017"}})).await;
    let lost = app.send_message(json!({"to": "+12125550001", "text": "Your parcel is lost"})).await;
    app.drain().await;
    app.advance(Duration::from_secs(60)).await;
    let tenant = app.tenant();
    let (now, ids) = (app.clock.now(), app.node.core.ids());
    let mut tx = app.store().read().await.expect("a reader");
    let delivered = tx.lookup_message(tenant, first.parse().expect("an id")).await.expect("a look").expect("a message");
    let failed = tx.lookup_message(tenant, lost.parse().expect("an id")).await.expect("a look").expect("a message");
    let epoch = tx.load_tenant(tenant).await.expect("a look").expect("a tenant").epoch;
    drop(tx);
    let accept = |n: u64| {
        let model = if n % 50 == 49 { &failed } else { &delivered };
        let at = now.minus(Duration::from_secs(30 * 86_400 * (count - n) / count));
        let to = Recipient { kind: AddressKind::Phone, identifier: format!("+34{}", 600_000_000 + n / EACH) };
        let mut message = model.clone();
        message.id = ids.at(at);
        message.to.clone_from(&to.identifier);
        message.address = ids.at(at);
        if n % 1_000 == 7 {
            Arc::make_mut(&mut message.request).text = Some(format!("A rare word, number {n}"));
        }
        let (address, contact) = (message.address, ContactId::from_uuid(message.address.uuid()));
        let mark = format!("mark of {}", to.identifier);
        Accept {
            new_address: address,
            new_contact: contact,
            message,
            recipient: to,
            country: "ES".to_owned(),
            mark,
            idempotency: None,
            epoch,
            broadcast_fence: 0,
            claim: None,
            now: at,
        }
    };
    for from in (0..count).step_by(2_048) {
        let written = join_all((from..count.min(from + 2_048)).map(|n| app.store().accept(accept(n)))).await;
        assert!(written.into_iter().all(|one| matches!(one, Ok(Accepted::New { .. }))), "around {from}");
    }
    fill_traffic(app, now).await;
    delivered.id
}

async fn fill_traffic(app: &TestApp, now: Timestamp) {
    let countries =
        ["ES", "MX", "US", "FR", "DE", "IT", "PT", "GB", "BR", "AR", "CL", "CO", "PE", "NL", "BE", "PL", "SE", "NO", "DK", "FI"];
    let figures = Traffic { sent: 23, delivered: 20, failed: 2, spent: 900_000, delays: [9, 4, 3, 2, 1, 1, 0, 0], ..Traffic::default() };
    let spans = |span: i64, count: i64| (0..count).map(move |ago| (span, Timestamp::from_millis((now.millis() / span - ago) * span)));
    for (span, began) in spans(HOUR, 720).chain(spans(DAY, 30)) {
        let mut tx = app.store().begin().await.expect("a transaction");
        for channel in [Channel::Sms, Channel::Whatsapp, Channel::Voice] {
            for country in countries {
                tx.add_traffic(app.tenant(), &TrafficRow { span, began, channel, country: country.to_owned(), figures })
                    .await
                    .expect("written");
            }
        }
        tx.commit().await.expect("committed");
    }
}

/// Returns the paths of all pages that show stored data.
async fn paths(app: &TestApp, browser: &Browser<'_>, message: MessageId) -> Vec<String> {
    let contact = app.get("/v1/contacts/phone/+34600000050").await.expect(200).json()["id"].as_str().expect("an id").to_owned();
    let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
    let made = browser.submit("/broadcasts/new", &[("name", "x"), ("channel", "sms"), ("text", "Hello"), ("once", "page-1")]).await;
    let broadcast = made.expect(303).header("location").to_owned();
    let rows: Vec<_> = (0..1_000).map(|n| json!({"recipient": format!("+34{}", 600_000_000 + n)})).collect();
    app.post(&format!("/v1{broadcast}/contacts"), json!({"contacts": rows})).await.expect(201);
    let mut paths: Vec<String> = [
        "/",
        "/?span=week",
        "/?span=month",
        "/messages",
        "/messages?status=failed",
        "/messages?status=queued,scheduled",
        "/messages?channel=whatsapp",
        "/messages?q=%2B34600000050",
        "/messages?q=rare+word",
        "/messages?q=no+such+word",
        "/messages?q=order%3D1017",
        "/messages?q=order%3Dnone",
        "/messages/new",
        "/conversations",
        "/contacts",
        "/contacts?q=nobody",
        "/contacts?q=600000050",
        "/broadcasts",
        "/broadcasts/new",
        "/reviews",
        "/senders",
        "/senders/new",
        "/templates",
        "/templates/new",
        "/numbers",
        "/invitations",
        "/suppressions",
        "/money",
        "/money/ledger",
        "/developers/keys",
        "/developers/webhook",
        "/settings/account",
        "/settings/people",
        "/settings/project",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.extend([
        format!("/messages/{message}"),
        format!("/messages/new?like={message}"),
        format!("/contacts/{contact}"),
        format!("/conversations/{contact}"),
        format!("{broadcast}/recipients"),
        format!("{broadcast}/recipients?status=failed"),
        broadcast,
        format!("/senders/{sender}"),
        format!("/senders/{sender}/profile"),
        format!("/senders/{sender}/channels/sms"),
    ]);
    paths
}

// holds: pages.speed
#[tokio::test]
#[ignore = "heavy: a million messages"]
async fn heavy_pages_are_fast_and_light() {
    let count = std::env::var("NUNCIO_TEST_MESSAGES").map_or(MESSAGES, |text| text.parse().expect("a number"));
    let mut slow = Vec::new();
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let browser = person(&app, "op@example.net", Role::Owner).await;
        let began = Instant::now();
        let message = fill(&app, count).await;
        println!("{backend:?}: {count} messages in {:?}", began.elapsed());
        let mut figures = Vec::new();
        for path in paths(&app, &browser, message).await {
            let (mut times, mut weight) = (Vec::new(), 0);
            for _ in 0..TRIES {
                let began = Instant::now();
                let answer = browser.get(&path).await;
                times.push(began.elapsed());
                assert_eq!(answer.status, 200, "{path}");
                weight = answer.text.len();
            }
            times.sort_unstable();
            figures.push((times[TRIES / 2], times[TRIES - 1], weight, path));
        }
        figures.sort_unstable_by(|a, b| b.cmp(a));
        for (median, most, weight, path) in &figures {
            println!(
                "{backend:?} {:>7.1} ms, at most {:>7.1} ms, {weight:>6} bytes: {path}",
                median.as_secs_f64() * 1e3,
                most.as_secs_f64() * 1e3
            );
        }
        let wrong = figures.into_iter().filter(|(median, _, weight, _)| *median > TIME || *weight > WEIGHT);
        slow.extend(wrong.map(|figure| (backend, figure)));
    }
    assert!(slow.is_empty(), "too slow or too heavy: {slow:#?}");
}
