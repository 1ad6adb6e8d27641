//! Crashes, recovery, and independence of lanes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuncio_channel::{Account, AdapterFactory, Registry, Services};
use nuncio_domain::{Channel, FieldError};
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::json;

async fn unguarded(app: &TestApp) -> i64 {
    app.store().read().await.expect("a reader").count_unguarded_messages().await.expect("a count")
}

#[tokio::test]
async fn what_a_dead_process_had_under_way_is_unknown_and_resent() {
    for mut app in TestApp::on_each().await {
        app.connect(Channel::Email, "smtp", json!({"host": "127.0.0.1", "port": 9, "tls": "none", "from": "a@example.org"}), json!({}))
            .await;
        // Started, but the process dies before dispatch runs.
        let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        app.crash().await;
        let message = app.message(&id).await;
        let first = message["attempts"][0]["status"].as_str().map(str::to_owned);
        assert!(matches!(first.as_deref(), Some("unknown" | "accepted" | "delivered")), "{message}");
        app.advance(Duration::from_secs(10)).await;
        let message = app.message(&id).await;
        assert_eq!(message["status"], "delivered");
        assert_eq!(message["possibleDuplicate"].as_bool(), Some(first.as_deref() == Some("unknown")));
        assert_eq!(unguarded(&app).await, 0);
    }
}

#[tokio::test]
async fn a_database_found_stale_sends_nothing_by_itself() {
    let mut app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-02T00:00:00Z"})).await;
    app.clock.advance(Duration::from_secs(7_200));
    app.crash().await;
    app.advance(Duration::from_secs(86_400)).await;
    let message = app.message(&id).await;
    assert_eq!((message["status"].as_str(), message["heldReason"].as_str()), (Some("scheduled"), Some("stale_database")));
}

#[tokio::test]
async fn a_dead_provider_delays_nobody_else_and_is_waited_for() {
    let app = TestApp::start().await;
    app.connect(Channel::Email, "smtp", json!({"host": "127.0.0.1", "port": 9, "tls": "none", "from": "a@example.org"}), json!({})).await;
    let live = [("authorization", format!("Bearer {}", app.live_key))];
    let live: Vec<_> = live.iter().map(|(n, v)| (*n, v.as_str())).collect();
    let mut waiting = Vec::new();
    for n in 0..30 {
        let body = json!({"to": format!("r{n}@example.net"), "subject": "s", "text": "x"});
        waiting.push(
            app.send("POST", "/v1/messages", &live, Some(body)).await.expect(202).json()["message"]["id"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
    }
    app.advance(Duration::from_secs(30)).await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "quick"})).await;
    app.drain().await;
    assert_eq!(app.message(&id).await["status"], "delivered");
    for id in waiting {
        let message = app.send("GET", &format!("/v1/messages/{id}"), &live, None).await.expect(200).json();
        assert!(matches!(message["message"]["status"].as_str(), Some("sending" | "queued")), "{message}");
    }
    assert_eq!(unguarded(&app).await, 0);
}

#[tokio::test]
async fn messages_over_the_window_wait_their_turn_and_arrive() {
    let app = TestApp::start().await;
    let mut ids = Vec::new();
    for n in 0..600 {
        ids.push(app.send_message(json!({"to": format!("+3460{n:07}"), "text": "x"})).await);
    }
    app.drain().await;
    for id in ids {
        assert_eq!(app.message(&id).await["status"], "delivered");
    }
}

// holds: contacts.channel.metrics
#[tokio::test]
async fn metrics_of_the_contact_channel_add_up() {
    let app = TestApp::start().await;
    for _ in 0..3 {
        app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    }
    app.drain().await;
    let recipient = nuncio_domain::Recipient { kind: nuncio_domain::AddressKind::Phone, identifier: "+34600111222".into() };
    let mut tx = app.store().read().await.expect("a reader");
    let (address, _) = tx.find_address(app.tenant(), &recipient).await.expect("a look").expect("an address");
    let metrics = tx.channel_metrics(app.tenant(), address).await.expect("metrics");
    assert_eq!((metrics.len(), metrics[0].channel, metrics[0].sums.successes), (1, Channel::Sms, 3));
}

#[tokio::test]
async fn events_tell_the_whole_life_in_order() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    app.drain().await;
    let events =
        app.store().read().await.expect("a reader").list_message_events(app.tenant(), id.parse().expect("an id")).await.expect("events");
    let statuses: Vec<_> = events.iter().flat_map(|e| &e.changes).map(|c| c.status.as_str()).collect();
    assert_eq!(statuses, ["queued", "sending", "sent", "delivered"]);
    assert_eq!(
        events.iter().map(|e| (e.sequence, e.changes.len())).fold(1, |next, (at, count)| {
            assert_eq!(at, next);
            next + count as i64
        }),
        5
    );
}

/// What keeps a connection from being opened, such as too many open files, may pass.
#[tokio::test]
async fn a_connection_that_could_not_be_opened_is_opened_later() {
    let (sim, broken) = (nuncio_channel_sim::factory(), Arc::new(AtomicBool::new(false)));
    let (channels, fields, is_broken) = (sim.channels(), sim.fields(), Arc::clone(&broken));
    let open = move |account: &Account, services: &Services| match is_broken.load(Ordering::Acquire) {
        true => Err(vec![FieldError::new("settings", "no more files can be opened")]),
        false => sim.open(account, services),
    };
    let registry = Registry::new(vec![nuncio_channel_sim::factory(), AdapterFactory::new("flaky", channels, fields, open)]);
    let app = TestApp::with(Backend::Sqlite, Options { registry, ..Options::default() }).await;
    app.connect(Channel::Sms, "flaky", json!({}), json!({})).await;
    broken.store(true, Ordering::Release);
    let body = json!({"to": "+34600111222", "text": "x"});
    let sent = app.with_key(&app.live_key, "POST", "/v1/messages", Some(body)).await.expect(202).json();
    let status = async || {
        let path = format!("/v1/messages/{}", sent["message"]["id"].as_str().expect("an id"));
        app.with_key(&app.live_key, "GET", &path, None).await.expect(200).json()["message"]["status"].clone()
    };
    app.advance(Duration::from_secs(120)).await;
    assert_eq!(status().await, "queued");
    broken.store(false, Ordering::Release);
    app.advance(Duration::from_secs(60)).await;
    app.advance(Duration::from_secs(60)).await;
    assert_eq!(status().await, "delivered");
}
