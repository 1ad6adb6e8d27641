//! What one caller can make the server do is bounded, whatever the request says.

use nuncio_domain::limits;
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::{Value, json};

fn paths(answer: &Value) -> Vec<&str> {
    answer["details"]["errors"].as_array().into_iter().flatten().filter_map(|fault| fault["path"].as_str()).collect()
}

#[tokio::test]
async fn of_a_list_that_is_too_long_only_what_would_fit_is_looked_at() {
    let app = TestApp::start().await;
    let many = |item: Value| Value::Array(vec![item; 2_000]);
    let wide = "x".repeat(100);
    for (kind, content, expected) in [
        (
            "buttons",
            json!({"buttons": many(json!({"id": "a", "title": "t"}))}),
            &["content.buttons", "content.buttons[1].id", "content.buttons[2].id"][..],
        ),
        (
            "list",
            json!({"listButton": "b", "sections": [{"title": "t", "rows": many(json!({"id": "a", "title": "t"}))}]}),
            &["content.sections", "content.sections[0].rows"],
        ),
        ("contact", json!({"contacts": many(json!({"name": "n", "phones": ["+34600111222"]}))}), &["content.contacts"]),
        ("contact", json!({"contacts": [{"name": "n", "phones": many(json!("1"))}]}), &["content.contacts[0].phones"]),
    ] {
        let text = if kind == "contact" { Value::Null } else { "x".into() };
        let answer = app
            .post(
                "/v1/messages",
                json!({"to": "+34600111222", "messageType": kind, "channel": "whatsapp", "text": text, "content": content}),
            )
            .await;
        assert_eq!(paths(&answer.expect(400).json()), expected, "{kind}");
    }
    let files = json!({"to": "a@example.org", "subject": "s", "text": "x", "attachments": many(json!({"filename": "", "content": ""}))});
    let answer = app.post("/v1/messages", files).await.expect(400).json();
    assert_eq!(paths(&answer).len(), 1 + limits::ATTACHMENTS, "{answer}");
    for (field, most) in [("allowedCountries", 0), ("webhookEvents", limits::FAULTS)] {
        let answer = app.post("/v1/senders", json!({"name": "s", field: many(json!(wide))})).await.expect(400).json();
        assert!(paths(&answer).len() <= most + 1, "{answer}");
    }
}

#[tokio::test]
async fn a_body_of_very_many_values_is_refused_before_it_is_parsed() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let ones = "1,".repeat(limits::JSON_VALUES);
    for body in [
        format!(r#"{{"to":"+34600111222","text":"x","metadata":{{"a":[{ones}1]}}}}"#),
        format!(r#"{{"to":"+34600111222","text":"x","attachments":[{ones}1]}}"#),
    ] {
        let answer =
            app.raw("POST", "/v1/messages", &[("authorization", &auth), ("content-type", "application/json")], body.into_bytes()).await;
        let answer = answer.expect(400).json();
        assert_eq!(paths(&answer), ["body"]);
        assert!(answer["message"].as_str().is_some_and(|m| m.ends_with("values; at most 100000 are allowed")), "{answer}");
    }
}

#[tokio::test]
async fn faults_of_a_large_body_are_told_by_name_too() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let text = "x".repeat(2 * limits::SPOOL_THRESHOLD_BYTES);
    let body = json!({"to": 5, "txt": "x", "subject": text, "attachments": [{"filename": "a.pdf", "content": text}]});
    let answer = app.post("/v1/messages", body).await.expect(400).json();
    assert_eq!(paths(&answer), ["subject", "to", "txt"], "{answer}");
    let body = json!({"to": "a@example.org", "txt": "x", "subject": "s", "text": text});
    app.send("POST", "/v1/messages", &[("authorization", &auth), ("prefer", "handling=lenient")], Some(body)).await.expect(202);
}

#[tokio::test]
async fn lists_show_the_beginning_of_a_very_long_text() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let text = "é".repeat(400_000);
        let file = json!({"filename": "a.txt", "content": "QUJD"});
        let body = json!({"to": "a@example.org", "subject": "long", "text": text, "attachments": [file], "idempotencyKey": "k"});
        let id = app.send_message(body.clone()).await;
        app.drain().await;
        let begins =
            |shown: &Value| shown.as_str().is_some_and(|shown| shown.len() < 40_000 && text.starts_with(shown.trim_end_matches('…')));
        assert!(begins(&app.get("/v1/messages").await.json()["items"][0]["text"]));
        assert!(begins(&app.post("/v1/messages", body).await.expect(409).json()["message"]["text"]));
        assert!(begins(&app.get("/v1/events").await.json()["items"][0]["data"]["message"]["text"]));
        assert_eq!(app.message(&id).await["text"], text);
        let files = app.get(&format!("/v1/messages/{id}/attachments")).await.expect(200).json();
        assert_eq!((&files["items"][0]["size"], &files["items"][0]["filename"]), (&json!(3), &json!("a.txt")));
        let link = files["items"][0]["downloadUrl"].as_str().expect("a link").to_owned();
        assert_eq!(app.send("GET", &link, &[], None).await.expect(200).text, "ABC");
    }
}

#[tokio::test]
async fn reading_a_very_long_text_takes_part_of_the_budget() {
    let app = TestApp::with(Backend::Sqlite, Options { max_in_flight_bytes: 2 * 1024 * 1024, ..Options::default() }).await;
    let id = app.send_message(json!({"to": "a@example.org", "subject": "long", "text": "x".repeat(400_000)})).await;
    assert_eq!(app.get(&format!("/v1/messages/{id}")).await.expect(503).json()["code"], "unavailable");
}
