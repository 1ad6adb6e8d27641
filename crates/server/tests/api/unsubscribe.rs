//! Unsubscribing by the link in an email.

use std::sync::atomic::Ordering;

use nuncio_domain::TenantId;
use nuncio_testkit::{TestApp, TestResponse};
use serde_json::{Value, json};

const FORM: [(&str, &str); 1] = [("content-type", "application/x-www-form-urlencoded")];

async fn path(app: &TestApp, id: &str) -> String {
    format!("/unsubscribe/{}", app.node.core.mail_tokens().unsubscribe(app.tenant(), id.parse().expect("an id")))
}

async fn click(app: &TestApp, path: &str) -> TestResponse {
    app.raw("POST", path, &FORM, b"List-Unsubscribe=One-Click".to_vec()).await
}

async fn suppressions(app: &TestApp) -> Vec<Value> {
    app.get("/v1/suppressions").await.expect(200).json()["items"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn one_click_opts_out_once() {
    for app in TestApp::on_each().await {
        let id = app.send_message(json!({"to": "ada@example.net", "subject": "s", "text": "x"})).await;
        app.drain().await;
        let path = path(&app, &id).await;

        let page = app.raw("GET", &path, &[], Vec::new()).await.expect(200);
        assert!(page.text.contains("<form method=\"post\">") && page.text.contains("ada@example.net"), "{}", page.text);
        assert!(page.header("content-security-policy").contains("default-src 'none'") && !page.text.contains("<script"));
        assert_eq!(page.header("cache-control"), "no-store");
        assert!(suppressions(&app).await.is_empty(), "looking changes nothing");

        let before = app.faults.begun.load(Ordering::Acquire);
        for _ in 0..3 {
            let answer = click(&app, &path).await.expect(200);
            assert!(answer.text.contains("You are unsubscribed"), "{}", answer.text);
        }
        assert_eq!(app.faults.begun.load(Ordering::Acquire) - before, 1, "a repetition writes nothing");
        let suppressions = suppressions(&app).await;
        let [only] = suppressions.as_slice() else { panic!("{suppressions:?}") };
        let sender = app.message(&id).await["senderId"].clone();
        assert_eq!(
            (&only["identifier"], &only["reason"], &only["senderId"], &only["channel"]),
            (&json!("ada@example.net"), &json!("opt_out"), &sender, &json!("email"))
        );
        let events = app.get("/v1/events").await.expect(200).text;
        assert_eq!(events.matches("\"contact.opted_out\"").count(), 1, "{events}");

        let refused = app.send_message(json!({"to": "ada@example.net", "subject": "s", "text": "x"})).await;
        assert_eq!(app.message(&refused).await["errorCode"], "recipient_suppressed");
    }
}

#[tokio::test]
async fn links_that_were_not_made_here_do_nothing() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "ada@example.net", "subject": "s", "text": "x"})).await;
    let (tokens, message) = (app.node.core.mail_tokens(), id.parse().expect("an id"));
    let good = path(&app, &id).await;
    let mut forged = good.clone();
    let last = if forged.ends_with('0') { "1" } else { "0" };
    forged.replace_range(forged.len() - 1.., last);
    let wrong = [
        forged,
        format!("/unsubscribe/{}", tokens.unsubscribe(TenantId(app.tenant().0 + 1_000), message)),
        format!("/unsubscribe/{}", tokens.bounce(app.tenant(), message, 0)),
        format!("/unsubscribe/{id}"),
        "/unsubscribe/%ff%00".to_owned(),
    ];
    for path in &wrong {
        click(&app, path).await.expect(404);
        app.raw("GET", path, &[], Vec::new()).await.expect(404);
    }
    assert!(suppressions(&app).await.is_empty());
    // Guesses are limited, without affecting valid links.
    let mut last = 404;
    for _ in 0..100 {
        last = click(&app, &wrong[0]).await.status.as_u16();
    }
    assert_eq!(last, 429);
    click(&app, &good).await.expect(200);
}
