//! Data read back as written: every field of a request is in the resource, and metadata is unchanged.

use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::contacts::text;

/// Schema of a request, schema of the resource, and the fields that the resource has under another name (`name=there`) or not at all
/// (`name`).
const REQUESTS: &[(&str, &str, &[&str])] = &[
    // The key itself is not stored. Attachments have a separate list.
    ("SendMessage", "Message", &["idempotencyKey", "attachments"]),
    ("CreateBroadcast", "Broadcast", &["idempotencyKey"]),
    ("UpdateBroadcast", "Broadcast", &[]),
    ("ScheduleBroadcast", "Broadcast", &[]),
    ("SendBroadcast", "Broadcast", &[]),
    (
        "NewBroadcastContact",
        "BroadcastContact",
        &["templateVariables=variables", "templateButtonVariables=variables", "templateHeaderVariables=variables"],
    ),
    ("CreateContact", "Contact", &[]),
    ("UpdateContact", "Contact", &[]),
    ("NewContactChannel", "ContactChannel", &[]),
    ("UpdateContactChannel", "ContactChannel", &[]),
    ("CreateSender", "Sender", &["setAsDefault=isDefault", "webhookUrl=webhook", "webhookEvents=webhook"]),
    ("UpdateSender", "Sender", &["setAsDefault=isDefault", "webhookUrl=webhook", "webhookEvents=webhook", "webhookActive=webhook"]),
    ("PutConnection", "Connection", &["secrets"]),
    ("CreateTemplate", "Template", &["whatsappCategory=category"]),
    ("UpdateTemplate", "Template", &["whatsappCategory=category"]),
    ("SubmitTemplate", "Template", &[]),
    ("CreateInvitation", "Invitation", &["expiresInDays=expiresAt"]),
    ("CreateApiKey", "ApiKey", &[]),
    ("CreateSuppression", "Suppression", &[]),
    ("PutWebhook", "Webhook", &[]),
    ("AcquirePhoneNumber", "PhoneNumber", &[]),
    ("UpdatePhoneNumber", "PhoneNumber", &[]),
    ("UpdateProfile", "BusinessProfile", &[]),
];

/// Requests that store nothing permanent, or name what they act on.
const ACTIONS: &[&str] = &[
    "AddBroadcastContacts", "SelectContacts", "CloneBroadcast", "EnterCode", "IntrospectEmail", "IntrospectPhone", "MergeContacts",
    "PreviewBroadcast", "ReactToMessage", "ResolveMessage", "RotateSecret", "SandboxInbound", "SendMessages", "SetProfilePicture",
    "TestBroadcast",
];

async fn document(app: &TestApp) -> Value {
    app.send("GET", "/openapi.json", &[], None).await.expect(200).json()
}

fn fields<'a>(document: &'a Value, schema: &str) -> Vec<&'a String> {
    let properties = document["components"]["schemas"][schema]["properties"].as_object().unwrap_or_else(|| panic!("no schema {schema}"));
    properties.keys().collect()
}

// holds: fields.readback
#[tokio::test]
async fn every_field_that_is_written_is_shown() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    for (request, view, elsewhere) in REQUESTS {
        let shown = fields(&document, view);
        for field in fields(&document, request) {
            let named = elsewhere.iter().map(|e| e.split_once('=').unwrap_or((*e, ""))).find(|(name, _)| name == field);
            match named {
                Some((_, "")) => {}
                Some((_, there)) => assert!(shown.iter().any(|name| *name == there), "{view} has no {there}, for {field} of {request}"),
                None => assert!(shown.contains(&field), "{view} does not show {field} of {request}"),
            }
        }
    }
}

// holds: fields.readback
#[tokio::test]
async fn every_request_of_the_document_is_known_here() {
    let app = TestApp::start().await;
    let document = document(&app).await;
    for (path, item) in document["paths"].as_object().expect("paths") {
        for method in ["post", "put", "patch"] {
            let Some(reference) = item[method]["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str() else { continue };
            let name = reference.rsplit('/').next().expect("a name");
            let known = REQUESTS.iter().any(|(request, _, _)| *request == name) || ACTIONS.contains(&name);
            assert!(known, "{method} {path}: where is what {name} writes shown?");
        }
    }
}

// holds: fields.readback
#[tokio::test]
async fn a_message_shows_all_that_it_was_asked() {
    for app in TestApp::on_each().await {
        let long = "x".repeat(300_000);
        for body in [
            json!({"to": "a@example.org", "subject": "s", "text": "t", "htmlBody": "<p>h</p>", "replyTo": "r@example.org",
                "validitySeconds": 3_600, "onUnknown": "hold"}),
            json!({"to": "a@example.org", "subject": "s", "text": "t", "htmlBody": long}),
            json!({"to": "+34600111222", "channel": "voice", "text": "t", "voiceLanguage": "es-ES", "onUnknown": "fail"}),
            json!({"to": "+34600111222", "channel": "whatsapp", "text": "t", "fallbackEnabled": true, "fallbackAfterSeconds": 60}),
            json!({"to": "+34600111222", "channel": "sms", "text": "t", "fallbackEnabled": false}),
            json!({"to": "+34600111222", "channel": "sms", "text": "t", "scheduledAt": "2026-01-02T00:00:00.000Z", "validitySeconds": 30}),
        ] {
            let id = app.send_message(body.clone()).await;
            let message = app.message(&id).await;
            for (field, value) in body.as_object().expect("an object") {
                assert!(message[field] == *value, "{field}: {}", message[field].to_string().chars().take(100).collect::<String>());
            }
            let expected = ["fallbackEnabled", "onUnknown", "validitySeconds", "expiresAt"];
            assert!(expected.iter().all(|field| !message[*field].is_null()), "what is so by default is shown: {message}");
            let listed = app.get("/v1/messages?limit=1").await.expect(200).json();
            assert!(listed["items"][0]["htmlBody"].is_null(), "lists leave it out");
            app.clock.advance(std::time::Duration::from_millis(1));
        }
        let scheduled = app.get("/v1/messages?limit=1").await.expect(200).json()["items"][0].clone();
        assert_eq!((&scheduled["expiresAt"], &scheduled["validitySeconds"]), (&json!("2026-01-02T00:00:30.000Z"), &json!(30)));
    }
}

// holds: fields.readback
#[tokio::test]
async fn a_broadcast_and_an_invitation_show_all_that_they_were_asked() {
    for app in TestApp::on_each().await {
        let asked = json!({"name": "b", "channel": "email", "text": "t", "emailSubject": "s", "emailHtmlBody": "<p>h</p>"});
        let made = app.post("/v1/broadcasts", asked.clone()).await.expect(201).json()["broadcast"].clone();
        let path = format!("/v1/broadcasts/{}", text(&made["id"]));
        for shown in [made, app.get(&path).await.expect(200).json()["broadcast"].clone()] {
            assert!(asked.as_object().expect("an object").iter().all(|(field, value)| shown[field] == *value), "{shown}");
        }
        let patch = json!({"emailHtmlBody": "<p>other</p>"});
        let changed = app.request("PATCH", &path, Some(patch)).await.expect(200).json();
        assert_eq!(changed["broadcast"]["emailHtmlBody"], "<p>other</p>");
        assert!(app.get("/v1/broadcasts").await.expect(200).json()["items"][0].get("emailHtmlBody").is_none(), "lists leave it out");
        let invitation =
            app.post("/v1/invitations", json!({"allowedPhoneCountries": ["ES", "PT"], "expiresInDays": 2})).await.expect(201).json();
        let path = format!("/v1/invitations/{}", text(&invitation["invitation"]["id"]));
        let shown = app.get(&path).await.expect(200).json()["invitation"].clone();
        assert_eq!((&shown["allowedPhoneCountries"], &shown["expiresAt"]), (&json!(["ES", "PT"]), &json!("2026-01-03T00:00:00.000Z")));
        let anywhere = app.post("/v1/invitations", json!({})).await.expect(201).json();
        assert_eq!(anywhere["invitation"]["allowedPhoneCountries"], json!([]));
    }
}

/// Metadata that is easily altered: decimals, exponents, more digits than number types support, and texts with escapes. Members are sorted by name.
const METADATA: &str = r#"{"a":1e+3,"b":12345678901234567890123,"c":10,"d":0.1234567890123456789012345,"e":1e+300,"m":{"b":"é\"\\","y":[2.50,-0.0]},"z":1.50}"#;

async fn write(app: &TestApp, method: &str, path: &str, body: &str) -> nuncio_testkit::TestResponse {
    let auth = format!("Bearer {}", app.test_key);
    app.raw(method, path, &[("authorization", &auth), ("content-type", "application/json")], body.as_bytes().to_vec()).await
}

// holds: metadata.exact
#[tokio::test]
async fn numbers_of_metadata_come_back_as_they_were_written() {
    let expected = format!(r#""metadata":{METADATA}"#);
    for app in TestApp::on_each().await {
        let body = format!(r#"{{"to":"+34600111222","text":"x","idempotencyKey":"k",{expected}}}"#);
        let sent = write(&app, "POST", "/v1/messages", &body).await.expect(202);
        app.drain().await;
        let id = text(&sent.json()["message"]["id"]).to_owned();
        let repeated = write(&app, "POST", "/v1/messages", &body).await.expect(409);
        let channels = r#"[{"channel":"telegram","identifier":"4711"},{"channel":"email","identifier":"t@example.org"}]"#;
        let contact = write(&app, "POST", "/v1/contacts", &format!(r#"{{"channels":{channels},{expected}}}"#)).await.expect(201);
        let contact_path = format!("/v1/contacts/{}", text(&contact.json()["id"]));
        let channel_path = format!("{contact_path}/channels/{}", text(&contact.json()["channels"][0]["id"]));
        let channel = write(&app, "PATCH", &channel_path, &format!("{{{expected}}}")).await.expect(200);
        let source = app.get("/v1/contacts/phone/+34600111222").await.expect(200).json()["id"].clone();
        app.post(&format!("{contact_path}/merge"), json!({"sourceContactId": source})).await.expect(200);
        let broadcast =
            write(&app, "POST", "/v1/broadcasts", &format!(r#"{{"name":"b","channel":"sms","text":"x",{expected}}}"#)).await.expect(201);
        let broadcast_path = format!("/v1/broadcasts/{}", text(&broadcast.json()["broadcast"]["id"]));
        let changed = write(&app, "PATCH", &broadcast_path, &format!("{{{expected}}}")).await.expect(200);
        app.post(&format!("{broadcast_path}/contacts"), json!({"contacts": [{"recipient": "+34600111333"}]})).await.expect(201);
        app.post(&format!("{broadcast_path}/send"), json!({})).await.expect(202);
        app.drain().await;
        for answer in [sent, repeated, contact, channel, broadcast, changed] {
            assert!(answer.text.contains(&expected), "{}", answer.text);
        }
        for path in [
            format!("/v1/messages/{id}"),
            "/v1/messages".to_owned(),
            "/v1/events?type=message.delivered".to_owned(),
            "/v1/events?type=contact.merged".to_owned(),
            "/v1/events?type=broadcast.status_changed".to_owned(),
            contact_path,
            "/v1/contacts?email=t@example.org".to_owned(),
            broadcast_path,
            "/v1/broadcasts".to_owned(),
        ] {
            let shown = app.get(&path).await.expect(200).text;
            assert!(shown.contains(&expected), "{path}: {shown}");
        }
        for (key, value) in [("a", "1e%2B3"), ("z", "1.50"), ("b", "12345678901234567890123"), ("c", "10"), ("e", "1e%2B300")] {
            for list in ["messages", "contacts"] {
                let found = app.get(&format!("/v1/{list}?metadata[{key}]={value}")).await.expect(200).json();
                assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{list} {key}={value}");
            }
        }
        // An exponent is returned with its sign.
        let exponents = r#"{"to":"+34600111222","text":"x","metadata":{"a":1e300,"b":1E-7,"c":-1.20E5}}"#;
        let shown = write(&app, "POST", "/v1/messages", exponents).await.expect(202).text;
        assert!(shown.contains(r#""metadata":{"a":1e+300,"b":1e-7,"c":-1.20e+5}"#), "{shown}");
        // Also where unknown fields are skipped.
        let auth = format!("Bearer {}", app.test_key);
        let headers = [("authorization", auth.as_str()), ("content-type", "application/json"), ("prefer", "handling=lenient")];
        let unknown = format!(r#"{{"to":"+34600111222","text":"x","unknown":1,{expected}}}"#);
        let lenient = app.raw("POST", "/v1/messages", &headers, unknown.into_bytes()).await.expect(202);
        assert!(lenient.text.contains(&expected), "{}", lenient.text);
    }
}

/// Names by which serde_json passes numbers and raw JSON to itself.
const RESERVED: &[&str] = &["$serde_json::private::Number", "$serde_json::private::RawValue", r"\u0024serde_json::private::RawValue"];

#[tokio::test]
async fn names_of_the_parser_are_refused_in_any_body() {
    // As numbers and as JSON: an invalid one, a text with U+0000, and more levels than a body may have.
    let deep = "[".repeat(100) + &"]".repeat(100);
    let values = ["1", "x", r#"\"\\u0000\""#, &deep];
    for app in TestApp::on_each().await {
        let auth = format!("Bearer {}", app.test_key);
        for (name, value) in RESERVED.iter().flat_map(|name| values.iter().map(move |value| (name, value))) {
            let object = format!(r#"{{"{name}":"{value}"}}"#);
            for (path, body) in [
                ("/v1/messages", format!(r#"{{"to":"+34600111222","text":"x","metadata":{{"a":{object}}}}}"#)),
                ("/v1/messages", format!(r#"{{"to":"+34600111222","text":"x","validitySeconds":{object}}}"#)),
                ("/v1/messages", object.clone()),
                ("/v1/contacts", format!(r#"{{"channels":[],"metadata":{object}}}"#)),
                ("/v1/broadcasts", format!(r#"{{"name":"b","channel":"sms","text":"x","unknown":[{object}]}}"#)),
            ] {
                for prefer in ["handling=strict", "handling=lenient"] {
                    let headers = [("authorization", auth.as_str()), ("content-type", "application/json"), ("prefer", prefer)];
                    let answer = app.raw("POST", path, &headers, body.clone().into_bytes()).await.expect(400).json();
                    let fault = &answer["details"]["errors"][0];
                    assert!(fault["path"] == "body" && text(&fault["message"]).contains("are reserved"), "{body}: {answer}");
                }
            }
        }
        // Elsewhere than as a name, it is ordinary text.
        app.send_message(json!({"to": "+34600111222", "text": RESERVED[0], "metadata": {"a": RESERVED[1]}})).await;
    }
}

#[tokio::test]
async fn a_whole_number_is_read_in_any_notation() {
    for app in TestApp::on_each().await {
        for seconds in ["3600", "3600.0", "3.6e3"] {
            let body = format!(r#"{{"to":"+34600111222","text":"x","validitySeconds":{seconds},"idempotencyKey":"k"}}"#);
            write(&app, "POST", "/v1/messages", &body).await.expect(if seconds == "3600" { 202 } else { 409 });
        }
        let invitation = write(&app, "POST", "/v1/invitations", r#"{"expiresInDays":2.0}"#).await.expect(201).json();
        assert_eq!(invitation["invitation"]["expiresAt"], "2026-01-03T00:00:00.000Z");
    }
}

#[tokio::test]
async fn a_number_that_no_type_holds_is_refused_where_one_is_expected() {
    let app = TestApp::start().await;
    for (number, path) in [("1e400", "validitySeconds"), ("12345678901234567890123", "validitySeconds"), ("1e999999999", "validitySeconds")]
    {
        let body = format!(r#"{{"to":"+34600111222","text":"x","{path}":{number}}}"#);
        let answer = write(&app, "POST", "/v1/messages", &body).await.expect(400).json();
        assert_eq!(answer["details"]["errors"][0]["path"], path, "{answer}");
    }
    for metadata in [r#"{"a":1e400}"#, r#"{"a":{"b":[1,-1.5E+309]}}"#, &format!(r#"{{"a":{}}}"#, "9".repeat(400))] {
        let body = format!(r#"{{"to":"+34600111222","text":"x","metadata":{metadata}}}"#);
        let answer = write(&app, "POST", "/v1/messages", &body).await.expect(400).json();
        let fault = &answer["details"]["errors"][0];
        assert!(
            fault["path"] == "metadata" && text(&fault["message"]).ends_with("too large for a double; send it as a string"),
            "{answer}"
        );
    }
    for number in ["1e999999999", "1e-999999999"] {
        let body = format!(r#"{{"to":"+34600111222","text":1,"metadata":{{"a":{number}}}}}"#);
        let answer = write(&app, "POST", "/v1/messages", &body).await.expect(400).json();
        assert_eq!(answer["details"]["errors"][0]["path"], "text", "also when it is held against the schema: {answer}");
    }
}

// holds: messages.routing
#[tokio::test]
async fn routing_gives_price_and_probability_as_numbers() {
    let app = TestApp::start().await;
    let prices = "channel,country,unit,provider,fee\nsms,*,segment,0.04,0.01\n";
    app.node.core.billing().import_prices(None, prices, true).await.expect("good prices");
    let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    let considered = app.message(&id).await["routing"]["considered"].clone();
    let of = |channel: &str| considered.as_array().expect("a list").iter().find(|c| c["channel"] == channel).expect("it").clone();
    assert_eq!((&of("sms")["price"], &of("sms")["probability"]), (&json!(0.05), &json!(0.9)), "{considered}");
    assert_eq!((of("whatsapp").get("price"), &of("whatsapp")["probability"]), (None, &json!(0.9)), "without a price");
    assert_eq!((of("sms_oneway").get("price"), of("sms_oneway").get("probability")), (None, None), "out of the question");
}
