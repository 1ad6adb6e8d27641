//! Invalid input: all field errors at once, and nothing is stored.

use nuncio_testkit::TestApp;
use serde_json::{Value, json};

/// Returns the paths in a rejection.
async fn faults(app: &TestApp, body: Value) -> Vec<String> {
    let answer = app.post("/v1/messages", body.clone()).await;
    assert_eq!(answer.status.as_u16(), 400, "{body} → {}", answer.text);
    let errors = answer.json()["details"]["errors"].as_array().cloned().unwrap_or_default();
    assert!(errors.iter().all(|e| e["message"].as_str().is_some_and(|m| !m.is_empty())), "{errors:?}");
    let mut paths: Vec<String> = errors.iter().map(|e| e["path"].as_str().unwrap_or_default().to_owned()).collect();
    paths.sort();
    paths
}

// holds: errors.all, messages.text.limits, messages.content.limits, messages.type.required, messages.to.contradiction, messages.voice_language, messages.attachments.limits
#[tokio::test]
async fn each_fault_is_named() {
    let app = TestApp::start().await;
    let button = |id: &str, title: &str| json!({"id": id, "title": title});
    for (body, expected) in [
        (json!({"to": "+34600111222"}), vec!["text"]),
        (json!({"text": "x"}), vec!["to"]),
        (json!({"to": "34600111222", "text": "x"}), vec!["to"]),
        (json!({"to": "+1", "text": "x"}), vec!["to"]),
        (json!({"to": "+34600111222333", "text": "x"}), vec!["to"]),
        (
            json!({"to": "nobody", "text": "x", "scheduledAt": "2030-01-01T00:00:00Z", "metadata": {"a": "x".repeat(17_000)}}),
            vec!["metadata", "scheduledAt", "to"],
        ),
        (json!({"to": "nobody", "messageType": "location", "content": {"latitude": 91, "longitude": 0}}), vec!["content.latitude", "to"]),
        (json!({"to": "nobody", "channel": "sms"}), vec!["text", "to"]),
        (json!({"to": "nobody", "channel": "pigeon", "foo": 1}), vec!["channel", "foo", "to"]),
        (json!({"to": "", "channel": "pigeon"}), vec!["channel", "to"]),
        (json!({"to": "+34600111222", "text": "x", "channel": "email"}), vec!["subject", "to"]),
        (json!({"to": "a@example.org", "text": "x", "subject": "s", "channel": "sms"}), vec!["subject", "to"]),
        (json!({"to": "a@example.org", "text": "x"}), vec!["subject"]),
        (json!({"to": "a@example.org", "subject": "a\r\nBcc: x@example.org", "text": "x"}), vec!["subject"]),
        (json!({"to": "a@example.org", "subject": "s"}), vec!["text"]),
        (json!({"to": "a@example.org", "subject": "s", "text": "x", "replyTo": "nobody"}), vec!["replyTo"]),
        (json!({"to": "+34600111222", "text": "x".repeat(4_097)}), vec!["text", "text"]),
        (json!({"to": "+34600111222", "text": "x".repeat(1_601), "channel": "sms"}), vec!["text"]),
        (json!({"to": "+34600111222", "messageType": "image", "channel": "sms", "content": {"mediaId": "1"}}), vec!["content.mediaId"]),
        (json!({"to": "+34600111222", "text": "x", "subject": "s", "htmlBody": "<p>"}), vec!["htmlBody", "subject"]),
        (json!({"to": "+34600111222", "text": "x", "voiceLanguage": "es"}), vec!["voiceLanguage"]),
        (json!({"to": "+34600111222", "text": "x", "channel": "voice", "voiceLanguage": "e_S"}), vec!["voiceLanguage"]),
        (json!({"to": "+34600111222", "text": "x", "validitySeconds": 29}), vec!["validitySeconds"]),
        (json!({"to": "+34600111222", "text": "x", "idempotencyKey": ""}), vec!["idempotencyKey"]),
        (json!({"to": "+34600111222", "messageType": "image"}), vec!["content.mediaUrl"]),
        (json!({"to": "+34600111222", "channel": "whatsapp", "messageType": "image", "content": {"mediaId": ""}}), vec!["content.mediaId"]),
        (json!({"to": "+34600111222", "messageType": "image", "content": {"mediaUrl": "ftp://x"}}), vec!["content.mediaUrl"]),
        (
            json!({"to": "+34600111222", "messageType": "image", "content": {"mediaUrl": "https://x.example/a\nb"}}),
            vec!["content.mediaUrl"],
        ),
        (
            json!({"to": "+34600111222", "messageType": "image", "content": {"mediaUrl": "https://:p@x.example/a"}}),
            vec!["content.mediaUrl"],
        ),
        (
            json!({"to": "+34600111222", "messageType": "image", "content": {"mediaUrl": "https://x.example/a.png", "emoji": "x"}}),
            vec!["content.emoji"],
        ),
        (
            json!({"to": "4711", "channel": "telegram", "messageType": "image", "content": {"mediaUrl": "https://x.example/a", "mimeType": "a\r\nX: y"}}),
            vec!["content.mimeType"],
        ),
        (json!({"to": "0612345678", "channel": "telegram", "text": "x"}), vec!["to"]),
        (json!({"to": "+34600111222", "messageType": "location", "content": {"latitude": 91, "longitude": 0}}), vec!["content.latitude"]),
        (
            json!({"to": "+34600111222", "text": "x", "messageType": "buttons", "content": {"buttons": [button("a", "a"), button("a", "b"), button("c", &"c".repeat(21)), button("d", "d")]}}),
            vec!["content.buttons", "content.buttons[1].id", "content.buttons[2].title"],
        ),
        (
            json!({"to": "+34600111222", "text": "x", "messageType": "buttons", "content": {"buttons": [button("a", "a"), button("b", "a"), button("c", " ")]}}),
            vec!["content.buttons[1].title", "content.buttons[2].title"],
        ),
        (
            json!({"to": "+34600111222", "text": "x", "messageType": "list", "content": {"listButton": "x", "sections": [
                {"title": "s", "rows": [button("a", "a"), button("a", "b")]}, {"title": "t", "rows": [button("a", "c")]}]}}),
            vec!["content.sections[0].rows[1].id", "content.sections[1].rows[0].id"],
        ),
        (json!({"to": "+34600111222", "messageType": "sticker", "channel": "sms", "content": {"mediaId": "1"}}), vec!["messageType"]),
        (json!({"to": "+34600111222", "text": "x", "metadata": {"a": {"b": {"c": {"d": {"e": {}}}}}}}), vec!["metadata"]),
        (json!({"to": "+34600111222", "text": "x", "metadata": {"a": "x".repeat(17_000)}}), vec!["metadata"]),
        (json!({"to": "a@example.org", "subject": "s", "text": "x", "attachments": [{"filename": "a.pdf"}]}), vec!["attachments[0]"]),
        (
            json!({"to": "a@example.org", "subject": "s", "text": "x", "attachments": [{"filename": "a.pdf", "content": "%%%"}]}),
            vec!["attachments[0].content"],
        ),
    ] {
        assert_eq!(faults(&app, body.clone()).await, expected, "{body}");
    }
    assert_eq!(app.get("/v1/messages").await.json()["items"], json!([]));
}

#[tokio::test]
async fn too_many_keys_of_metadata_are_called_keys() {
    let app = TestApp::start().await;
    let metadata: serde_json::Map<String, Value> = (0..51).map(|n| (n.to_string(), n.into())).collect();
    for (path, body) in [
        ("/v1/messages", json!({"to": "+34600111222", "text": "x", "metadata": metadata})),
        ("/v1/contacts", json!({"channels": [{"channel": "telegram", "identifier": "4711"}], "metadata": metadata})),
        ("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x", "metadata": metadata})),
    ] {
        let fault = app.post(path, body).await.expect(400).json()["details"]["errors"][0].clone();
        assert_eq!(fault, json!({"path": "metadata", "message": "has 51 keys; must have at most 50"}));
    }
}

#[tokio::test]
async fn a_number_too_short_for_its_country_is_refused() {
    let app = TestApp::start().await;
    for to in ["+12125", "+15551234", "+3460011"] {
        let answer = app.post("/v1/messages", json!({"to": to, "text": "x"})).await.expect(400).json();
        let fault = answer["details"]["errors"][0].clone();
        let told =
            fault["message"].as_str().is_some_and(|told| told.contains(to) && told.contains("too short for a number of its country"));
        assert!(fault["path"] == "to" && told, "{answer}");
    }
    for to in ["+15005550001", "+12125550100", "+34600111222"] {
        app.send_message(json!({"to": to, "text": "x"})).await;
    }
}

// holds: errors.unknown_field, errors.all, messages.channel, messages.type
#[tokio::test]
async fn wrong_types_and_unknown_fields_are_all_told_at_once() {
    let app = TestApp::start().await;
    let body = json!({"to": 5, "text": ["x"], "chanel": "sms", "channel": "pigeon", "content": {"mediaURL": "x"}, "attachments": [{"filename": 1}]});
    let paths = faults(&app, body).await;
    for expected in ["attachments[0].filename", "chanel", "channel", "content.mediaURL", "text", "to"] {
        assert!(paths.iter().any(|p| p == expected), "{expected} in {paths:?}");
    }
}

#[tokio::test]
async fn a_list_is_no_object_in_any_body() {
    let app = TestApp::start().await;
    let broadcast = app.post("/v1/broadcasts", json!({"name": "x", "channel": "sms", "text": "x"})).await.expect(201).json();
    let recipients = format!("/v1/broadcasts/{}/contacts", broadcast["broadcast"]["id"].as_str().expect("an id"));
    let senders = app.get("/v1/senders").await.expect(200).json();
    let channel = format!("/v1/senders/{}/channels/sms", senders["items"][0]["id"].as_str().expect("an id"));
    let template = json!({"name": "x", "language": "en", "body": "x", "buttons": [["url", "x", "https://example.com", null, null]]});
    for (method, path, body, fault) in [
        ("POST", "/v1/messages", json!(["+34600111222"]), "body"),
        (
            "POST",
            "/v1/messages",
            json!({"to": "+34600111222", "messageType": "image", "content": ["https://example.com/a.png"]}),
            "content",
        ),
        ("POST", "/v1/contacts", json!({"channels": [["sms", "+34600111222", null, null, null]]}), "channels[0]"),
        ("POST", "/v1/templates", template, "buttons[0]"),
        ("POST", &recipients, json!({"contacts": [["+34600111222", null, null, null]]}), "contacts[0]"),
        ("PATCH", &recipients.replace("/contacts", ""), json!({"content": ["https://example.com/a.png"]}), "content"),
        ("PUT", &channel, json!({"kind": "sim", "throttle": [1, 1, null]}), "throttle"),
    ] {
        let answer = app.request(method, path, Some(body)).await.expect(400).json();
        assert_eq!(answer["details"]["errors"][0]["path"], fault, "{answer}");
    }
}

// holds: errors.json
#[tokio::test]
async fn what_is_no_json_is_told_so() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    for body in ["", "{", "nul", "{\"to\": \"\u{fffd}\"", "\u{feff}{}"] {
        let answer = app
            .raw("POST", "/v1/messages", &[("authorization", &auth), ("content-type", "application/json")], body.as_bytes().to_vec())
            .await;
        assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (400, Some("invalid_json")), "{body:?} {}", answer.text);
    }
    let deep = format!("{{\"to\":\"+34600111222\",\"text\":\"x\",\"metadata\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    let answer =
        app.raw("POST", "/v1/messages", &[("authorization", &auth), ("content-type", "application/json")], deep.into_bytes()).await;
    assert_eq!(answer.status.as_u16(), 400, "{}", answer.text);
}

#[tokio::test]
async fn a_zero_character_is_refused_where_it_stands() {
    let app = TestApp::start().await;
    assert_eq!(faults(&app, json!({"to": "+34600111222", "text": "a\u{0}b"})).await, ["text"]);
    assert_eq!(faults(&app, json!({"to": "+34600111222", "text": "ab", "metadata": {"k": ["\u{0}"]}})).await, ["metadata.k[0]"]);
    app.post("/v1/messages", json!({"to": "+34600111222", "text": "a\\u0000b"})).await.expect(202);
}

// holds: errors.lenient
#[tokio::test]
async fn lenient_handling_drops_what_is_not_known() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let body = json!({"to": "+34600111222", "text": "x", "chanel": "sms", "subject": "s", "voiceLanguage": "?",
        "content": {"emoji": "x", "mediaId": "4711"}});
    let headers = [("authorization", auth.as_str()), ("prefer", "handling=lenient")];
    let message = app.send("POST", "/v1/messages", &headers, Some(body.clone())).await.expect(202).json()["message"].clone();
    assert_eq!((message.get("content"), message.get("voiceLanguage")), (None, None), "nothing is left of it");
    app.send("POST", "/v1/messages", &[("authorization", &auth)], Some(body)).await.expect(400);
}

// holds: errors.lenient
#[tokio::test]
async fn lenient_handling_drops_a_field_of_every_recipient() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let broadcast = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x"})).await.expect(201).json();
    let path = format!("/v1/broadcasts/{}/contacts", broadcast["broadcast"]["id"].as_str().expect("an id"));
    let contacts: Vec<_> = (0..150).map(|n| json!({"recipient": format!("+34600111{n:03}"), "name": "Ada"})).collect();
    let headers = [("authorization", auth.as_str()), ("prefer", "handling=lenient")];
    let added = app.send("POST", &path, &headers, Some(json!({"contacts": contacts}))).await.expect(201).json();
    assert_eq!(added["added"], 150, "{added}");
}

#[tokio::test]
async fn a_patch_says_which_fields_cannot_be_null() {
    let app = TestApp::start().await;
    let broadcast = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x", "trackLinks": true})).await;
    let path = format!("/v1/broadcasts/{}", broadcast.expect(201).json()["broadcast"]["id"].as_str().expect("an id"));
    for field in ["name", "trackLinks"] {
        let answer = app.request("PATCH", &path, Some(json!({field: null}))).await.expect(400).json();
        assert_eq!(answer["details"]["errors"][0]["path"], field, "{answer}");
    }
    let changed = app.request("PATCH", &path, Some(json!({"trackLinks": false}))).await.expect(200).json();
    assert_eq!(changed["broadcast"]["trackLinks"], false);
}

#[tokio::test]
async fn query_parameters_are_checked_alike() {
    let app = TestApp::start().await;
    for (query, path) in [
        ("limit=0", "query.limit"),
        ("limit=101", "query.limit"),
        ("limit=x", "query.limit"),
        ("since=yesterday", "query.since"),
        ("status=lost&to=a", "query.status"),
        ("colour=red", "query.colour"),
    ] {
        let answer = app.get(&format!("/v1/messages?{query}")).await.expect(400).json();
        assert_eq!(answer["details"]["errors"][0]["path"], path, "{query}");
    }
    app.post("/v1/messages?dryRum=true", json!({"to": "+34600111222", "text": "x"})).await.expect(400);
}

// holds: errors.size
#[tokio::test]
async fn too_much_is_too_much() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let large = vec![b' '; nuncio_domain::limits::MESSAGE_BODY_BYTES + 1];
    let answer =
        app.raw("POST", "/v1/messages", &[("authorization", &auth), ("content-type", "application/json")], large).await.expect(413);
    assert_eq!(answer.json()["code"], "payload_too_large");
    let email = |attachments: Vec<Value>| json!({"to": "a@example.org", "subject": "s", "text": "x", "attachments": attachments});
    let attachment = |content: &str| json!({"filename": "a.bin", "content": content});
    let most = nuncio_domain::limits::ATTACHMENT_BYTES;
    let half = base64_of(most / 2);
    for (content, status) in [(base64_of(most / 2), 202), (base64_of(most / 2 + 300), 400)] {
        let body = email(vec![attachment(&half), attachment(&content)]).to_string().into_bytes();
        assert!(body.len() < nuncio_domain::limits::MESSAGE_BODY_BYTES);
        let answer = app.raw("POST", "/v1/messages", &[("authorization", &auth), ("content-type", "application/json")], body).await;
        let answer = answer.expect(status).json();
        let wrong: Option<&str> = (status == 400).then_some("attachments");
        assert_eq!(answer["details"]["errors"][0]["path"].as_str(), wrong, "{answer}");
    }
    for (count, status) in [(50, 202), (51, 400)] {
        app.post("/v1/messages", email(vec![attachment("AAAA"); count])).await.expect(status);
    }
}

fn base64_of(bytes: usize) -> String {
    "AAAA".repeat(bytes / 3)
}

/// People read names in lists and terminals: a name must not be deceptive.
// holds: errors.names
#[tokio::test]
async fn names_are_one_line_without_control_characters() {
    let app = TestApp::start().await;
    let id = |answer: &Value| answer["id"].as_str().expect("an id").to_owned();
    let sender = id(&app.post("/v1/senders", json!({"name": "Shop"})).await.expect(201).json());
    let contact = app.post("/v1/contacts", json!({"channels": [{"channel": "telegram", "identifier": "7"}]})).await.expect(201).json();
    let (contact, channel) = (id(&contact), id(&contact["channels"][0]));
    let draft = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x"})).await.expect(201).json();
    let broadcast = id(&draft["broadcast"]);
    let phone = crate::authz::stock(&app).await;
    let number = id(&app.post("/v1/phone-numbers", json!({"phoneNumber": phone})).await.expect(201).json()["phoneNumber"]);
    let other = crate::authz::stock(&app).await;
    for name in ["a\nb", "a\rb", "\u{1b}[2Ja", "a\u{9b}b", "a\u{202e}b", "a\u{2066}b", "a\u{2028}b", "a\u{7f}"] {
        let contacts = json!([{"channel": "telegram", "identifier": "8", "label": name}]);
        let cases = [
            ("POST", "/v1/senders".to_owned(), json!({"name": name}), "name"),
            ("PATCH", format!("/v1/senders/{sender}"), json!({"name": name}), "name"),
            (
                "POST",
                "/v1/contacts".to_owned(),
                json!({"displayName": name, "channels": [{"channel": "telegram", "identifier": "9"}]}),
                "displayName",
            ),
            ("POST", "/v1/contacts".to_owned(), json!({"channels": contacts}), "channels[0].label"),
            ("PATCH", format!("/v1/contacts/{contact}"), json!({"displayName": name}), "displayName"),
            (
                "POST",
                format!("/v1/contacts/{contact}/channels"),
                json!({"channel": "instagram", "identifier": "8", "label": name}),
                "label",
            ),
            ("PATCH", format!("/v1/contacts/{contact}/channels/{channel}"), json!({"label": name}), "label"),
            ("POST", "/v1/broadcasts".to_owned(), json!({"name": name, "channel": "sms", "text": "x"}), "name"),
            ("PATCH", format!("/v1/broadcasts/{broadcast}"), json!({"name": name}), "name"),
            ("POST", "/v1/templates".to_owned(), json!({"name": name, "language": "en", "body": "x"}), "name"),
            ("POST", "/v1/phone-numbers".to_owned(), json!({"phoneNumber": other, "name": name}), "name"),
            ("PATCH", format!("/v1/phone-numbers/{number}"), json!({"name": name}), "name"),
            ("POST", "/v1/invitations".to_owned(), json!({"clientName": name}), "clientName"),
        ];
        for (method, path, body, field) in cases {
            let refused = app.request(method, &path, Some(body)).await.expect(400).json();
            let faults = refused["details"]["errors"].as_array().expect("faults");
            let fault = faults.iter().find(|fault| fault["path"] == field);
            assert!(
                fault.is_some_and(|f| f["message"].as_str().is_some_and(|m| m.starts_with("contains U+"))),
                "{method} {path}: {refused}"
            );
        }
        let core = &app.node.core;
        let permissions = nuncio_domain::Permissions::ALL;
        let key =
            core.keys().create(app.tenant(), nuncio_domain::Environment::Test, name, permissions, None).await.expect_err("a bad name");
        assert_eq!(key.details()["errors"][0]["path"], "name");
        assert_eq!(core.projects().create(name, None).await.expect_err("a bad name").details()["errors"][0]["path"], "name");
    }
    for name in ["Łódź & Söhne", "شركة", "👨‍👩‍👧"] {
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"name": name}))).await.expect(200);
    }
}

/// In texts, above choices, and in captions.
// holds: messages.blank
#[tokio::test]
async fn a_text_of_blanks_is_no_text() {
    let app = TestApp::start().await;
    let media = json!({"mediaUrl": "https://example.com/a.png"});
    for blank in [" ", "\n\t ", "\u{a0}", "\u{200b}\u{feff}", "\u{3000}"] {
        for body in [
            json!({"to": "+34600111222", "text": blank}),
            json!({"to": "+34600111222", "channel": "voice", "text": blank}),
            json!({"to": "a@example.org", "subject": "s", "text": blank}),
            json!({"to": "+34600111222", "messageType": "image", "text": blank, "content": media}),
            json!({"to": "+34600111222", "messageType": "buttons", "text": blank, "content": {"buttons": [{"id": "1", "title": "Yes"}]}}),
        ] {
            assert_eq!(faults(&app, body).await, ["text"], "{blank:?}");
        }
        let html = json!({"to": "a@example.org", "subject": "s", "htmlBody": blank});
        assert_eq!(faults(&app, html).await, ["text"]);
        let draft = json!({"name": "b", "channel": "sms", "text": blank});
        assert_eq!(app.post("/v1/broadcasts", draft).await.expect(400).json()["details"]["errors"][0]["path"], "text");
    }
    app.post("/v1/messages", json!({"to": "+34600111222", "text": " x "})).await.expect(202);
    // An email with HTML has its text from there.
    for blank in ["", " "] {
        let mail = json!({"to": "a@example.org", "subject": "s", "htmlBody": "<p>x</p>", "text": blank});
        assert_eq!(app.post("/v1/messages", mail).await.expect(202).json()["message"].get("text"), None);
    }
}

/// The API is strict, and states valid values.
// holds: messages.to.meant
#[tokio::test]
async fn a_number_in_another_form_gets_the_one_that_was_meant() {
    let app = TestApp::start().await;
    for written in ["+34 600 111 222", "0034 600 111 222", "34 600 111 222", "+34-600-111-222", "+34 (600) 111.222"] {
        for (path, field, body) in [
            ("/v1/messages", "to", json!({"to": written, "text": "x"})),
            ("/v1/senders", "phoneNumber", json!({"name": "x", "phoneNumber": written})),
            ("/v1/contacts", "channels[0].identifier", json!({"channels": [{"channel": "sms", "identifier": written}]})),
            ("/v1/suppressions", "identifier", json!({"identifier": written})),
            ("/v1/introspect/phone", "phoneNumber", json!({"phoneNumber": written})),
            ("/v1/phone-numbers", "phoneNumber", json!({"phoneNumber": written})),
        ] {
            let refused = app.post(path, body).await.expect(400).json();
            let fault = &refused["details"]["errors"][0];
            assert!(
                fault["path"] == field && fault["message"].as_str().is_some_and(|m| m.contains("+34600111222")),
                "{path} {written}: {fault}"
            );
        }
    }
}

/// Optional texts are in [`an_optional_text_of_only_blanks_counts_as_none`].
// holds: errors.all
#[tokio::test]
async fn a_required_text_must_be_visible() {
    let app = TestApp::start().await;
    let sender = app.post("/v1/senders", json!({"name": "desk"})).await.expect(201).json()["id"].clone();
    let sender = format!("/v1/senders/{}", sender.as_str().expect("an id"));
    for blank in [" ", "\u{a0}\u{200b}"] {
        for (method, path, body, field) in [
            ("POST", "/v1/messages", json!({"to": "a@example.org", "text": "x", "subject": blank}), "subject"),
            ("POST", "/v1/senders", json!({"name": blank}), "name"),
            ("PATCH", &sender, json!({"name": blank}), "name"),
            ("POST", "/v1/broadcasts", json!({"name": blank, "channel": "sms", "text": "x"}), "name"),
            ("POST", "/v1/broadcasts", json!({"name": "x", "channel": "email", "text": "x", "emailSubject": blank}), "emailSubject"),
            ("POST", "/v1/keys", json!({"name": blank}), "name"),
        ] {
            let refused = app.request(method, path, Some(body)).await.expect(400).json();
            let expected = json!([{"path": field, "message": "has only whitespace; must have visible text"}]);
            assert_eq!(refused["details"]["errors"], expected, "{method} {path} {blank:?}");
        }
    }
}

// holds: errors.all
#[tokio::test]
async fn an_id_in_a_body_that_names_nothing_is_said_with_its_field() {
    let app = TestApp::start().await;
    let channels = json!([{"channel": "sms", "identifier": "+34600111222"}]);
    let contact = app.post("/v1/contacts", json!({"channels": channels})).await.expect(201).json()["id"].clone();
    let merge = format!("/v1/contacts/{}/merge", contact.as_str().expect("an id"));
    let template = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": "tpl_x"}});
    let numbers = app.get("/v1/phone-numbers/available?countryCode=US").await.expect(200).json();
    let number = json!({"phoneNumber": numbers["items"][0]["phoneNumber"]});
    let number = app.post("/v1/phone-numbers", number).await.expect(201).json()["phoneNumber"]["id"].clone();
    let number = format!("/v1/phone-numbers/{}", number.as_str().expect("an id"));
    let unknown = "con_01kdvdna00fjk91306sc092f5p";
    for (method, path, body, field, id) in [
        ("POST", merge.as_str(), json!({"sourceContactId": "con_x"}), "sourceContactId", "con_x"),
        ("POST", &merge, json!({"sourceContactId": unknown}), "sourceContactId", unknown),
        ("PATCH", &number, json!({"senderId": "snd_x"}), "senderId", "snd_x"),
        ("POST", "/v1/phone-numbers", json!({"phoneNumber": "+34600111222"}), "phoneNumber", "+34600111222"),
        ("POST", "/v1/invitations", json!({"phoneNumberId": ""}), "phoneNumberId", ""),
        ("POST", "/v1/broadcasts", template, "content.templateId", "tpl_x"),
        ("POST", "/v1/sandbox/inbound", json!({"channel": "whatsapp", "from": "+34600111222", "read": "msg_x"}), "read", "msg_x"),
    ] {
        let refused = app.request(method, path, Some(body)).await.expect(404).json();
        let error = &refused["details"]["errors"][0];
        assert_eq!(error["path"], field, "{refused}");
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with(&format!("{id:?} is not"))), "{refused}");
    }
    app.request("PATCH", &number, Some(json!({"name": "\u{3000}"}))).await.expect(200);
    assert_eq!(app.get(&number).await.json()["phoneNumber"]["name"], Value::Null, "blanks are no name");
}

// holds: contacts.create.limits, invitations.create
#[tokio::test]
async fn an_optional_text_of_only_blanks_counts_as_none() {
    let app = TestApp::start().await;
    let channel = json!({"channel": "sms", "identifier": "+34600111222", "label": " "});
    let made = app.post("/v1/contacts", json!({"channels": [channel], "displayName": " "})).await.expect(201).json();
    assert!(made.get("displayName").is_none() && made["channels"][0].get("label").is_none(), "{made}");
    let path = format!("/v1/contacts/{}", made["id"].as_str().expect("an id"));
    app.request("PATCH", &path, Some(json!({"displayName": "Ada"}))).await.expect(200);
    let cleared = app.request("PATCH", &path, Some(json!({"displayName": "\u{a0}"}))).await.expect(200).json();
    assert!(cleared.get("displayName").is_none(), "{cleared}");
    let invitation = app.post("/v1/invitations", json!({"clientName": " "})).await.expect(201).json();
    assert_eq!(invitation["invitation"]["clientName"], Value::Null, "{invitation}");
}
