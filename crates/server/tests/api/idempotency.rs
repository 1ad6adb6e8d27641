//! Idempotency keys.

use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

// holds: messages.idempotency, messages.idempotency.reused
#[tokio::test]
async fn a_repeat_gets_the_original_and_sends_nothing() {
    for app in TestApp::on_each().await {
        let body = json!({"to": "+34600111222", "text": "once", "idempotencyKey": "order-7"});
        let id = app.send_message(body.clone()).await;
        app.drain().await;
        let repeat = app.post("/v1/messages", body.clone()).await.expect(409);
        assert_eq!(repeat.header("x-should-retry"), "false");
        let repeat = repeat.json();
        assert_eq!((repeat["message"]["id"].as_str(), repeat["code"].as_str()), (Some(id.as_str()), Some("idempotency_conflict")));
        assert_eq!(repeat["error"]["code"], "idempotency_conflict");
        assert_eq!(repeat["message"]["status"], "delivered");
        let other =
            app.post("/v1/messages", json!({"to": "+34600111222", "text": "twice", "idempotencyKey": "order-7"})).await.expect(409).json();
        assert_eq!((other["code"].as_str(), other["message"]["id"].as_str()), (Some("idempotency_key_reused"), Some(id.as_str())));
        assert_eq!(app.get("/v1/messages").await.json()["items"].as_array().map(Vec::len), Some(1));
    }
}

/// A client that gets another error would take its key for a free one.
// holds: messages.idempotency
#[tokio::test]
async fn a_repeat_that_could_not_be_sent_any_more_gets_the_original() {
    for app in TestApp::on_each().await {
        let sender = app.get("/v1/senders").await.json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let key = |body: &serde_json::Value, key: &str| {
            let mut body = body.clone();
            body["idempotencyKey"] = key.into();
            body
        };
        let sms = json!({"to": "+34600111222", "text": "once", "channel": "sms", "validitySeconds": 86_400});
        let id = app.send_message(key(&sms, "k")).await;
        let chat = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
        app.drain().await;
        let path = format!("/v1/messages/{chat}/reactions");
        let reaction = app.once("k", &path, json!({"emoji": "👍"})).await.expect(202).json();
        app.drain().await;
        for channel in ["sms", "whatsapp"] {
            app.request("DELETE", &format!("/v1/senders/{sender}/channels/{channel}"), None).await.expect(204);
        }
        let repeat = app.post("/v1/messages", key(&sms, "k")).await.expect(409).json();
        assert_eq!((&repeat["code"], &repeat["message"]["id"]), (&json!("idempotency_conflict"), &json!(id)));
        let results = app.post("/v1/messages/batch", json!({"messages": [key(&sms, "k")]})).await.expect(200).json();
        assert_eq!((&results["results"][0]["status"], &results["results"][0]["message"]["id"]), (&json!(409), &json!(id)));
        let other = json!({"to": "+34600111222", "text": "twice", "channel": "sms"});
        assert_eq!(app.post("/v1/messages", key(&other, "k")).await.expect(409).json()["code"], "idempotency_key_reused");
        let refused = app.post("/v1/messages", key(&sms, "another")).await.expect(400).json();
        assert_eq!(refused["code"], "sender_not_configured", "and the key is still free");
        let repeat = app.once("k", &path, json!({"emoji": "👍"})).await.expect(409).json();
        assert_eq!((&repeat["code"], &repeat["message"]["id"]), (&json!("idempotency_conflict"), &reaction["message"]["id"]));
    }
}

// holds: messages.idempotency.header
#[tokio::test]
async fn body_and_header_are_the_same_key() {
    let app = TestApp::start().await;
    let body = json!({"to": "+34600111222", "text": "once"});
    app.once("k", "/v1/messages", body.clone()).await.expect(202);
    app.once("k", "/v1/messages", json!({"to": "+34600111222", "text": "once", "idempotencyKey": "k"})).await.expect(409);
    let differ = app.once("k", "/v1/messages", json!({"to": "+34600111222", "text": "once", "idempotencyKey": "other"})).await;
    assert_eq!(differ.expect(400).json()["details"]["errors"][0]["path"], "idempotencyKey");
}

#[tokio::test]
async fn members_in_another_order_and_defaults_written_out_are_the_same_request() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let raw = async |body: &str| {
        app.raw("POST", "/v1/messages", &[("authorization", &auth), ("content-type", "application/json")], body.as_bytes().to_vec()).await
    };
    raw(r#"{"to":"+34600111222","text":"x","metadata":{"a":1,"b":2},"idempotencyKey":"k"}"#).await.expect(202);
    for same in [
        r#"{"metadata":{"b":2,"a":1},"idempotencyKey":"k","subject":null,"text":"x","to":"+34600111222"}"#,
        r#"{"to":"+34600111222","text":"x","metadata":{"a":1,"b":2},"idempotencyKey":"k","channel":"auto","messageType":"text",
            "fallbackEnabled":true,"onUnknown":"resend","validitySeconds":86400,"attachments":[]}"#,
    ] {
        assert_eq!(raw(same).await.expect(409).json()["code"], "idempotency_conflict", "{same}");
    }
    let other = raw(r#"{"to":"+34600111222","text":"x","metadata":{"a":1,"b":2},"idempotencyKey":"k","fallbackEnabled":false}"#).await;
    assert_eq!(other.expect(409).json()["code"], "idempotency_key_reused");
}

#[tokio::test]
async fn defaults_written_out_are_the_same_request_wherever_something_is_made() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let sender = app.get("/v1/senders").await.json()["items"][0]["id"].clone();
    let with = |body: &serde_json::Value, more: &serde_json::Value| {
        let mut body = body.clone();
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        body
    };
    let channels = |primary: Option<bool>| {
        let mut channel = json!({"channel": "email", "identifier": "a@example.org"});
        if let Some(primary) = primary {
            channel["isPrimary"] = primary.into();
        }
        json!({"channels": [channel], "displayName": "", "metadata": {}})
    };
    for (path, body, defaults, different) in [
        ("/v1/contacts", json!({"channels": channels(None)["channels"]}), channels(Some(false)), channels(Some(true))),
        (
            "/v1/invitations",
            json!({"clientName": "A"}),
            json!({"expiresInDays": 7, "allowedPhoneCountries": []}),
            json!({"expiresInDays": 8}),
        ),
        (
            "/v1/templates",
            json!({"name": "t", "language": "en", "body": "Hello {{1}}"}),
            json!({"whatsappCategory": "UTILITY", "variables": ["1"], "buttons": []}),
            json!({"whatsappCategory": "MARKETING"}),
        ),
        (
            "/v1/suppressions",
            json!({"identifier": "+34600111222"}),
            json!({"reason": "manual", "channel": "sms"}),
            json!({"reason": "complaint"}),
        ),
        (
            "/v1/senders",
            json!({"name": "s"}),
            json!({"setAsDefault": false, "emailReceivingEnabled": false, "phoneNumber": ""}),
            json!({"setAsDefault": true}),
        ),
        (
            "/v1/broadcasts",
            json!({"name": "b", "channel": "sms", "text": "x"}),
            json!({"messageType": "text", "senderId": sender, "trackLinks": false, "variables": {}}),
            json!({"text": "y"}),
        ),
    ] {
        let post =
            async |body: serde_json::Value| app.send("POST", path, &[("authorization", &auth), ("idempotency-key", "k")], Some(body)).await;
        post(body.clone()).await.expect(201);
        let answer = post(with(&body, &defaults)).await;
        assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (409, Some("idempotency_conflict")), "{path} {}", answer.text);
        let answer = post(with(&body, &different)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["code"].as_str()),
            (409, Some("idempotency_key_reused")),
            "{path} {}",
            answer.text
        );
    }
}

#[tokio::test]
async fn recipients_are_added_once_by_a_key() {
    for app in TestApp::on_each().await {
        let auth = format!("Bearer {}", app.test_key);
        let broadcast = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x"})).await.expect(201).json();
        let id = broadcast["broadcast"]["id"].as_str().expect("an id");
        let add = async |to: &str| {
            let body = json!({"contacts": [{"recipient": to}]});
            app.send("POST", &format!("/v1/broadcasts/{id}/contacts"), &[("authorization", &auth), ("idempotency-key", "k")], Some(body))
                .await
        };
        assert_eq!(add("+34600111222").await.expect(201).json()["added"], 1);
        let repeat = add("+34600111222").await.expect(409).json();
        assert_eq!((repeat["code"].as_str(), repeat["broadcast"]["id"].as_str()), (Some("idempotency_conflict"), Some(id)));
        assert_eq!(add("+34600111333").await.expect(409).json()["code"], "idempotency_key_reused");
        app.post(&format!("/v1/broadcasts/{id}/send"), json!({})).await.expect(202);
        assert_eq!(add("+34600111222").await.expect(409).json()["code"], "idempotency_conflict", "though it is no draft any more");
        assert_eq!(app.get(&format!("/v1/broadcasts/{id}")).await.json()["broadcast"]["totalContacts"], 1);
    }
}

#[tokio::test]
async fn a_test_message_and_a_copy_of_a_broadcast_are_made_once_by_a_key() {
    for app in TestApp::on_each().await {
        let draft = json!({"name": "x", "channel": "sms", "text": "See https://example.org/news", "trackLinks": true});
        let id = app.post("/v1/broadcasts", draft).await.expect(201).json()["broadcast"]["id"].as_str().expect("an id").to_owned();
        let test = format!("/v1/broadcasts/{id}/test");
        let sent = app.once("k", &test, json!({"to": "+34600111222"})).await.expect(202).json();
        app.drain().await;
        let repeat = app.once("k", &test, json!({"to": "+34600111222"})).await.expect(409).json();
        assert_eq!((&repeat["code"], &repeat["message"]["id"]), (&json!("idempotency_conflict"), &sent["message"]["id"]));
        let other = app.once("k", &test, json!({"to": "+34600111223"})).await.expect(409).json();
        assert_eq!((&other["code"], &other["message"]["id"]), (&json!("idempotency_key_reused"), &sent["message"]["id"]));
        assert_eq!(app.get("/v1/messages").await.json()["items"].as_array().map(Vec::len), Some(1));

        let clone = format!("/v1/broadcasts/{id}/clone");
        let copy = app.once("k", &clone, json!({"name": "again"})).await.expect(201).json();
        let repeat = app.once("k", &clone, json!({"name": "again"})).await.expect(409).json();
        assert_eq!((&repeat["code"], &repeat["broadcast"]["id"]), (&json!("idempotency_conflict"), &copy["broadcast"]["id"]));
        let other = app.once("k", &clone, json!({})).await.expect(409).json();
        assert_eq!((&other["code"], &other["broadcast"]["id"]), (&json!("idempotency_key_reused"), &copy["broadcast"]["id"]));
        assert_eq!(app.get("/v1/broadcasts").await.json()["items"].as_array().map(Vec::len), Some(2));
    }
}

// holds: broadcasts.idempotency
#[tokio::test]
async fn a_repeat_that_lacks_what_was_deleted_since_gets_the_original() {
    for app in TestApp::on_each().await {
        let delete = async |path: String| app.request("DELETE", &path, None).await.expect(204);
        let repeated = async |path: &str, body: &serde_json::Value| {
            let answer = app.once("k", path, body.clone()).await.expect(409).json();
            assert_eq!(answer["code"], "idempotency_conflict", "{path} {answer}");
            answer
        };
        let sender = app.post("/v1/senders", json!({"name": "Shop"})).await.expect(201).json()["id"].clone();
        let template = json!({"name": "t", "language": "en", "body": "Hello"});
        let template = app.post("/v1/templates", template).await.expect(201).json()["id"].clone();
        let named = |id: &serde_json::Value| id.as_str().expect("an id").to_owned();

        let of_template = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": template}});
        let first = app.once("k", "/v1/broadcasts", of_template.clone()).await.expect(201).json()["broadcast"]["id"].clone();
        let adding = (format!("/v1/broadcasts/{}/contacts", named(&first)), json!({"contacts": [{"recipient": "+34600111222"}]}));
        app.once("k", &adding.0, adding.1.clone()).await.expect(201);
        delete(format!("/v1/templates/{}", named(&template))).await;
        assert_eq!(repeated("/v1/broadcasts", &of_template).await["broadcast"]["id"], first);
        assert_eq!(repeated(&adding.0, &adding.1).await["broadcast"]["id"], first);
        let new = app.once("another", "/v1/broadcasts", of_template.clone()).await.expect(404).json();
        assert_eq!(new["code"], "not_found");
        delete(format!("/v1/broadcasts/{}", named(&first))).await;
        repeated(&adding.0, &adding.1).await;

        let original = app.post("/v1/broadcasts", json!({"name": "x", "channel": "sms", "text": "x"})).await.expect(201).json();
        let original = named(&original["broadcast"]["id"]);
        let clone = format!("/v1/broadcasts/{original}/clone");
        let copy = app.once("k", &clone, json!({})).await.expect(201).json()["broadcast"]["id"].clone();
        delete(format!("/v1/broadcasts/{original}")).await;
        assert_eq!(repeated(&clone, &json!({})).await["broadcast"]["id"], copy);

        let of_sender = json!({"name": "x", "channel": "sms", "text": "x", "senderId": sender});
        let by_header = json!({"name": "x", "channel": "sms", "text": "x"});
        let auth = format!("Bearer {}", app.test_key);
        let header = [("authorization", auth.as_str()), ("idempotency-key", "h"), ("service-sender", sender.as_str().expect("an id"))];
        let opt_out = json!({"identifier": "+34600111222", "senderId": sender});
        let made = app.once("s", "/v1/broadcasts", of_sender.clone()).await.expect(201).json()["broadcast"]["id"].clone();
        app.send("POST", "/v1/broadcasts", &header, Some(by_header.clone())).await.expect(201);
        app.once("k", "/v1/suppressions", opt_out.clone()).await.expect(201);
        delete(format!("/v1/senders/{}", named(&sender))).await;
        let repeat = app.once("s", "/v1/broadcasts", of_sender).await.expect(409).json();
        assert_eq!((&repeat["code"], &repeat["broadcast"]["id"]), (&json!("idempotency_conflict"), &made));
        let repeat = app.send("POST", "/v1/broadcasts", &header, Some(by_header)).await.expect(409).json();
        assert_eq!(repeat["code"], "idempotency_conflict");
        repeated("/v1/suppressions", &opt_out).await;
        app.once("another", "/v1/suppressions", opt_out).await.expect(404);
    }
}

#[tokio::test]
async fn a_refused_request_does_not_use_up_its_key() {
    let app = TestApp::start().await;
    app.post("/v1/messages", json!({"to": "nonsense", "text": "x", "idempotencyKey": "k"})).await.expect(400);
    app.post("/v1/messages", json!({"to": "+34600111222", "text": "x", "idempotencyKey": "k"})).await.expect(202);
}

#[tokio::test]
async fn keys_of_the_two_worlds_do_not_meet() {
    let app = TestApp::start().await;
    app.connect(
        nuncio_domain::Channel::Email,
        "smtp",
        json!({"host": "127.0.0.1", "port": 1, "tls": "none", "from": "a@example.org"}),
        json!({}),
    )
    .await;
    let body = json!({"to": "b@example.net", "subject": "s", "text": "x", "idempotencyKey": "k"});
    app.post("/v1/messages", body.clone()).await.expect(202);
    app.with_key(&app.live_key, "POST", "/v1/messages", Some(body)).await.expect(202);
}

// holds: messages.idempotency.race
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_parallel_requests_with_one_key_make_one_message() {
    for backend in Backend::all() {
        let app = std::sync::Arc::new(TestApp::on(backend).await);
        let requests: Vec<_> = (0..100)
            .map(|_| {
                let app = app.clone();
                tokio::spawn(
                    async move { app.post("/v1/messages", json!({"to": "+34600111222", "text": "once", "idempotencyKey": "k"})).await },
                )
            })
            .collect();
        let mut answers = Vec::new();
        for request in requests {
            let answer = request.await.expect("the request ends");
            answers.push((answer.status.as_u16(), answer.json()["message"]["id"].as_str().map(str::to_owned)));
        }
        assert_eq!(answers.iter().filter(|(status, _)| *status == 202).count(), 1);
        assert_eq!(answers.iter().filter(|(status, _)| *status == 409).count(), 99);
        assert!(answers.iter().all(|(_, id)| id.is_some() && *id == answers[0].1), "{answers:?}");
        app.drain().await;
        assert_eq!(app.get("/v1/messages").await.json()["items"].as_array().map(Vec::len), Some(1));
    }
}
