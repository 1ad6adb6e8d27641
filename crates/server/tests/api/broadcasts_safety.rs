//! Canaries, and broadcasts that halt themselves.

use std::time::Duration;

use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::broadcasts::{act, add, contacts, counts, draft, finish, get, phones, status};

/// Returns undeliverable numbers.
fn wrong(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("+1{}5550001", 212 + n))
}

async fn limited(app: &TestApp, mut body: Value) -> String {
    let rest = json!({"name": "x", "channel": "sms", "text": "Hello from Acme"});
    body.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
    draft(app, body).await
}

// holds: broadcasts.halt
#[tokio::test]
async fn too_many_failures_pause_a_broadcast() {
    for app in TestApp::on_each().await {
        let id = limited(&app, json!({"haltOn": {"failurePercent": 10}, "canary": {"percent": 40, "waitSeconds": 600}})).await;
        add(&app, &id, wrong(60).chain(phones(140))).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        app.advance(Duration::from_secs(6)).await;
        let halted = get(&app, &id).await;
        let [total, pending, .., failed, _] = counts(&halted);
        assert_eq!((&halted["status"], total), (&json!("paused"), 200), "{halted}");
        assert!((120..=200).contains(&pending) && failed > 8, "{halted}");
        let reason = halted["haltedReason"].as_str().expect("a reason");
        assert!(reason.starts_with(&format!("{failed} of 80 recipients failed")) && reason.ends_with("the limit is 10 %"), "{reason}");
        // The caller resumed it knowing the failures: they no longer count.
        act(&app, &id, "resume").await.expect(200);
        assert_eq!(get(&app, &id).await["haltedReason"], Value::Null);
        app.drain().await;
        assert_eq!(status(&app, &id).await, "sending");
        app.request("POST", &format!("/v1/broadcasts/{id}/cancel"), None).await.expect(200);
    }
}

// holds: broadcasts.halt
#[tokio::test]
async fn opt_outs_pause_a_broadcast_and_few_failures_do_not() {
    for app in TestApp::on_each().await {
        let id = limited(&app, json!({"haltOn": {"failurePercent": 50, "optOutPercent": 3}, "canary": {"percent": 50, "waitSeconds": 60}}))
            .await;
        // Numbers with 07 reply STOP.
        add(&app, &id, wrong(4).chain((0..8).map(|n| format!("+1{}5550007", 312 + n))).chain(phones(188))).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        app.advance(Duration::from_secs(6)).await;
        app.advance(Duration::from_secs(60)).await;
        app.advance(Duration::from_secs(6)).await;
        let halted = get(&app, &id).await;
        assert!(halted["haltedReason"].as_str().is_some_and(|reason| reason.contains("opted out")), "{halted}");
    }
}

// holds: broadcasts.canary
#[tokio::test]
async fn a_canary_goes_first() {
    for app in TestApp::on_each().await {
        let id = limited(&app, json!({"canary": {"percent": 10, "waitSeconds": 60}})).await;
        add(&app, &id, phones(95)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        app.advance(Duration::from_secs(30)).await;
        assert_eq!(counts(&get(&app, &id).await), [95, 85, 0, 10, 0, 0]);
        let progress = app.get(&format!("/v1/broadcasts/{id}/progress")).await.expect(200).json();
        assert!(!progress.to_string().contains("estimatedCompletionAt"), "the others wait: {progress}");
        app.advance(Duration::from_secs(31)).await;
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [95, 0, 0, 95, 0, 0]);
        assert_eq!(status(&app, &id).await, "completed");
    }
}

// holds: broadcasts.halt, broadcasts.canary
#[tokio::test]
async fn wrong_limits_are_refused() {
    let app = TestApp::start().await;
    let wrong = [
        (json!({"canary": {"percent": 0, "waitSeconds": 60}}), "canary.percent"),
        (json!({"canary": {"percent": 10, "waitSeconds": 5}}), "canary.waitSeconds"),
        (json!({"haltOn": {"failurePercent": 0}}), "haltOn.failurePercent"),
        (json!({"haltOn": {"optOutPercent": 101}}), "haltOn.optOutPercent"),
    ];
    for (part, path) in wrong {
        let mut body = json!({"name": "x", "channel": "sms", "text": "x"});
        body.as_object_mut().expect("an object").extend(part.as_object().expect("an object").clone());
        let refused = app.post("/v1/broadcasts", body).await.expect(400).json();
        assert_eq!(refused["details"]["errors"][0]["path"], path, "{refused}");
    }
}

// holds: broadcasts.halt
#[tokio::test]
async fn a_broadcast_with_nobody_left_is_not_halted() {
    let app = TestApp::start().await;
    let id = limited(&app, json!({"haltOn": {"failurePercent": 1}})).await;
    add(&app, &id, wrong(30).chain(phones(100))).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    let ended = get(&app, &id).await;
    assert_eq!((&ended["status"], counts(&ended)), (&json!("completed"), [130, 0, 0, 100, 30, 0]), "{ended}");
}

/// The test clock starts at midnight UTC. That is local time on the Canary Islands, whose numbers look like those of Madrid; in Los Angeles
/// it is four in the afternoon.
// holds: broadcasts.quiet_hours
#[tokio::test]
async fn nobody_is_written_to_at_night() {
    for app in TestApp::on_each().await {
        let hours = json!({"from": "21:00", "to": "08:00", "timeZone": "Asia/Tokyo"});
        let body = json!({"name": "x", "channel": "smart", "text": "Hello from Acme", "emailSubject": "News", "quietHours": hours});
        let id = draft(&app, body).await;
        assert_eq!(get(&app, &id).await["quietHours"], hours);
        add(&app, &id, phones(250).chain(["+12135550100".to_owned(), "ada@example.org".to_owned()])).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        assert_eq!(counts(&get(&app, &id).await), [252, 250, 0, 2, 0, 0], "Spain sleeps");
        for _ in 0..79 {
            app.advance(Duration::from_secs(360)).await;
        }
        assert_eq!(counts(&get(&app, &id).await)[1], 250, "it is 8:54 in Madrid, and 7:54 on the islands");
        let progress = app.get(&format!("/v1/broadcasts/{id}/progress")).await.expect(200).text;
        assert!(!progress.contains("estimatedCompletionAt"), "no time across quiet hours: {progress}");
        for _ in 0..2 {
            app.advance(Duration::from_secs(360)).await;
        }
        finish(&app).await;
        assert_eq!((status(&app, &id).await.as_str(), counts(&get(&app, &id).await)), ("completed", [252, 0, 0, 252, 0, 0]));
    }
    let app = TestApp::start().await;
    for (hours, path) in [
        (json!({"from": "25:00", "to": "08:00"}), "quietHours.from"),
        (json!({"from": "21:00", "to": "21:00"}), "quietHours.to"),
        (json!({"from": "21:00", "to": "08:00", "timeZone": "Mars"}), "quietHours.timeZone"),
    ] {
        let refused =
            app.post("/v1/broadcasts", json!({"name": "x", "channel": "sms", "text": "x", "quietHours": hours})).await.expect(400).json();
        assert_eq!(refused["details"]["errors"][0]["path"], path, "{refused}");
    }
}

/// The first attempt to reach one of the two is deferred for two seconds, when one second is left before the quiet hours.
// holds: broadcasts.quiet_hours
#[tokio::test]
async fn a_retry_waits_for_the_end_of_the_quiet_hours() {
    for app in TestApp::on_each().await {
        let hours = json!({"from": "00:05", "to": "08:00"});
        let body = json!({"name": "x", "channel": "email", "text": "Hello from Acme", "emailSubject": "News", "quietHours": hours});
        let id = draft(&app, body).await;
        add(&app, &id, ["ada@example.org", "throttle@example.org"].map(str::to_owned)).await;
        app.advance(Duration::from_secs(299)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        assert_eq!(counts(&get(&app, &id).await), [2, 0, 1, 1, 0, 0]);
        for pause in [60, 3_600, 24_840] {
            app.advance(Duration::from_secs(pause)).await;
            assert_eq!(counts(&get(&app, &id).await), [2, 0, 1, 1, 0, 0], "it is before eight");
        }
        for pause in [2, 60] {
            app.advance(Duration::from_secs(pause)).await;
        }
        finish(&app).await;
        assert_eq!((status(&app, &id).await.as_str(), counts(&get(&app, &id).await)), ("completed", [2, 0, 0, 2, 0, 0]));
        let page = contacts(&app, &id, "").await;
        let retried = page.iter().find(|c| c["recipient"] == "throttle@example.org").expect("the recipient");
        let message = app.message(retried["messageId"].as_str().expect("a message")).await;
        assert_eq!(message["attempts"].as_array().map(Vec::len), Some(2), "{message}");
    }
}

// holds: broadcasts.canary, broadcasts.quiet_hours
#[tokio::test]
async fn the_wait_of_a_canary_begins_when_it_was_sent() {
    for app in TestApp::on_each().await {
        let hours = json!({"from": "00:00", "to": "08:00"});
        let canary = json!({"percent": 10, "waitSeconds": 3600});
        let body = json!({"name": "x", "channel": "email", "text": "Hello", "emailSubject": "News", "quietHours": hours, "canary": canary});
        let id = draft(&app, body).await;
        add(&app, &id, (0..20).map(|n| format!("ada{n}@example.org"))).await;
        act(&app, &id, "send").await.expect(202);
        for _ in 0..80 {
            app.advance(Duration::from_secs(360)).await;
        }
        let sent = get(&app, &id).await;
        assert_eq!(counts(&sent), [20, 18, 0, 2, 0, 0]);
        assert_eq!(sent["canarySentAt"], "2026-01-01T08:00:00.000Z");
        app.advance(Duration::from_secs(3_500)).await;
        assert_eq!(counts(&get(&app, &id).await), [20, 18, 0, 2, 0, 0]);
        app.advance(Duration::from_secs(100)).await;
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [20, 0, 0, 20, 0, 0]);
    }
}
