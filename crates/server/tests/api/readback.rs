//! What was written can be read: every field of a request is in what shows the resource, and metadata comes back to the letter.

use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

use crate::contacts::text;

/// The schema of a request, the schema that shows what it wrote, and the fields that are shown under another name: `name=there`, or not at
/// all: `name`.
const REQUESTS: &[(&str, &str, &[&str])] = &[
    // The key is not kept as such. Attachments have a list of their own.
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
    ("CreateSuppression", "Suppression", &[]),
    ("PutWebhook", "Webhook", &[]),
    ("AcquireNumber", "PhoneNumber", &[]),
    ("UpdateNumber", "PhoneNumber", &[]),
    ("UpdateProfile", "BusinessProfile", &[]),
];

/// Requests that write nothing that stays, or that name what they act on.
const ACTIONS: &[&str] = &[
    "AddBroadcastContacts",
    "IntrospectEmail",
    "IntrospectPhone",
    "MergeContacts",
    "React",
    "ResolveMessage",
    "RotateSecret",
    "SetPicture",
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
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
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
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
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

// holds: messages.routing
#[tokio::test]
async fn routing_gives_price_and_probability_as_numbers() {
    let app = TestApp::start().await;
    let prices = "channel,country,unit,provider,fee\nsms,*,segment,0.04,0.01\n";
    app.node.core.import_prices(None, prices, true).await.expect("good prices");
    let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    let considered = app.message(&id).await["routing"]["considered"].clone();
    let of = |channel: &str| considered.as_array().expect("a list").iter().find(|c| c["channel"] == channel).expect("it").clone();
    assert_eq!((&of("sms")["price"], &of("sms")["probability"]), (&json!(0.05), &json!(0.9)), "{considered}");
    assert_eq!((of("whatsapp").get("price"), &of("whatsapp")["probability"]), (None, &json!(0.9)), "without a price");
    assert_eq!((of("sms_oneway").get("price"), of("sms_oneway").get("probability")), (None, None), "out of the question");
}
