//! The wire format against pywa, a third-party client of the Cloud API: it writes what we write, reads what we read, and signs alike.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_channel::testing::{PeerProcess, python_peer};
use nuncio_channel::{Adapter, CallError, Inbound, Outcome, Scope, stop};
use nuncio_channel_meta::scripted::refusal;
use nuncio_domain::{MessageType, Timestamp};
use serde_json::{Map, Value, json};

use crate::support::{CLOUD, SECRET, send, start, taken};
use crate::{callbacks, cases, templates};

fn pywa() -> PeerProcess {
    PeerProcess::start(&mut python_peer("whatsapp.py"))
}

/// Without what says nothing: nulls, empty lists, a preview that is off. The API reads types of components in any case, and indexes as
/// numbers or texts.
fn canonical(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(name, _)| !matches!(name.as_str(), "preview_url" | "biz_opaque_callback_data"));
            let fields = fields.map(|(name, value)| {
                let value = match (name.as_str(), value) {
                    ("type" | "sub_type", Value::String(word)) => word.to_lowercase().into(),
                    ("index", Value::Number(n)) => n.to_string().into(),
                    (_, value) => canonical(value),
                };
                (name, value)
            });
            fields.filter(|(_, value)| !value.is_null() && *value != json!([])).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        value => value,
    }
}

#[tokio::test]
#[ignore = "needs the WhatsApp peer; ./test runs it"]
async fn heavy_we_post_what_pywa_posts() {
    let theirs = pywa().ask(json!({"do": "messages"}));
    let api = start(|_| taken()).await;
    let adapter = CLOUD.open(&api, json!({"mark_read": true}));
    let cases = cases::all();
    assert_eq!(theirs.as_object().unwrap().len(), cases.len() + 1);
    for (n, (name, message)) in cases.into_iter().enumerate() {
        assert!(matches!(send(&adapter, &message).await, Outcome::Accepted { .. }), "{name}");
        let ours = &api.seen()[n];
        assert_eq!(ours.path, format!("/v23.0{}", theirs[name]["path"].as_str().unwrap()), "{name}");
        assert_eq!(canonical(ours.json()), canonical(theirs[name]["json"].clone()), "{name}");
    }
    let before = api.seen().len();
    callbacks::read(&adapter, &callbacks::from_ada(json!({"type": "text", "text": {"body": "hi"}})));
    let (ask, asked) = stop();
    tokio::join!(adapter.run(asked), async {
        api.wait(before + 1).await;
        ask.send(true).unwrap();
    });
    assert_eq!(api.seen()[before].json(), theirs["read"]["json"]);
}

#[tokio::test]
#[ignore = "needs the WhatsApp peer; ./test runs it"]
async fn heavy_we_submit_what_pywa_submits() {
    let theirs = pywa().ask(json!({"do": "templates"}));
    for (name, template) in templates::all() {
        assert_eq!(templates::submitted(&template).await, theirs[name], "{name}");
    }
}

#[test]
#[ignore = "needs the WhatsApp peer; ./test runs it"]
fn heavy_signatures_are_those_of_pywa() {
    let (mut pywa, adapter) = (pywa(), CLOUD.offline(json!({})));
    let body = callbacks::from_ada(json!({"type": "text", "text": {"body": "¡Hola! 👍"}})).to_string().into_bytes();
    let encoded = STANDARD.encode(&body);
    let signed =
        |secret: &str, pywa: &mut PeerProcess| pywa.ask(json!({"do": "sign", "secret": secret, "body": encoded}))["signature"].clone();
    let (good, bad) = (signed(SECRET, &mut pywa), signed("another", &mut pywa));
    assert_eq!(callbacks::post_signed(&adapter, good.as_str().unwrap(), &body).unwrap().events.len(), 1);
    assert!(matches!(callbacks::post_signed(&adapter, bad.as_str().unwrap(), &body), Err(CallError::Unproved(_))));
    let ours = callbacks::sign(&body);
    let mut verify =
        |secret: &str| pywa.ask(json!({"do": "verify", "secret": secret, "signature": ours, "body": encoded}))["valid"] == true;
    assert!(verify(SECRET) && !verify("another"));
}

/// A message as both tell it.
fn told(inbound: &Inbound) -> Value {
    let content = inbound.content.as_deref();
    let kind = match content {
        Some(c) if c.buttons.is_some() => "button".to_owned(),
        Some(c) if c.sections.is_some() => "row".to_owned(),
        _ if inbound.message_type == MessageType::Contact => "contacts".to_owned(),
        _ => inbound.message_type.to_string(),
    };
    let mut out = json!({
        "kind": kind, "message": inbound.provider_message_id, "from": inbound.from.trim_start_matches('+'), "name": inbound.profile_name,
        "at": inbound.at.millis() / 1_000, "replies_to": inbound.replies_to,
    });
    match content.and_then(|c| c.buttons.as_ref().map(|b| &b[0].id).or(c.sections.as_ref().map(|s| &s[0].rows[0].id))) {
        Some(id) => (out["id"], out["title"]) = (id.clone().into(), inbound.text.clone().into()),
        None => out["text"] = Some(inbound.text.clone()).filter(|text| !text.is_empty()).into(),
    }
    if let Some(media) = inbound.media.first() {
        out["media"] = json!({"id": media.reference, "type": media.content_type, "filename": media.filename});
    }
    if let Some(c) = content.filter(|c| c.latitude.is_some()) {
        out["place"] = json!([c.latitude, c.longitude, c.location_name, c.location_address]);
    }
    if let Some(cards) = content.and_then(|c| c.contacts.as_ref()) {
        out["cards"] = cards.iter().map(|card| json!([card.name, card.phones])).collect();
    }
    if let Some(emoji) = content.and_then(|c| c.emoji.as_ref()) {
        out["reaction"] = json!([content.and_then(|c| c.react_to_message_id.as_ref()), Some(emoji).filter(|emoji| !emoji.is_empty())]);
    }
    out
}

#[test]
#[ignore = "needs the WhatsApp peer; ./test runs it"]
fn heavy_we_read_what_pywa_reads() {
    let (mut pywa, adapter) = (pywa(), CLOUD.offline(json!({})));
    let mut compared = 0;
    for (name, more) in callbacks::kinds() {
        if name == "odd" || name == "unsupported" {
            continue; // nothing that two readers could agree on
        }
        let body = callbacks::from_ada(more);
        let theirs = pywa.ask(json!({"do": "read", "body": STANDARD.encode(body.to_string())}));
        assert_eq!(told(&callbacks::read(&adapter, &body)), theirs, "{name}");
        compared += 1;
    }
    assert_eq!(compared, callbacks::kinds().len() - 2);
    let contacts = json!([{"wa_id": "34600111222", "user_id": "ES.1"}]);
    let id = CLOUD.message(MessageType::Text, None, json!({})).id;
    for word in ["sent", "delivered", "read", "failed"] {
        let errors =
            if word == "failed" { json!([{"code": 131_026, "title": "Undeliverable", "message": "Undeliverable"}]) } else { json!([]) };
        let mut status = json!({"id": "wamid.A", "status": word, "timestamp": "1749416383", "biz_opaque_callback_data": format!("{id}/0")});
        if word == "failed" {
            status["errors"] = errors;
        }
        let body = callbacks::envelope(json!({"statuses": [status], "contacts": contacts})).to_string();
        let theirs = pywa.ask(json!({"do": "read", "body": STANDARD.encode(&body)}));
        assert_eq!((&theirs["status"], &theirs["tracker"]), (&json!(word), &json!(format!("{id}/0"))));
        let ours = callbacks::post_signed(&adapter, &callbacks::sign(body.as_bytes()), body.as_bytes()).unwrap().events;
        let nuncio_channel::ProviderEvent::Receipt { target, kind, at, .. } = &ours[0] else { panic!("{ours:?}") };
        assert_eq!(*at, Timestamp::from_millis(theirs["at"].as_i64().unwrap() * 1_000));
        assert!(matches!(target, nuncio_channel::ReceiptTarget::Attempt { message, attempt: Some(0), .. } if *message == id));
        let code = if let nuncio_domain::lifecycle::ReceiptKind::Failed(failure) = kind { failure.provider_code.clone() } else { None };
        assert_eq!(code, theirs["error"].as_i64().map(|code| code.to_string()), "{word}");
    }
}

/// Where an error belongs by what the adapter does about it.
async fn outcome(code: i64) -> Outcome {
    let api = start(move |_| refusal(400, code, "No")).await;
    let adapter: Arc<dyn Adapter> = CLOUD.open(&api, json!({}));
    send(&adapter, &CLOUD.message(MessageType::Text, Some("Hola"), json!({}))).await
}

#[tokio::test]
#[ignore = "needs the WhatsApp peer; ./test runs it"]
async fn heavy_errors_are_sorted_as_pywa_sorts_them() {
    let codes = [0, 3, 10, 190, 200, 299, 4, 80_007, 130_429, 131_048, 131_056, 131_064, 368, 131_031, 131_026, 131_047, 132_001, 132_015];
    let theirs = pywa().ask(json!({"do": "errors", "codes": codes}));
    for code in codes {
        let classes = theirs[code.to_string()].as_array().unwrap();
        let is = |name: &str| classes.iter().any(|class| class == name);
        let outcome = outcome(code).await;
        let fits = match &outcome {
            Outcome::Deferred { failure, scope, .. } if is("AuthorizationError") || is("IntegrityError") => {
                failure.code == nuncio_domain::message::FailureCode::CredentialsInvalid && *scope == Scope::Connection
            }
            Outcome::Deferred { failure, .. } if is("ThrottlingError") => failure.code == nuncio_domain::message::FailureCode::RateLimited,
            Outcome::Rejected { .. } => is("SendMessageError"),
            _ => false,
        };
        assert!(fits, "{code}: {outcome:?}, pywa: {classes:?}");
    }
}
