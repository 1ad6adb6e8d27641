//! Pagination of all lists while rows are added.

use std::collections::BTreeSet;
use std::time::Duration;

use nuncio_domain::Clock as _;
use nuncio_domain::event::EventType;
use nuncio_testkit::{Backend, Receiver, TestApp};
use serde_json::{Value, json};

use crate::authz::stock;
use crate::webhooks;

/// Rows before the pagination begins.
const ROWS: usize = 11;

/// Adds a row to a list, newer than all others.
async fn make(app: &TestApp, list: &str) {
    app.clock.advance(Duration::from_millis(1));
    let phone = format!("+346{:08}", app.clock.now().millis() % 100_000_000);
    let (path, body) = match list {
        "messages" | "events" | "webhooks/deliveries" => ("messages", json!({"to": phone, "text": "x"})),
        "contacts" => (list, json!({"channels": [{"channel": "sms", "identifier": phone}]})),
        "suppressions" => (list, json!({"identifier": phone})),
        "audit-log" => ("senders", json!({"name": phone})),
        "senders" => (list, json!({"name": phone})),
        "templates" => (list, json!({"name": phone, "language": "en", "body": "x"})),
        "broadcasts" => (list, json!({"name": phone, "channel": "sms", "text": "x"})),
        "invitations" => (list, json!({"clientName": phone})),
        "phone-numbers" => (list, json!({"phoneNumber": stock(app).await})),
        recipients => (recipients, json!({"contacts": [{"recipient": phone}]})),
    };
    let answer = app.post(&format!("/v1/{path}"), body).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.text);
    if matches!(list, "events" | "webhooks/deliveries") {
        app.drain().await;
    }
}

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().expect("items").iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

/// Reads all pages. Each row that existed at the start is returned once, newest first, and no row twice.
async fn walk(app: &TestApp, list: &str) {
    for _ in 0..ROWS {
        make(app, list).await;
    }
    let before = ids(&app.get(&format!("/v1/{list}?limit=100")).await.expect(200).json());
    assert!(before.len() >= ROWS, "{list}");
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/{list}?limit=2{cursor}");
        let (page, ()) = tokio::join!(app.get(&path), make(app, list));
        let page = page.expect(200).json();
        assert!(matches!(ids(&page).len(), 1 | 2), "{list}: {page}");
        seen.extend(ids(&page));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let distinct: BTreeSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "{list}: a row twice");
    let old: Vec<_> = seen.iter().filter(|id| before.contains(id)).cloned().collect();
    assert_eq!(old, before, "{list}");
    let newest = ids(&app.get(&format!("/v1/{list}?limit=5")).await.expect(200).json());
    assert!(newest.iter().all(|id| !before.contains(id)), "{list}: nobody wrote meanwhile");
}

// holds: lists.walk
#[tokio::test]
async fn a_walk_sees_every_row_once_while_others_are_made() {
    for backend in Backend::all() {
        let app = webhooks::app(backend).await;
        let receiver = Receiver::start().await;
        let sender = webhooks::default_sender(&app).await;
        app.set_webhook(Some(sender), &receiver.url, &[EventType::MessageQueued], "whsec_c2VjcmV0").await;
        let draft = app.post("/v1/broadcasts", json!({"name": "x", "channel": "sms", "text": "x"})).await.expect(201).json();
        let recipients = format!("broadcasts/{}/contacts", draft["broadcast"]["id"].as_str().expect("an id"));
        for list in [
            "audit-log", "messages", "contacts", "suppressions", "senders", "templates", "broadcasts", "invitations", "phone-numbers",
            &recipients, "events", "webhooks/deliveries",
        ] {
            walk(&app, list).await;
        }
    }
}
