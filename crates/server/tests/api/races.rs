//! Conflicting concurrent actions on a resource: whatever their order, nothing is lost and nothing is half-done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_core::broadcasts::SendBroadcast;
use nuncio_core::messages::SendOptions;
use nuncio_core::senders::{CreateSender, UpdateSender};
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

use crate::contacts::{get, list, sms, text};

/// Number of rounds after which a race must have had different winners.
const ROUNDS: usize = 40;

// holds: contacts.merge.race
#[tokio::test(flavor = "multi_thread")]
async fn a_merge_among_sends_loses_none_of_them() {
    for backend in Backend::all() {
        let app = Arc::new(TestApp::on(backend).await);
        // Merges during which some sends had returned and others had not.
        let mut amid = 0;
        for round in 0..ROUNDS {
            let numbers = [format!("+34600{round:02}1222"), format!("+34600{round:02}1333")];
            let (target, source) = (sms(&app, &numbers[0]).await, sms(&app, &numbers[1]).await);
            let answered = Arc::new(AtomicUsize::new(0));
            let sends: Vec<_> = (0..24)
                .map(|n| {
                    let (app, answered, to) = (app.clone(), answered.clone(), numbers[n % 2].clone());
                    tokio::spawn(async move {
                        let id = app.send_message(json!({"to": to, "text": "x", "channel": "sms"})).await;
                        answered.fetch_add(1, Ordering::Relaxed);
                        id
                    })
                })
                .collect();
            while answered.load(Ordering::Relaxed) < round % 12 {
                tokio::task::yield_now().await;
            }
            let before = answered.load(Ordering::Relaxed);
            let path = format!("/v1/contacts/{}/merge", text(&target["id"]));
            app.post(&path, json!({"sourceContactId": source["id"]})).await.expect(200);
            amid += usize::from(before < 24 && answered.load(Ordering::Relaxed) > before);
            for send in sends {
                let id = send.await.expect("the request ends");
                assert_eq!(app.message(&id).await["contactId"], target["id"]);
            }
            app.drain().await;
            let merged = get(&app, &target["id"]).await;
            let channels = merged["channels"].as_array().expect("channels");
            let sum: i64 = channels.iter().filter_map(|channel| channel["metrics"]["successCount"].as_i64()).sum();
            assert_eq!((channels.len(), sum, list(&app).await.len()), (2, 24, round + 1));
            if amid > 2 {
                break;
            }
        }
        assert!(amid > 0, "no send was answered while a merge was under way");
    }
}

/// They insert the same addresses: in the order of their requests, each would wait for the other.
// holds: contacts.create
#[tokio::test(flavor = "multi_thread")]
async fn of_two_requests_for_the_same_channels_one_creates_them() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        for round in 10..20 {
            let channel = |n: usize| json!({"channel": "sms", "identifier": format!("+34600{round}1{n:03}")});
            let body = |numbers: Vec<usize>| json!({"channels": numbers.into_iter().map(channel).collect::<Vec<_>>()});
            let (one, other) =
                tokio::join!(app.post("/v1/contacts", body((0..18).collect())), app.post("/v1/contacts", body((0..18).rev().collect())));
            let mut statuses = [one.status.as_u16(), other.status.as_u16()];
            statuses.sort_unstable();
            assert_eq!(statuses, [201, 400]);
        }
    }
}

// holds: messages.cancel
#[tokio::test(flavor = "multi_thread")]
async fn of_a_cancel_and_a_send_one_wins() {
    for backend in Backend::all() {
        let app = Arc::new(TestApp::on(backend).await);
        let (mut cancelled, mut sent) = (0, 0);
        for _ in 0..ROUNDS {
            let due = app.node.core.ids().clock.now().plus(Duration::from_secs(60));
            let mut ids = Vec::new();
            for n in 0..20 {
                let body = json!({"to": format!("+346001112{n:02}"), "text": "x", "channel": "sms", "scheduledAt": due});
                ids.push(app.send_message(body).await);
            }
            app.clock.advance(Duration::from_secs(60));
            let cancel = |id: &String| {
                let (app, path) = (app.clone(), format!("/v1/messages/{id}/cancel"));
                tokio::spawn(async move { app.request("POST", &path, None).await })
            };
            // Half of them race with the scanner, half with the attempts.
            let mut cancels: Vec<_> = ids[..10].iter().map(cancel).collect();
            app.node.tick().await.expect("dispatch");
            cancels.extend(ids[10..].iter().map(cancel));
            app.drain().await;
            for (id, cancel) in ids.iter().zip(cancels) {
                let answer = cancel.await.expect("the request ends");
                app.drain().await;
                let message = app.message(id).await;
                let attempts = message["attempts"].as_array().map(Vec::len);
                if answer.status.as_u16() == 200 {
                    assert_eq!((message["status"].as_str(), attempts), (Some("cancelled"), Some(0)), "{message}");
                    cancelled += 1;
                } else {
                    assert!(answer.expect(400).json()["details"]["currentStatus"].is_string());
                    assert_eq!((message["status"].as_str(), attempts), (Some("delivered"), Some(1)), "{message}");
                    sent += 1;
                }
            }
            if cancelled > 0 && sent > 0 {
                break;
            }
        }
        assert!(cancelled > 0 && sent > 0, "a race that always ends alike is none: {cancelled} cancelled, {sent} sent");
    }
}

/// A node keeps the configuration for a second, and another node may have changed it since.
// holds: senders.update.nodes
#[tokio::test]
async fn what_another_node_has_just_allowed_is_not_refused() {
    for app in TestApp::on_each().await {
        let other = app.another_node().await.core;
        let caller = other.keys().authenticate(&app.test_key).await.expect("a caller");
        let config = app.node.core.tenant_config(app.tenant()).await.expect("a configuration");
        let sender = config.default_sender().expect("a default sender").id;
        let limit = |countries: Value| serde_json::from_value::<UpdateSender>(json!({"allowedCountries": countries})).expect("a change");
        let spain = json!({"to": "+34600111222", "text": "x"});

        app.node.core.senders().change(app.tenant(), sender, limit(json!(["FR"]))).await.expect("a change");
        app.post("/v1/messages", spain.clone()).await.expect(400);
        other.senders().change(app.tenant(), sender, limit(Value::Null)).await.expect("a change");
        app.post("/v1/messages?dryRun=true", spain.clone()).await.expect(200);

        app.node.core.senders().change(app.tenant(), sender, limit(json!(["FR"]))).await.expect("a change");
        let broadcast = crate::broadcasts::sent(&app, 10).await;
        other.senders().change(app.tenant(), sender, limit(Value::Null)).await.expect("a change");
        crate::broadcasts::finish(&app).await;
        let shown = crate::broadcasts::get(&app, &broadcast).await;
        assert_eq!((&shown["status"], &shown["deliveredCount"]), (&json!("completed"), &json!(10)), "{shown}");

        let new: CreateSender = serde_json::from_value(json!({"name": "New"})).expect("a sender");
        let made = other.senders().create(&caller, new, None).await.expect("a sender").id.to_string();
        let auth = format!("Bearer {}", app.test_key);
        app.send("POST", "/v1/messages", &[("authorization", &auth), ("service-sender", &made)], Some(spain)).await.expect(202);
        // The one that runs the broadcast has not heard of its sender, either.
        let new: CreateSender = serde_json::from_value(json!({"name": "Newest"})).expect("a sender");
        let made = other.senders().create(&caller, new, None).await.expect("a sender").id.to_string();
        let draft = json!({"name": "News", "channel": "sms", "text": "Hello", "senderId": made});
        let draft = serde_json::from_value(draft).expect("a broadcast");
        let id = other.broadcasts().create(&caller, draft, SendOptions::default()).await.expect("a draft").id.to_string();
        crate::broadcasts::add(&app, &id, ["+34600111222".to_owned()]).await;
        other.broadcasts().send(&caller, &id, SendBroadcast::default()).await.expect("it is sent");
        crate::broadcasts::finish(&app).await;
        let shown = crate::broadcasts::get(&app, &id).await;
        assert_eq!((&shown["status"], &shown["deliveredCount"]), (&json!("completed"), &json!(1)), "{shown}");

        let new: CreateSender = serde_json::from_value(json!({"name": "Newer"})).expect("a sender");
        let made = other.senders().create(&caller, new, None).await.expect("a sender").id.to_string();
        app.post("/v1/sandbox/inbound", json!({"channel": "sms", "from": "+34600111222", "to": made, "text": "hi"})).await.expect(202);
    }
}
