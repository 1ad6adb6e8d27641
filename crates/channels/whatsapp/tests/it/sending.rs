//! What is sent for each message, and what is made of the answers.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio_channel::contract::request;
use nuncio_channel::{Outcome, Scope, SendRequest};
use nuncio_channel_meta::scripted::{Reply, refusal};
use nuncio_domain::MessageType;
use nuncio_domain::message::FailureCode;
use serde_json::{Value, json};

use crate::cases;
use crate::support::{CLOUD, NUMBER, TOKEN, send, start, taken};

fn wanted() -> BTreeMap<&'static str, Value> {
    let template = |name: &str, code: &str, components: Value| json!({"name": name, "language": {"code": code}, "components": components});
    let interactive = |more: Value| {
        let mut all = json!({"body": {"text": "Well?"}});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let pay = json!({"name": "cta_url", "parameters": {"display_text": "Pay", "url": "https://x.example/pay"}});
    let buttons = json!({"buttons": [{"type": "reply", "reply": {"id": "y", "title": "Yes"}}, {"type": "reply", "reply": {"id": "n", "title": "No"}}]});
    let sections = json!([
        {"title": "A", "rows": [{"id": "1", "title": "One", "description": "first"}]},
        {"title": "B", "rows": [{"id": "2", "title": "Two"}]}
    ]);
    let image = json!({"type": "image", "image": {"link": "https://x.example/a.png"}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let word = |name: &str, text: &str| json!({"type": "text", "parameter_name": name, "text": text});
    BTreeMap::from([
        ("text", json!({"text": {"body": "Hola"}})),
        ("image", json!({"image": {"link": "https://x.example/a.png", "caption": "See"}})),
        ("video", json!({"video": {"link": "https://x.example/a.mp4"}})),
        ("audio", json!({"audio": {"id": "1013859600285441"}})),
        ("document", json!({"document": {"link": "https://x.example/a.pdf", "caption": "See", "filename": "bill.pdf"}})),
        ("sticker", json!({"sticker": {"id": "1013859600285441"}})),
        ("location", json!({"location": {"latitude": 40.5, "longitude": -3.25, "name": "Sol", "address": "Plaza 1"}})),
        ("contact", json!({"contacts": [{"name": {"formatted_name": "Ada", "first_name": "Ada"}, "phones": [{"phone": "+34600111222"}]}]})),
        ("buttons", json!({"interactive": interactive(json!({"type": "button", "action": buttons, "footer": {"text": "Acme"}}))})),
        (
            "list",
            json!({"interactive": interactive(json!({"type": "list", "action": {"button": "Choose", "sections": sections}, "footer": {"text": "Acme"}}))}),
        ),
        (
            "cta_text",
            json!({"interactive": interactive(json!({"type": "cta_url", "action": pay, "header": {"type": "text", "text": "Bill"}, "footer": {"text": "Acme"}}))}),
        ),
        ("cta_image", json!({"interactive": interactive(json!({"type": "cta_url", "action": pay, "header": image}))})),
        ("reaction", json!({"reaction": {"message_id": "wamid.A", "emoji": "👍"}})),
        (
            "positional",
            json!({"template": template("order", "en_US", json!([
                {"type": "header", "parameters": [image]},
                {"type": "body", "parameters": [text("Ada"), text("77")]},
                {"type": "button", "sub_type": "url", "index": "0", "parameters": [text("xyz")]}
            ]))}),
        ),
        (
            "named",
            json!({"template": template("order", "en_US", json!([
                {"type": "header", "parameters": [word("who", "you")]},
                {"type": "body", "parameters": [word("name", "Ada"), word("number", "77")]}
            ]))}),
        ),
        (
            "code",
            json!({"template": template("code", "en", json!([
                {"type": "body", "parameters": [text("123456")]},
                {"type": "button", "sub_type": "url", "index": "0", "parameters": [text("123456")]}
            ]))}),
        ),
    ])
}

#[tokio::test]
async fn every_type_is_one_call() {
    let api = start(|_| taken()).await;
    let (adapter, wanted) = (CLOUD.open(&api, json!({})), wanted());
    let cases = cases::all();
    assert_eq!(cases.len(), wanted.len());
    for (n, (name, message)) in cases.into_iter().enumerate() {
        assert_eq!(send(&adapter, &message).await, Outcome::Accepted { refs: vec!["wamid.HBgL".into()], cost: None }, "{name}");
        let seen = &api.seen()[n];
        assert_eq!((seen.method.as_str(), seen.path.clone()), ("POST", format!("/v23.0/{NUMBER}/messages")), "{name}");
        assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
        let mut body = json!({
            "messaging_product": "whatsapp", "recipient_type": "individual", "to": "34600111222",
            "biz_opaque_callback_data": format!("{}/0", message.id),
            "type": wanted[name].as_object().unwrap().keys().next().unwrap(),
        });
        body.as_object_mut().unwrap().extend(wanted[name].as_object().unwrap().clone());
        assert_eq!(seen.json(), body, "{name}");
    }
}

/// Meta: "Param text cannot have new-line/tab characters or more than 4 consecutive spaces".
#[tokio::test]
async fn values_of_templates_are_one_line() {
    let api = start(|_| taken()).await;
    let adapter = CLOUD.open(&api, json!({}));
    let values = [("Ada\r\n\tL.", "Ada L."), ("a     b", "a b"), ("a    b", "a    b"), ("\n10\u{a0}€\n", " 10\u{a0}€ ")];
    for (n, (value, wanted)) in values.into_iter().enumerate() {
        send(&adapter, &cases::with_value(value)).await;
        assert_eq!(api.seen()[n].json().pointer("/template/components/0/parameters/0/text"), Some(&json!(wanted)), "{value:?}");
    }
}

#[tokio::test]
async fn a_linked_document_is_called_as_its_url_calls_it() {
    let api = start(|_| taken()).await;
    let adapter = CLOUD.open(&api, json!({}));
    let urls = [
        ("https://x.example/2026/bill%20n%C2%BA%207.pdf?token=a/b.doc", Some("bill nº 7.pdf")),
        ("https://x.example/files/", None),
        ("https://x.example", None),
        ("https://x.example/%FF.pdf", None),
        ("https://x.example/a%0Ab.pdf", None),
    ];
    for (url, filename) in urls {
        let mut document = json!({"link": url});
        if let Some(filename) = filename {
            document["filename"] = filename.into();
        }
        let header = json!({"type": "document", "document": document});
        let cta = json!({"ctaDisplayText": "Pay", "ctaUrl": "https://x.example", "ctaHeaderType": "document", "ctaHeaderMediaUrl": url});
        for (message, path, wanted) in [
            (CLOUD.message(MessageType::Document, None, json!({"mediaUrl": url})), "/document", &document),
            (CLOUD.message(MessageType::CtaUrl, Some("Well?"), cta), "/interactive/header", &header),
            (cases::with_document(url), "/template/components/0/parameters/0", &header),
        ] {
            send(&adapter, &message).await;
            assert_eq!(api.seen().last().unwrap().json().pointer(path), Some(wanted), "{url}");
        }
    }
    send(&adapter, &CLOUD.message(MessageType::Image, None, json!({"mediaUrl": "https://x.example/a.png"}))).await;
    assert_eq!(api.seen().last().unwrap().json()["image"], json!({"link": "https://x.example/a.png"}));
}

#[tokio::test]
async fn what_whatsapp_cannot_carry_never_leaves() {
    let adapter = CLOUD.offline(json!({}));
    let ours = CLOUD.message(MessageType::Text, None, json!({})).id.to_string();
    for (what, message) in [
        ("no media", CLOUD.message(MessageType::Image, Some("See"), json!({}))),
        ("text beside audio", CLOUD.message(MessageType::Audio, Some("Listen"), json!({"mediaUrl": "https://x.example/a.mp3"}))),
        ("our id", CLOUD.message(MessageType::Reaction, None, json!({"reactToMessageId": ours, "emoji": "👍"}))),
        ("no id", CLOUD.message(MessageType::Reaction, None, json!({"emoji": "👍"}))),
        ("no template", CLOUD.message(MessageType::Template, None, json!({"templateId": "tpl_1"}))),
    ] {
        let Outcome::Rejected { failure } = send(&adapter, &message).await else { panic!("{what}") };
        assert_eq!(failure.code, FailureCode::ContentRejected, "{what}");
    }
}

#[tokio::test]
async fn a_reaction_is_taken_back_by_an_empty_one() {
    let api = start(|_| taken()).await;
    send(&CLOUD.open(&api, json!({})), &CLOUD.message(MessageType::Reaction, None, json!({"reactToMessageId": "wamid.A", "emoji": ""})))
        .await;
    assert_eq!(api.seen()[0].json()["reaction"], json!({"message_id": "wamid.A", "emoji": ""}));
}

#[tokio::test]
async fn every_attempt_has_its_own_name() {
    let api = start(|_| taken()).await;
    let message = CLOUD.message(MessageType::Text, Some("Hola"), json!({}));
    CLOUD.open(&api, json!({})).send(&SendRequest { attempt: 3, ..request(&message) }).await;
    assert_eq!(api.seen()[0].json()["biz_opaque_callback_data"], format!("{}/3", message.id));
}

#[tokio::test]
async fn silence_after_the_message_is_unknown() {
    let api = start(|_| Reply::Silence).await;
    let adapter = CLOUD.open(&api, json!({"timeout_seconds": 1}));
    let outcome = send(&adapter, &CLOUD.message(MessageType::Text, Some("Hola"), json!({}))).await;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
}

#[tokio::test]
async fn the_pause_of_a_business_use_case_is_in_minutes() {
    let api = start(|_| {
        let usage = json!({"102290129340398": [{"type": "whatsapp", "call_count": 100, "estimated_time_to_regain_access": 4}]});
        let error = json!({"error": {"message": "(#80007) Rate limit issues", "code": 80_007}});
        Reply::raw(400, vec![("X-Business-Use-Case-Usage", usage.to_string())], error.to_string().into_bytes())
    });
    let outcome = send(&CLOUD.open(&*api.await, json!({})), &CLOUD.message(MessageType::Text, Some("Hola"), json!({}))).await;
    let Outcome::Deferred { retry_after, scope: Scope::Connection, failure } = outcome else { panic!("{outcome:?}") };
    assert_eq!((retry_after, failure.code), (Some(Duration::from_secs(240)), FailureCode::RateLimited));
}

#[tokio::test]
async fn a_check_says_what_to_do() {
    for (code, status, advice) in [(190, 401, "access_token"), (200, 403, "whatsapp_business_messaging"), (100, 400, "phone_number_id")] {
        let api = start(move |_| refusal(status, code, "No")).await;
        let told = CLOUD.open(&api, json!({})).check().await.unwrap_err();
        assert!(told.contains(advice), "{code}: {told}");
    }
    let api = start(|_| Reply::json(200, &json!({"display_phone_number": "+34 600 111 222", "verified_name": "Acme", "id": "1"}))).await;
    let told = CLOUD.open(&api, json!({})).check().await.unwrap();
    assert!(told.contains("+34 600 111 222") && told.contains("https://nuncio.example/providers/whatsapp_cloud/cnx_"), "{told}");
}
