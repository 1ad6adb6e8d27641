//! What becomes of a broadcast that is sent: review, rejection, escalation.

use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

use crate::broadcasts::{act, add, contacts, counts, draft, finish, get, messages, phones, status, text, told};

// holds: broadcasts.send.empty, broadcasts.transitions
#[tokio::test]
async fn what_cannot_go_out_is_said_before_and_after() {
    let app = TestApp::start().await;
    let id = text(&app).await;
    assert_eq!(act(&app, &id, "send").await.expect(400).json()["code"], "no_contacts");
    for verb in ["pause", "resume", "escalate", "retry-review"] {
        assert_eq!(act(&app, &id, verb).await.expect(400).json()["details"]["currentStatus"], "draft", "{verb}");
    }
    let path = format!("/v1/broadcasts/{id}/schedule");
    app.request("PATCH", &path, Some(json!({"scheduledAt": "2026-02-01T00:00:00Z"}))).await.expect(400);
    let live = format!("Bearer {}", app.live_key);
    let auth = [("authorization", live.as_str())];
    let made =
        app.send("POST", "/v1/broadcasts", &auth, Some(json!({"name": "x", "channel": "sms", "text": "x"}))).await.expect(201).json();
    let path = format!("/v1/broadcasts/{}", made["broadcast"]["id"].as_str().expect("an id"));
    let contacts = json!({"contacts": [{"recipient": "+34600111222"}]});
    app.send("POST", &format!("{path}/contacts"), &auth, Some(contacts)).await.expect(201);
    let refused = app.send("POST", &format!("{path}/send"), &auth, None).await.expect(400).json();
    assert_eq!(refused["code"], "sender_not_configured");
    // Nobody can be reached: outside the window, on WhatsApp. The broadcast fails, and says why for each.
    let id = draft(&app, json!({"name": "x", "channel": "whatsapp", "text": "Hello"})).await;
    add(&app, &id, ["+12125550009".to_owned()]).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    let broadcast = get(&app, &id).await;
    assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("failed"), [1, 0, 0, 0, 1, 0]));
    assert_eq!(self::contacts(&app, &id, "&status=failed").await[0]["errorCode"], "window_closed");
    // All are refused by the provider: nothing went out either.
    let id = text(&app).await;
    add(&app, &id, ["+12125550001".to_owned(), "+12135550001".to_owned()]).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    assert_eq!(status(&app, &id).await, "failed");
}

// holds: broadcasts.review, broadcasts.retry_review, broadcasts.escalate, broadcasts.transitions
#[tokio::test]
async fn a_rejected_broadcast_is_edited_reviewed_again_and_escalated() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let bad = "Please reply with your password to win";
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": bad})).await;
        add(&app, &id, phones(2)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), broadcast["reviewAttempts"].as_i64()), (Some("rejected"), Some(1)));
        let review = &broadcast["reviewResult"];
        assert!(review["score"].as_f64().is_some_and(|s| s < 0.6) && review["reviewedAt"].is_string(), "{review}");
        assert_eq!(review["flaggedContent"], json!([bad]));
        assert!(review["categories"].as_array().is_some_and(|c| c.contains(&json!("credential_request"))), "{review}");
        assert_eq!(counts(&broadcast), [2, 2, 0, 0, 0, 0]);
        let refused = act(&app, &id, "retry-review").await.expect(400).json();
        assert_eq!((refused["code"].as_str(), refused["details"]["currentStatus"].as_str()), (Some("invalid_request"), Some("rejected")));
        let path = format!("/v1/broadcasts/{id}");
        app.request("PATCH", &path, Some(json!({"name": "another name"}))).await.expect(200);
        act(&app, &id, "retry-review").await.expect(400); // a name is no content
        for attempt in 2..=3 {
            app.request("PATCH", &path, Some(json!({"text": format!("{bad} {attempt}")}))).await.expect(200);
            assert_eq!(act(&app, &id, "retry-review").await.expect(200).json()["broadcast"]["status"], "pending_review");
            app.drain().await;
            assert_eq!((status(&app, &id).await.as_str(), get(&app, &id).await["reviewAttempts"].as_i64()), ("rejected", Some(attempt)));
        }
        app.request("PATCH", &path, Some(json!({"text": "Hello from Acme"}))).await.expect(200);
        assert_eq!(act(&app, &id, "retry-review").await.expect(400).json()["code"], "review_attempts_exhausted");
        assert_eq!(act(&app, &id, "escalate").await.expect(200).json()["broadcast"]["status"], "escalated");
        act(&app, &id, "escalate").await.expect(400);
        let request = |command| nuncio::admin::Request { project: None, command };
        let listed = nuncio::admin::run(&app.node.core, request(nuncio::admin::Command::ReviewsList)).await.expect("a list");
        assert!(listed.text.contains(&id), "{}", listed.text);
        let decide = nuncio::admin::Command::ReviewsDecide { id: id.clone(), approve: true, reason: Some("a game".into()) };
        nuncio::admin::run(&app.node.core, request(decide)).await.expect("approved");
        finish(&app).await;
        assert_eq!(status(&app, &id).await, "completed");
        assert!(get(&app, &id).await["reviewResult"]["reasoning"].as_str().is_some_and(|r| r.contains("a game")));
        let told = told(&app, &id).await;
        assert_eq!(told[told.len() - 4..], ["escalated", "approved", "sending", "completed"]);
    }
}

// holds: broadcasts.escalate
#[tokio::test]
async fn what_an_operator_refuses_is_over() {
    let app = TestApp::start().await;
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Buy cocaine now"})).await;
    add(&app, &id, phones(1)).await;
    act(&app, &id, "send").await.expect(202);
    app.drain().await;
    act(&app, &id, "escalate").await.expect(200);
    let core = &app.node.core;
    assert!(core.broadcasts().decide_review(app.project.live, &id, false, None).await.is_err(), "another world");
    assert_eq!(core.broadcasts().decide_review(app.tenant(), &id, false, Some("no")).await.expect("refused").status, "rejected_final");
    assert!(core.broadcasts().decide_review(app.tenant(), &id, true, None).await.is_err());
    for verb in ["send", "cancel", "escalate", "retry-review", "resume"] {
        act(&app, &id, verb).await.expect(400);
    }
    assert!(messages(&app).await.is_empty());
}
