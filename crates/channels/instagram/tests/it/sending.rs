//! What is sent for each message, and what is made of the answers.

use nuncio_channel::contract::request;
use nuncio_channel::{Outcome, ResolvedAttachment, Scope, SendRequest};
use nuncio_channel_meta::scripted::{Api, Reply, Seen, TOKEN, refusal};
use nuncio_domain::MessageType;
use nuncio_domain::message::{FailureCode, Message};
use serde_json::{Value, json};

use crate::support::{ADA, INSTAGRAM, send, start, taken};

/// Takes everything, and numbers what it takes: the id is `m` and the length of the body.
fn takes(seen: &Seen) -> Reply {
    if seen.json().get("sender_action").is_some() { Reply::json(200, &json!({"recipient_id": ADA})) } else { taken(&id_of(&seen.json())) }
}

fn id_of(body: &Value) -> String {
    format!("m{}", body.to_string().len())
}

fn to_ada(more: Value) -> Value {
    let mut body = json!({"recipient": {"id": ADA}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn says(message: Value) -> Value {
    to_ada(json!({"message": message}))
}

fn shows(kind: &str, payload: Value) -> Value {
    says(json!({"attachment": {"type": kind, "payload": payload}}))
}

fn choice(title: &str, id: &str) -> Value {
    json!({"content_type": "text", "title": title, "payload": id})
}

/// Sends, and returns what was posted. Every call has an id but reactions.
async fn posted(message: &Message) -> Vec<Value> {
    let api = start(takes).await;
    let outcome = send(&INSTAGRAM.open(&api, json!({})), message).await;
    let Outcome::Accepted { refs, cost: None } = outcome else { panic!("{outcome:?}") };
    let bodies: Vec<Value> = api.seen().iter().map(Seen::json).collect();
    let ids: Vec<_> = bodies.iter().filter(|body| body.get("message").is_some()).map(id_of).collect();
    assert_eq!(refs, ids);
    for seen in api.seen() {
        assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v23.0/me/messages"));
        assert_eq!(seen.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    }
    bodies
}

#[tokio::test]
async fn every_type() {
    let url = "https://x.example/a";
    let cards = json!({"contacts": [{"name": "Ada", "phones": ["+34600111222", "+34600111223"]}]});
    let place = json!({"latitude": 40.5, "longitude": -3.25, "locationName": "Sol"});
    let buttons = json!({"buttons": [{"id": "y", "title": "Yes"}, {"id": "n", "title": "No"}], "footerText": "Acme"});
    let sections = json!([
        {"title": "A", "rows": [{"id": "1", "title": "One", "description": "first"}]},
        {"title": "B", "rows": [{"id": "2", "title": "Twenty-two characters!"}]}
    ]);
    let pay = json!({"ctaDisplayText": "Pay", "ctaUrl": url, "ctaHeaderType": "text", "ctaHeaderText": "Bill", "footerText": "Acme"});
    let shown = json!({"ctaDisplayText": "Pay", "ctaUrl": url, "ctaHeaderType": "image", "ctaHeaderMediaUrl": "https://x.example/a.png"});
    let button = |text: &str| {
        shows("template", json!({"template_type": "button", "text": text, "buttons": [{"type": "web_url", "title": "Pay", "url": url}]}))
    };
    let react = |action: &str, payload: Value| to_ada(json!({"sender_action": action, "payload": payload}));
    let emoji = |emoji: &str| json!({"emoji": emoji, "reactToMessageId": "aWdfZ"});
    let map = "Sol\nhttps://www.openstreetmap.org/?mlat=40.5&mlon=-3.25";
    let table = [
        (MessageType::Text, Some("Hola"), json!({}), vec![says(json!({"text": "Hola"}))]),
        (MessageType::Template, Some("Order 7"), json!({"templateId": "x"}), vec![says(json!({"text": "Order 7"}))]),
        (
            MessageType::Image,
            Some("See"),
            json!({"mediaUrl": url}),
            vec![shows("image", json!({"url": url})), says(json!({"text": "See"}))],
        ),
        (MessageType::Video, None, json!({"mediaUrl": url}), vec![shows("video", json!({"url": url}))]),
        (MessageType::Audio, None, json!({"mediaId": "77"}), vec![shows("audio", json!({"attachment_id": "77"}))]),
        (MessageType::Document, None, json!({"mediaUrl": url, "filename": "a.pdf"}), vec![shows("file", json!({"url": url}))]),
        (MessageType::Sticker, None, json!({"mediaUrl": url}), vec![shows("image", json!({"url": url}))]),
        (MessageType::Location, None, place, vec![says(json!({"text": map}))]),
        (MessageType::Contact, None, cards, vec![says(json!({"text": "Ada: +34600111222, +34600111223"}))]),
        (
            MessageType::Buttons,
            Some("Well?"),
            buttons,
            vec![says(json!({"text": "Well?\n\nAcme", "quick_replies": [choice("Yes", "y"), choice("No", "n")]}))],
        ),
        (
            MessageType::List,
            Some("Well?"),
            json!({"listButton": "Choose", "sections": sections}),
            vec![says(json!({
                "text": "Well?\nA\n1. One: first\nB\n2. Twenty-two characters!",
                "quick_replies": [choice("One", "1"), choice("Twenty-two characte…", "2")]
            }))],
        ),
        (MessageType::CtaUrl, Some("Well?"), pay, vec![button("Bill\n\nWell?\n\nAcme")]),
        (MessageType::CtaUrl, Some("Well?"), shown, vec![shows("image", json!({"url": "https://x.example/a.png"})), button("Well?")]),
        (MessageType::Reaction, None, emoji("❤️"), vec![react("react", json!({"message_id": "aWdfZ", "reaction": "love"}))]),
        (MessageType::Reaction, None, emoji("👍"), vec![react("react", json!({"message_id": "aWdfZ", "reaction": "👍"}))]),
        (MessageType::Reaction, None, emoji(""), vec![react("unreact", json!({"message_id": "aWdfZ"}))]),
    ];
    for (message_type, text, content, wanted) in table {
        let sent = posted(&INSTAGRAM.message(message_type, text, content)).await;
        assert_eq!(sent, wanted, "{message_type}");
    }
}

#[tokio::test]
async fn what_is_too_long_for_one_message_goes_in_several() {
    let cards: Vec<_> = (0..20).map(|n| json!({"name": "x".repeat(80), "phones": [format!("+346001112{n:02}")]})).collect();
    let sent = posted(&INSTAGRAM.message(MessageType::Contact, None, json!({"contacts": cards}))).await;
    let texts: Vec<_> = sent.iter().map(|body| body["message"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().all(|text| text.len() <= 1_000 && text.ends_with(|c: char| c.is_ascii_digit())), "cut between lines: {texts:?}");

    let long = "word ".repeat(199);
    let buttons = json!({"buttons": [{"id": "y", "title": "Yes"}], "footerText": "At the very end"});
    let sent = posted(&INSTAGRAM.message(MessageType::Buttons, Some(&long), buttons)).await;
    let choices: Vec<_> = sent.iter().map(|body| body["message"].get("quick_replies").is_some()).collect();
    assert_eq!(choices, [false, true], "choices vanish when another message follows");

    let sent =
        posted(&INSTAGRAM.message(MessageType::CtaUrl, Some(&long), json!({"ctaDisplayText": "Pay", "ctaUrl": "https://x.example"}))).await;
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1].pointer("/message/attachment/payload/text"), Some(&json!("Pay")));
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_before_anything_goes_out() {
    let adapter = INSTAGRAM.offline(json!({}));
    let rejected = async |message: &Message| match send(&adapter, message).await {
        Outcome::Rejected { failure } => failure.code,
        outcome => panic!("{outcome:?}"),
    };
    assert_eq!(rejected(&INSTAGRAM.message(MessageType::Image, None, json!({}))).await, FailureCode::ContentRejected);
    assert_eq!(rejected(&INSTAGRAM.message(MessageType::Template, Some(""), json!({}))).await, FailureCode::ContentRejected);
    let ours = json!({"emoji": "👍", "reactToMessageId": INSTAGRAM.message(MessageType::Text, None, json!({})).id.to_string()});
    assert_eq!(rejected(&INSTAGRAM.message(MessageType::Reaction, None, ours)).await, FailureCode::ContentRejected);
    for to in ["-1", "+34600111222", "", "1/2"] {
        let mut message = INSTAGRAM.message(MessageType::Text, Some("x"), json!({}));
        message.to = to.to_owned();
        assert_eq!(rejected(&message).await, FailureCode::InvalidRecipient, "{to}");
    }
    let file = ResolvedAttachment { filename: "a".into(), content_type: "image/png".into(), content_id: None, bytes: vec![1] };
    let message = INSTAGRAM.message(MessageType::Image, None, json!({}));
    let outcome = adapter.send(&SendRequest { attachments: &[file], ..request(&message) }).await;
    assert!(matches!(outcome, Outcome::Rejected { .. }), "{outcome:?}");
}

/// An API that takes so many calls of a message and then does something else.
async fn breaks_after(count: usize, then: Reply) -> Api {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    start(move |seen| match calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        n if n < count => takes(seen),
        _ => then.clone(),
    })
    .await
}

#[tokio::test]
async fn a_caption_that_does_not_follow_its_media_leaves_the_outcome_open() {
    let refused = breaks_after(1, refusal(400, 100, "(#100) Invalid parameter")).await;
    let message = INSTAGRAM.message(MessageType::Image, Some("See"), json!({"mediaUrl": "https://x.example/a"}));
    let outcome = send(&INSTAGRAM.open(&refused, json!({})), &message).await;
    let Outcome::Rejected { failure } = outcome else { panic!("{outcome:?}") };
    assert!(failure.message.starts_with("1 of 2 parts were sent; then: "), "{}", failure.message);
    for then in [Reply::HangUp, refusal(429, 613, "Too many"), taken("")] {
        let api = breaks_after(1, then.clone()).await;
        let outcome = send(
            &INSTAGRAM.open(&api, json!({})),
            &INSTAGRAM.message(MessageType::Image, Some("See"), json!({"mediaUrl": "https://x.example/a"})),
        )
        .await;
        let Outcome::Unknown { failure, refs } = outcome else { panic!("{then:?}: {outcome:?}") };
        assert_eq!((refs, failure.code), (vec![id_of(&api.seen()[0].json())], FailureCode::UnknownOutcome));
        assert!(failure.message.starts_with("1 of 2 parts were sent; then: "), "{}", failure.message);
        let none = breaks_after(0, then.clone()).await;
        let outcome = send(
            &INSTAGRAM.open(&none, json!({})),
            &INSTAGRAM.message(MessageType::Image, Some("See"), json!({"mediaUrl": "https://x.example/a"})),
        )
        .await;
        assert_eq!(none.seen().len(), 1, "nothing follows what did not go out: {outcome:?}");
    }
}

#[tokio::test]
async fn errors_that_only_instagram_has() {
    let error = |code: i64, subcode: i64| Reply::json(400, &json!({"error": {"message": "No", "code": code, "error_subcode": subcode}}));
    let api = start(move |_| error(10, 2_534_022)).await;
    let outcome = send(&INSTAGRAM.open(&api, json!({})), &INSTAGRAM.message(MessageType::Text, Some("x"), json!({}))).await;
    assert!(matches!(&outcome, Outcome::Rejected { failure } if failure.code == FailureCode::WindowClosed), "{outcome:?}");
    let api = start(move |_| error(10, 1)).await;
    let outcome = send(&INSTAGRAM.open(&api, json!({})), &INSTAGRAM.message(MessageType::Text, Some("x"), json!({}))).await;
    assert!(matches!(&outcome, Outcome::Deferred { scope: Scope::Message, .. }), "it may be this person's alone: {outcome:?}");
    let api = start(|_| refusal(400, 10, "No")).await;
    let outcome = send(&INSTAGRAM.open(&api, json!({})), &INSTAGRAM.message(MessageType::Text, Some("x"), json!({}))).await;
    assert!(matches!(&outcome, Outcome::Deferred { scope: Scope::Connection, .. }), "{outcome:?}");
}
