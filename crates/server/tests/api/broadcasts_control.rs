//! Scheduling, pausing, resuming and cancelling broadcasts, also concurrently.

use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::{BroadcastId, Clock as _};
use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

use crate::at_once;
use crate::broadcasts::{SECOND, act, add, contacts, counts, finish, get, messages, now, phones, recount, sent, status, text, told};

// holds: broadcasts.schedule
#[tokio::test]
async fn a_scheduled_broadcast_waits_and_can_be_moved() {
    for app in TestApp::on_each().await {
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

/// A node finds the broadcast due, and a caller moves it before the node begins.
#[tokio::test]
async fn a_broadcast_that_is_moved_while_a_node_begins_it_waits() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        add(&app, &id, phones(2)).await;
        app.post(&format!("/v1/broadcasts/{id}/send"), json!({"scheduledAt": "2026-01-01T01:00:00Z"})).await.expect(202);
        app.drain().await;
        let path = format!("/v1/broadcasts/{id}/schedule");
        app.request("PATCH", &path, Some(json!({"scheduledAt": "2026-01-01T09:00:00Z"}))).await.expect(200);
        app.advance(Duration::from_secs(4 * 3_600)).await;
        // On time, and so late that it would be held.
        for ago in [SECOND, Duration::from_secs(2 * 3_600)] {
            let now = app.clock.now();
            let mut tx = app.store().begin().await.expect("a transaction");
            let due = tx.due_broadcasts(now.plus(Duration::from_secs(86_400)), 1, 10).await.expect("due").remove(0);
            assert!(tx.claim_broadcast(&due, Some(now.minus(ago))).await.expect("a claim"));
            tx.commit().await.expect("committed");
            app.drain().await;
            assert_eq!(status(&app, &id).await, "scheduled");
        }
        for _ in 0..10 {
            app.advance(Duration::from_secs(1_800)).await;
        }
        finish(&app).await;
        assert_eq!(status(&app, &id).await, "completed");
    }
}

#[tokio::test]
async fn a_sender_stays_while_a_broadcast_needs_it() {
    for app in TestApp::on_each().await {
        let sender = app.post("/v1/senders", json!({"name": "Shop"})).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        let body = json!({"name": "b", "channel": "sms", "text": "x", "senderId": sender});
        let made = app.post("/v1/broadcasts", body).await.expect(201).json();
        let id = made["broadcast"]["id"].as_str().expect("an id").to_owned();
        add(&app, &id, phones(1)).await;
        app.post(&format!("/v1/broadcasts/{id}/send"), json!({"scheduledAt": "2026-01-01T01:00:00Z"})).await.expect(202);
        app.drain().await;
        assert_eq!(status(&app, &id).await, "scheduled");
        let path = format!("/v1/senders/{sender}");
        let refused = app.request("DELETE", &path, None).await.expect(400).json();
        let names_it = refused["message"].as_str().is_some_and(|message| message.contains(&id));
        assert!(names_it && refused["details"]["reason"] == "queued_messages", "{refused}");
        let before = told(&app, &id).await.len();
        let schedule = format!("/v1/broadcasts/{id}/schedule");
        app.request("PATCH", &schedule, Some(json!({"scheduledAt": "2026-01-01T02:00:00Z"}))).await.expect(200);
        assert_eq!(told(&app, &id).await.len(), before, "its status is the same");
        act(&app, &id, "cancel").await.expect(200);
        app.request("DELETE", &path, None).await.expect(204);
        app.post(&format!("/v1/broadcasts/{id}/clone"), json!({})).await.expect(400);
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

// holds: broadcasts.send.twice
#[tokio::test]
async fn a_send_while_recipients_are_added_takes_those_that_are_there() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        add(&app, &id, phones(20)).await;
        let (send, more) = (format!("/v1/broadcasts/{id}/send"), format!("/v1/broadcasts/{id}/contacts"));
        let one = |to: &str| json!({"contacts": [{"recipient": to}]});
        let requests = [
            app.post(&send, json!({})),
            app.post(&send, json!({})),
            app.post(&more, one("+34600111222")),
            app.post(&more, one("+34600111223")),
        ];
        let statuses: Vec<_> = at_once(requests.into()).await.into_iter().map(|answer| answer.status.as_u16()).collect();
        let mut sends = statuses[..2].to_vec();
        sends.sort_unstable();
        assert_eq!(sends, [202, 400], "{statuses:?}");
        finish(&app).await;
        let total = 20 + statuses[2..].iter().filter(|status| **status == 201).count() as i64;
        assert_eq!(counts(&get(&app, &id).await), [total, 0, 0, total, 0, 0]);
    }
}

/// Maximum number of attempts in flight per connection: some can start while the pause is being stored.
const IN_FLIGHT: i64 = 256;

// holds: broadcasts.pause
#[tokio::test(flavor = "multi_thread")]
async fn pause_stops_and_resume_goes_on() {
    for app in TestApp::on_each().await {
        let id = sent(&app, 2_000).await;
        while status(&app, &id).await != "sending" {
            app.node.tick().await.expect("dispatch");
            tokio::task::yield_now().await;
        }
        act(&app, &id, "pause").await.expect(200);
        let started = now(&app, &id).await;
        let started = started.handled() - started.queued;
        app.drain().await;
        app.advance(Duration::from_secs(30)).await;
        let paused = get(&app, &id).await;
        let [_, pending, sending, delivered, ..] = counts(&paused);
        assert_eq!((paused["status"].as_str(), sending, pending + delivered), (Some("paused"), 0, 2_000));
        assert!(delivered <= started + IN_FLIGHT, "{delivered} went out, {started} of them before the pause");
        assert!(started < 2_000 - IN_FLIGHT, "the test must pause in the middle");
        act(&app, &id, "pause").await.expect(400);
        act(&app, &id, "resume").await.expect(200);
        act(&app, &id, "resume").await.expect(400);
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [2_000, 0, 0, 2_000, 0, 0]);
        assert!(messages(&app).await.values().all(|count| *count == 1), "but for those that the pause took back");
    }
}

// holds: broadcasts.cancel
#[tokio::test(flavor = "multi_thread")]
async fn cancel_takes_back_what_no_provider_has() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        // Deferred ones wait for their next attempt when the cancel arrives.
        let slow = (200..700).map(|area| format!("+1{area}5550004"));
        add(&app, &id, slow).await;
        add(&app, &id, phones(1_000)).await;
        act(&app, &id, "send").await.expect(202);
        while now(&app, &id).await.taken == 0 {
            app.node.tick().await.expect("dispatch");
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
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        add(&app, &id, ["+12125550003".to_owned()]).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        assert_eq!(counts(&get(&app, &id).await), [1, 0, 1, 0, 0, 0]);
        // Only the status, as if the node had died before it withdrew anything.
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
