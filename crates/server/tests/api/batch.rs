//! `POST /v1/messages/batch`: many messages in one request.

use nuncio_domain::Environment;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

const PATH: &str = "/v1/messages/batch";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

async fn batch(app: &TestApp, messages: Value) -> Vec<Value> {
    let answer = app.post(PATH, json!({"messages": messages})).await.expect(200).json();
    answer["results"].as_array().expect("results").clone()
}

fn statuses(results: &[Value]) -> Vec<u64> {
    results.iter().map(|result| result["status"].as_u64().expect("a status")).collect()
}

// holds: messages.batch
#[tokio::test]
async fn each_message_is_accepted_or_refused_by_itself() {
    for app in TestApp::on_each().await {
        let messages = json!([
            {"to": "+34600111222", "text": "first"},
            {"to": "nobody", "text": "x"},
            {"to": "+34600111222", "text": "x", "typo": 1, "validitySeconds": 5},
            "no object",
            {"to": "ada@example.com", "text": "x"},
            {"to": "+34600111333", "messageType": "template", "content": {"templateId": "tpl_00000000000000000000000000"}},
            {"to": "ada@example.com", "text": "last", "subject": "s"},
        ]);
        let results = batch(&app, messages.clone()).await;
        assert_eq!(statuses(&results), [202, 400, 400, 400, 400, 404, 202], "{results:?}");
        app.drain().await;
        for (n, words) in [(0, "first"), (6, "last")] {
            let message = &results[n]["message"];
            assert_eq!(text(&message["text"]), words);
            assert_eq!(app.message(text(&message["id"])).await["status"], "delivered");
        }
        // Each item is what POST /v1/messages returns.
        for (n, message) in messages.as_array().expect("messages").iter().enumerate().filter(|(n, _)| ![0, 6].contains(n)) {
            let mut alone = app.post("/v1/messages", message.clone()).await.json();
            alone["status"] = results[n]["status"].clone();
            assert_eq!(results[n], alone, "{message}");
        }
        let all = app.get("/v1/messages?limit=100").await.expect(200).json();
        assert_eq!(all["items"].as_array().map(Vec::len), Some(2));
    }
}

/// A small request must not get a response that fills the memory.
// holds: messages.batch
#[tokio::test]
async fn the_results_list_so_many_errors() {
    let app = TestApp::start().await;
    let wrong: Value = (0..98).map(|n| (format!("unknown{n}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    let answer = app.post(PATH, json!({"messages": vec![wrong; 1000]})).await.expect(200);
    assert!(answer.text.len() < 2_000_000, "{}", answer.text.len());
    let results = answer.json()["results"].clone();
    let count = |n: usize| results[n]["details"]["errors"].as_array().map(Vec::len);
    assert_eq!((count(0), count(999)), (Some(99), Some(1)));
    assert_eq!(results[999]["message"], "99 or more fields are invalid; details.errors lists the first of them");
}

/// What concerns one message only must not reject the others.
// holds: messages.batch
#[tokio::test]
async fn a_message_that_cannot_be_read_is_refused_alone() {
    for app in TestApp::on_each().await {
        let auth = format!("Bearer {}", app.test_key);
        let deep = format!(r#"{{"to":"+34600111222","text":"x","metadata":{{"a":{}{}}}}}"#, "[".repeat(40), "]".repeat(40));
        let messages = [
            r#"{"to":"+34600111222","text":"a\u0000b"}"#,
            deep.as_str(),
            r#"{"to":"+34600111222","text":"x","to":"+34600111333"}"#,
            r#"{"$serde_json::private::RawValue":"{}"}"#,
            r#"{"to":"+34600111222","text":"the only one"}"#,
        ];
        let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        for prefer in ["handling=strict", "handling=lenient"] {
            let headers = [("authorization", auth.as_str()), ("content-type", "application/json"), ("prefer", prefer)];
            let answer = app.raw("POST", PATH, &headers, body.clone()).await.expect(200).json();
            let results = answer["results"].as_array().expect("results");
            assert_eq!(statuses(results), [400, 400, 400, 400, 202], "{results:?}");
            let fault = |n: usize| text(&results[n]["message"]);
            assert_eq!(fault(0), "text: must not contain U+0000");
            assert!(fault(1).contains("levels deep") && fault(2).contains("duplicate field `to`"), "{results:?}");
        }
    }
}

// holds: messages.batch
#[tokio::test]
async fn results_stand_in_the_order_of_a_thousand_messages() {
    let app = TestApp::start().await;
    let messages: Vec<_> = (0..1_000).map(|n| json!({"to": format!("+34600{n:06}"), "text": n.to_string()})).collect();
    let results = batch(&app, json!(messages)).await;
    let texts: Vec<_> = results.iter().map(|result| text(&result["message"]["text"]).to_owned()).collect();
    assert_eq!(texts, (0..1_000).map(|n| n.to_string()).collect::<Vec<_>>());
}

// holds: messages.batch
#[tokio::test]
async fn each_message_has_its_own_key() {
    for app in TestApp::on_each().await {
        let keyed = |key: &str, text: &str| json!({"to": "+34600111222", "text": text, "idempotencyKey": key});
        let first = batch(&app, json!([keyed("a", "1"), keyed("b", "2")])).await;
        assert_eq!(statuses(&first), [202, 202]);
        let again = batch(&app, json!([keyed("a", "1"), keyed("b", "other"), keyed("c", "3"), keyed("c", "3")])).await;
        assert_eq!(statuses(&again), [409, 409, 202, 409]);
        assert_eq!((text(&again[0]["code"]), text(&again[1]["code"])), ("idempotency_conflict", "idempotency_key_reused"));
        for n in [0, 1] {
            assert_eq!(again[n]["message"]["id"], first[n]["message"]["id"], "the original");
            assert_eq!(again[n]["error"]["code"], again[n]["code"]);
        }
        let body = json!({"messages": [{"to": "+34600111222", "text": "x"}]});
        let refused = app.once("k", PATH, body).await.expect(400).json();
        assert_eq!(refused["details"]["errors"][0]["path"], "header.Idempotency-Key");
        assert_eq!(app.get("/v1/messages?limit=100").await.json()["items"].as_array().map(Vec::len), Some(3));
    }
}

// holds: messages.batch
#[tokio::test]
async fn of_messages_with_the_same_key_the_first_is_sent() {
    for app in TestApp::on_each().await {
        let keyed = |n: usize| json!({"to": "+34600111222", "text": n.to_string(), "idempotencyKey": "k"});
        let results = batch(&app, json!((0..100).map(keyed).collect::<Vec<_>>())).await;
        assert_eq!(results[0]["status"], 202);
        for result in &results[1..] {
            assert_eq!((text(&result["code"]), &result["message"]["id"]), ("idempotency_key_reused", &results[0]["message"]["id"]));
        }
    }
}

#[tokio::test]
async fn headers_are_for_all_messages() {
    let app = TestApp::start().await;
    let desk = app.post("/v1/senders", json!({"name": "Desk"})).await.expect(201).json()["id"].clone();
    let auth = format!("Bearer {}", app.test_key);
    let body = json!({"messages": [{"to": "+34600111222", "text": "x", "typo": 1}, {"to": "+34600111333", "text": "y"}]});
    let headers = [("authorization", auth.as_str()), ("service-sender", text(&desk)), ("prefer", "handling=lenient")];
    let results = app.send("POST", PATH, &headers, Some(body)).await.expect(200).json()["results"].clone();
    for result in results.as_array().expect("results") {
        assert_eq!((&result["status"], &result["message"]["senderId"]), (&json!(202), &desk));
    }
}

#[tokio::test]
async fn what_is_no_batch_is_refused_as_a_whole() {
    let app = TestApp::start().await;
    let many = vec![json!({"to": "+34600111222", "text": "x"}); 1_001];
    for (body, path) in [
        (json!({"messages": []}), "messages"),
        (json!({"messages": many}), "messages"),
        (json!({"messages": {"to": "+34600111222"}}), "messages"),
        (json!({"messages": [{"to": "+34600111222", "text": "x"}], "dryRun": true}), "dryRun"),
        (json!({}), "messages"),
    ] {
        let answer = app.post(PATH, body).await.expect(400).json();
        assert_eq!(answer["details"]["errors"][0]["path"], path, "{answer}");
    }
    let unknown = app.post(PATH, json!({"messages": [{"to": "+34600111222", "text": "x"}], "message": {}})).await.expect(400).json();
    assert_eq!(unknown["message"], "message: is unknown; known are messages");
    let key = app.key(Environment::Test, &["messages:read"]).await;
    let body = json!({"messages": [{"to": "+34600111222", "text": "x"}]});
    app.send("POST", PATH, &[("authorization", &format!("Bearer {key}"))], Some(body)).await.expect(403);
    assert_eq!(app.get("/v1/messages").await.json()["items"], json!([]));
}
