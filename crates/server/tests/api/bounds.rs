//! Limits on the work that one caller can cause.

use nuncio_core::numbers::ImportedNumber;
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
            &["content.buttons", "content.buttons[1].id", "content.buttons[1].title", "content.buttons[2].id", "content.buttons[2].title"]
                [..],
        ),
        (
            "list",
            json!({"listButton": "b", "sections": [{"title": "t", "rows": many(json!({"id": "a", "title": "t"}))}]}),
            &[
                "content.sections",
                "content.sections[0].rows",
                "content.sections[0].rows[1].id",
                "content.sections[0].rows[2].id",
                "content.sections[0].rows[3].id",
                "content.sections[0].rows[4].id",
                "content.sections[0].rows[5].id",
                "content.sections[0].rows[6].id",
                "content.sections[0].rows[7].id",
                "content.sections[0].rows[8].id",
                "content.sections[0].rows[9].id",
            ],
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
    for (field, most) in [("allowedCountries", 0), ("webhookEvents", limits::FIELD_ERRORS)] {
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
async fn of_very_many_variables_few_are_looked_at() {
    let app = TestApp::start().await;
    let many = |count: usize, value: &str| -> Value { (0..count).map(|n| (format!("a{n}"), json!(value))).collect() };
    let begun = std::time::Instant::now();
    let values = many(50_000, "");
    let answer = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x", "variables": values})).await;
    assert!(paths(&answer.expect(400).json()).len() < limits::FIELD_ERRORS);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());

    let template = app.post("/v1/templates", json!({"name": "t", "language": "en", "body": "x"})).await.expect(201).json();
    let draft = |values: Value| {
        let content = json!({"templateId": template["id"], "templateVariables": values});
        json!({"name": "b", "channel": "sms", "messageType": "template", "content": content})
    };
    let answer = app.post("/v1/broadcasts", draft(many(limits::TEMPLATE_VALUES + 1, "x"))).await.expect(400).json();
    assert_eq!(paths(&answer), ["content.templateVariables"]);
    // What is wrong with a broadcast is not told in full for each recipient.
    let made = app.post("/v1/broadcasts", draft(many(limits::TEMPLATE_VALUES, "x"))).await.expect(201).json();
    let path = format!("/v1/broadcasts/{}/contacts", made["broadcast"]["id"].as_str().expect("an id"));
    let outcome = app.post(&path, json!({"contacts": [{"recipient": "+34600111222"}]})).await.expect(201).json();
    let reason = outcome["errors"][0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("templateVariables.a0: ") && reason.ends_with("more") && reason.len() < 1_000, "{reason}");
}

#[tokio::test]
async fn lists_show_the_beginning_of_a_very_long_text() {
    for app in TestApp::on_each().await {
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

        let draft = json!({"name": "b", "channel": "email", "emailSubject": "long", "text": text});
        let made = app.post("/v1/broadcasts", draft).await.expect(201).json();
        let path = format!("/v1/broadcasts/{}", made["broadcast"]["id"].as_str().expect("an id"));
        app.post(&format!("{path}/cancel"), json!({})).await.expect(200);
        assert!(begins(&app.get("/v1/broadcasts").await.json()["items"][0]["text"]));
        let events = app.get("/v1/events?type=broadcast.status_changed").await.expect(200).json();
        assert!(begins(&events["items"][0]["data"]["broadcast"]["text"]));
        assert_eq!(app.get(&path).await.expect(200).json()["broadcast"]["text"], text);
    }
}

#[tokio::test]
async fn reading_a_very_long_text_takes_part_of_the_budget() {
    // Three times the maximum of text and HTML, of which one tenant gets two thirds, plus a little for a response.
    let words = limits::EMAIL_TEXT_BYTES + limits::EMAIL_HTML_BYTES;
    let app = TestApp::with(Backend::Sqlite, Options { max_in_flight_bytes: words * 9 / 2 + 600_000, ..Options::default() }).await;
    let id = app.send_message(json!({"to": "a@example.org", "subject": "long", "text": "x".repeat(400_000)})).await;
    let (path, auth) = (format!("/v1/messages/{id}"), format!("Bearer {}", app.test_key));
    let held = app.open("GET", &path, &[("authorization", &auth)], Vec::new()).await;
    assert_eq!(held.status(), 200);
    assert_eq!(app.get(&path).await.expect(503).json()["code"], "unavailable", "the other answer was not taken yet");
    drop(held);
    app.get(&path).await.expect(200);
}

#[tokio::test]
async fn a_contact_has_a_bounded_number_of_channels() {
    let app = TestApp::start().await;
    let contact = async |from: usize, count: usize| {
        let channels: Vec<_> =
            (from..from + count).map(|n| json!({"channel": "email", "identifier": format!("a{n}@example.org")})).collect();
        app.post("/v1/contacts", json!({"channels": channels})).await.expect(201).json()["id"].as_str().expect("an id").to_owned()
    };
    let target = contact(0, limits::CONTACT_CHANNELS - 1).await;
    let add = async |n: usize| {
        let channel = json!({"channel": "email", "identifier": format!("b{n}@example.org")});
        app.post(&format!("/v1/contacts/{target}/channels"), channel).await
    };
    add(1).await.expect(201);
    let refused = add(2).await.expect(400).json();
    assert!(refused["message"].as_str().is_some_and(|m| m.starts_with("the contact has 20 channels")), "{refused}");
    let merge = async |source: String| app.post(&format!("/v1/contacts/{target}/merge"), json!({"sourceContactId": source})).await;
    for n in 1..limits::MERGED_CHANNELS / limits::CONTACT_CHANNELS {
        let merged = merge(contact(100 * n, limits::CONTACT_CHANNELS).await).await.expect(200).json();
        let channels = merged["channels"].as_array().cloned().unwrap_or_default();
        assert_eq!(channels.len(), limits::CONTACT_CHANNELS * (n + 1));
        assert_eq!(channels.iter().filter(|c| c["isPrimary"] == true).count(), 1, "{merged}");
    }
    merge(contact(900, 1).await).await.expect(400);
}

#[tokio::test]
async fn streams_end_before_the_node_does() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let headers = [("authorization", auth.as_str()), ("accept", "text/event-stream")];
    let open = app.open("GET", "/v1/events", &headers, Vec::new()).await;
    assert_eq!(open.status(), 200);
    app.node.core.events().end_streams();
    let read = axum::body::to_bytes(open.into_body(), 4_096);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), read).await.expect("it ends").expect("whole");
    assert!(ended.starts_with(b"id: ") && ended.iter().filter(|byte| **byte == b'\n').count() == 2, "only where it began: {ended:?}");
    app.send("GET", "/v1/events", &headers, None).await.expect(503);
    assert!(app.node.core.ready().await.is_ok());
}

#[tokio::test]
async fn keys_that_are_not_those_of_the_database_are_refused() {
    for app in TestApp::on_each().await {
        app.node.core.projects().check_keys().await.expect("the same keys");
        let mut tx = app.store().begin().await.expect("a transaction");
        assert!(!tx.check_key(b"another").await.expect("compared"), "the worlds of a new project have their check already");
    }
}

#[tokio::test]
async fn a_number_belongs_to_one_sender() {
    let app = TestApp::start().await;
    let first = app.post("/v1/senders", json!({"name": "one", "phoneNumber": "+34600111222"})).await.expect(201).json();
    let refused = app.post("/v1/senders", json!({"name": "two", "phoneNumber": "+34600111222"})).await.expect(409).json();
    assert_eq!(refused["code"], "conflict");
    let second = app.post("/v1/senders", json!({"name": "two"})).await.expect(201).json();
    let path = format!("/v1/senders/{}", second["id"].as_str().unwrap_or_default());
    let change = async |path: &str, number: &str| app.request("PATCH", path, Some(json!({"phoneNumber": number}))).await;
    change(&path, "+34600111222").await.expect(409);
    assert_eq!(app.get(&path).await.json()["phoneNumber"], "");
    let own = format!("/v1/senders/{}", first["id"].as_str().unwrap_or_default());
    change(&own, "+34600111222").await.expect(200);

    // A number that was acquired, and assigned to a sender with another number.
    let free = app.get("/v1/phone-numbers/available?countryCode=US").await.expect(200).json()["items"][0]["phoneNumber"].clone();
    let number = app.post("/v1/phone-numbers", json!({"phoneNumber": free})).await.expect(201).json();
    let assign = format!("/v1/phone-numbers/{}", number["phoneNumber"]["id"].as_str().unwrap_or_default());
    app.request("PATCH", &assign, Some(json!({"senderId": first["id"]}))).await.expect(200);
    change(&path, free.as_str().unwrap_or_default()).await.expect(409);
    change(&own, free.as_str().unwrap_or_default()).await.expect(200);
}

#[tokio::test]
async fn both_directions_are_all_there_are() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    let listed = async |direction: &str| {
        let answer = app.get(&format!("/v1/messages?to=%2B34600111222&direction={direction}")).await.expect(200).json();
        answer["items"].as_array().map(Vec::len)
    };
    for (direction, count) in [("outbound", 1), ("inbound", 0), ("inbound,outbound", 1), ("outbound,inbound", 1), ("inbound,inbound", 0)] {
        assert_eq!(listed(direction).await, Some(count), "{direction} {id}");
    }
}

#[tokio::test]
async fn an_empty_name_is_none() {
    let app = TestApp::start().await;
    let invitation = app.post("/v1/invitations", json!({"clientName": ""})).await.expect(201).json();
    assert_eq!(invitation["invitation"]["clientName"], Value::Null);
    let free = app.get("/v1/phone-numbers/available?countryCode=US").await.expect(200).json()["items"][0]["phoneNumber"].clone();
    let number = app.post("/v1/phone-numbers", json!({"phoneNumber": free, "name": ""})).await.expect(201).json();
    let path = format!("/v1/phone-numbers/{}", number["phoneNumber"]["id"].as_str().unwrap_or_default());
    for (name, shown) in [("desk", json!("desk")), ("", number["phoneNumber"]["name"].clone())] {
        let changed = app.request("PATCH", &path, Some(json!({"name": name}))).await.expect(200).json();
        assert_eq!(changed["phoneNumber"]["name"], shown);
    }
    let channels = json!([{"channel": "telegram", "identifier": "4711"}]);
    let contact = app.post("/v1/contacts", json!({"channels": channels, "displayName": "\t"})).await.expect(201).json();
    let path = format!("/v1/contacts/{}", contact["id"].as_str().unwrap_or_default());
    let changed = app.request("PATCH", &path, Some(json!({"displayName": "\t"}))).await.expect(200).json();
    assert_eq!((contact.get("displayName"), changed.get("displayName")), (None, None));
}

#[tokio::test]
async fn ids_of_another_world_in_a_body_are_of_nothing() {
    let app = TestApp::start().await;
    let live = async |path: &str, body: Value| app.with_key(&app.live_key, "POST", path, Some(body)).await.expect(201).json();
    let sender = live("/v1/senders", json!({"name": "live"})).await["id"].clone();
    let template = live("/v1/templates", json!({"name": "t", "language": "en", "body": "x"})).await["id"].clone();
    let contact = live("/v1/contacts", json!({"channels": [{"channel": "sms", "identifier": "+34600111222"}]})).await["id"].clone();
    let stock = ImportedNumber { phone_number: "+34610000001".to_owned(), capabilities: "sms".to_owned(), ..ImportedNumber::default() };
    app.node.core.numbers().import(app.project.live, &[stock], |_| String::new()).await.expect("a good number");
    let number = live("/v1/phone-numbers", json!({"phoneNumber": "+34610000001"})).await["phoneNumber"]["id"].clone();

    let own = async |path: &str, body: Value| app.post(path, body).await.expect(201).json();
    let mine = own("/v1/contacts", json!({"channels": [{"channel": "sms", "identifier": "+34600111333"}]})).await;
    let text = own("/v1/templates", json!({"name": "t", "language": "en", "body": "x"})).await;
    let free = app.get("/v1/phone-numbers/available?countryCode=US").await.expect(200).json()["items"][0]["phoneNumber"].clone();
    let held = own("/v1/phone-numbers", json!({"phoneNumber": free})).await;
    let path = |head: &str, id: &Value, tail: &str| format!("/v1/{head}/{}{tail}", id.as_str().unwrap_or_default());
    for (method, path, body) in [
        ("POST", "/v1/broadcasts".to_owned(), json!({"name": "b", "channel": "sms", "text": "x", "senderId": sender})),
        (
            "POST",
            "/v1/broadcasts".to_owned(),
            json!({"name": "b", "channel": "sms", "messageType": "template", "content": {"templateId": template}}),
        ),
        ("POST", "/v1/messages".to_owned(), json!({"to": "+34600111222", "messageType": "template", "content": {"templateId": template}})),
        ("POST", "/v1/suppressions".to_owned(), json!({"identifier": "+34600111222", "senderId": sender})),
        ("POST", "/v1/invitations".to_owned(), json!({"phoneNumberId": number})),
        ("POST", path("contacts", &mine["id"], "/merge"), json!({"sourceContactId": contact})),
        ("POST", path("templates", &text["id"], "/submit"), json!({"senderId": sender})),
        ("PATCH", path("phone-numbers", &held["phoneNumber"]["id"], ""), json!({"senderId": sender})),
    ] {
        let answer = app.request(method, &path, Some(body.clone())).await;
        assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (404, Some("not_found")), "{path} {body} {}", answer.text);
    }
}
