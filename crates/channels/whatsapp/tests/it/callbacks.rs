//! What Meta posts: proof, statuses, messages of all kinds, and what is none of them.

use std::sync::{Arc, LazyLock, Mutex};

use nuncio_channel::contract::arbitrary;
use nuncio_channel::{Adapter, CallError, CallbackReply, Inbound, ParsedCallback, ProviderEvent, ReceiptTarget, stop};
pub(crate) use nuncio_channel_meta::scripted::sign;
use nuncio_channel_meta::scripted::{NOW, Reply, call};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::FailureCode;
use nuncio_domain::{MessageType, TenantId, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::support::{CLOUD, NUMBER, SECRET, WORD, start};

pub(crate) fn post_signed(adapter: &Arc<dyn Adapter>, signature: &str, body: &[u8]) -> Result<ParsedCallback, CallError> {
    call(adapter, "POST", "", Some(signature), body)
}

fn post(adapter: &Arc<dyn Adapter>, body: &Value) -> Vec<ProviderEvent> {
    let body = body.to_string().into_bytes();
    let told = post_signed(adapter, &sign(&body), &body).unwrap();
    assert_eq!(told.reply, CallbackReply::default());
    told.events
}

/// A callback with one change of field `messages`.
pub(crate) fn envelope(value: Value) -> Value {
    let mut all = json!({"messaging_product": "whatsapp", "metadata": {"display_phone_number": "15550783881", "phone_number_id": NUMBER}});
    all.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
    json!({"object": "whatsapp_business_account", "entry": [{"id": "102290129340398", "changes": [{"field": "messages", "value": all}]}]})
}

/// A message from Ada.
pub(crate) fn from_ada(more: Value) -> Value {
    let mut message = json!({"from": "34600111222", "from_user_id": "ES.1", "id": "wamid.IN", "timestamp": "1749416383"});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    envelope(json!({"contacts": [{"profile": {"name": "Ada"}, "wa_id": "34600111222", "user_id": "ES.1"}], "messages": [message]}))
}

pub(crate) fn read(adapter: &Arc<dyn Adapter>, body: &Value) -> Inbound {
    let events = post(adapter, body);
    let [ProviderEvent::Inbound(inbound)] = &events[..] else { panic!("{events:?}") };
    inbound.clone()
}

#[test]
fn meta_tries_the_address() {
    let adapter = CLOUD.offline(json!({}));
    let get = |query: &str| call(&adapter, "GET", query, None, b"");
    let told = get(&format!("hub.mode=subscribe&hub.challenge=115%2B8&hub.verify_token={WORD}")).unwrap();
    assert_eq!(told, ParsedCallback { events: Vec::new(), reply: CallbackReply { content_type: "text/plain", body: "115+8".into() } });
    for query in ["hub.mode=subscribe&hub.challenge=1", "hub.mode=subscribe&hub.challenge=1&hub.verify_token=x", ""] {
        assert!(matches!(get(query), Err(CallError::Unproved(why)) if !why.contains(WORD)), "{query}");
    }
    for query in [format!("hub.challenge=1&hub.verify_token={WORD}"), format!("hub.mode=subscribe&hub.verify_token={WORD}")] {
        assert!(matches!(get(&query), Err(CallError::Malformed(_))), "{query}");
    }
    assert!(matches!(call(&adapter, "PUT", "", None, b""), Err(CallError::Malformed(_))));
}

#[test]
fn nobody_else_is_heard() {
    let adapter = CLOUD.offline(json!({}));
    let body = from_ada(json!({"type": "text", "text": {"body": "hi"}})).to_string().into_bytes();
    let good = sign(&body);
    assert_eq!(post_signed(&adapter, &good, &body).unwrap().events.len(), 1);
    assert_eq!(post_signed(&adapter, &good.to_uppercase().replace("SHA", "sha"), &body).unwrap().events.len(), 1, "digits in any case");
    let changed = [&body[..], b" "].concat();
    let other = sign(b"something else");
    for (what, signature, body) in [
        ("none", None, &body),
        ("another body's", Some(other.as_str()), &body),
        ("a changed body", Some(good.as_str()), &changed),
        ("half", Some(&good[..39]), &body),
        ("empty", Some("sha256="), &body),
        ("no digits", Some("sha256=zz"), &body),
        ("the old kind", Some(&good[2..]), &body),
    ] {
        let error = call(&adapter, "POST", "", signature, body).unwrap_err();
        assert!(matches!(&error, CallError::Unproved(why) if !why.contains(SECRET) && !why.contains(&good[7..])), "{what}: {error}");
    }
}

#[test]
fn the_bytes_count_not_what_they_say() {
    // As Meta writes it: what is not ASCII is escaped, and so are slashes.
    let body = br#"{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[{"value":{"metadata":{"phone_number_id":"106540352242922"},"messages":[{"from":"34600111222","id":"wamid.IN","timestamp":"1749416383","text":{"body":"\u00a1Hola! \ud83d\udc4d https:\/\/x.example"},"type":"text"}]},"field":"messages"}]}]}"#;
    let told = post_signed(&CLOUD.offline(json!({})), &sign(body), body).unwrap();
    let [ProviderEvent::Inbound(inbound)] = &told.events[..] else { panic!("{told:?}") };
    assert_eq!(inbound.text, "¡Hola! 👍 https://x.example");
}

#[test]
fn what_was_written_to_is_the_number_that_is_shown() {
    let adapter = CLOUD.offline(json!({}));
    let mut body = from_ada(json!({"type": "text", "text": {"body": "hi"}}));
    for (shown, to) in [
        (json!("15550783881"), Some("+15550783881")),
        (json!("+1 555-078-3881"), Some("+15550783881")),
        (json!("+52 1 55 1234 5678"), Some("+525512345678")),
        (json!(""), None),
        (Value::Null, None),
    ] {
        let metadata = body.pointer_mut("/entry/0/changes/0/value/metadata").and_then(Value::as_object_mut).unwrap();
        match shown {
            Value::Null => drop(metadata.remove("display_phone_number")),
            shown => drop(metadata.insert("display_phone_number".to_owned(), shown)),
        }
        assert_eq!(read(&adapter, &body).to.as_deref(), to);
    }
}

#[test]
fn people_have_the_number_that_is_dialled() {
    let adapter = CLOUD.offline(json!({}));
    for (id, number) in [
        ("5215512345678", "+525512345678"),
        ("525512345678", "+525512345678"),
        ("521551234567", "+521551234567"),
        ("551187654321", "+5511987654321"),
        ("556464180266", "+5564964180266"),
        ("5511987654321", "+5511987654321"),
        ("551121234567", "+551121234567"),
        ("554532782153", "+554532782153"),
        ("551151234567", "+551151234567"),
        ("558001234567", "+558001234567"),
        ("15551187654", "+15551187654"),
    ] {
        let card = json!([{"name": {"formatted_name": "Bob"}, "phones": [{"wa_id": id}]}]);
        let message = json!({"from": id, "id": "wamid.IN", "timestamp": "1", "type": "contacts", "contacts": card});
        let body = envelope(json!({"contacts": [{"profile": {"name": "Ada"}, "wa_id": id}], "messages": [message]}));
        let inbound = read(&adapter, &body);
        assert_eq!((inbound.from.as_str(), inbound.profile_name.as_deref()), (number, Some("Ada")));
        let content = inbound.content.unwrap();
        assert_eq!(content.contacts.unwrap()[0].phones, [number]);
    }
}

#[test]
fn what_cannot_be_read_is_told_and_what_is_not_known_passed_over() {
    let adapter = CLOUD.offline(json!({}));
    for body in [&b"no JSON"[..], b"", br#"{"entry": 1}"#] {
        assert!(matches!(post_signed(&adapter, &sign(body), body), Err(CallError::Malformed(_))), "{body:?}");
    }
    let text = |from: &str, id: &str| json!({"from": from, "id": id, "timestamp": "1", "type": "text", "text": {"body": "hi"}});
    for (what, body) in [
        ("nothing", json!({"object": "page"})),
        ("another field", json!({"entry": [{"changes": [{"field": "account_update", "value": {"event": "VERIFIED_ACCOUNT"}}]}]})),
        (
            "a template's fate",
            json!({"entry": [{"changes": [{"field": "message_template_status_update", "value": {"event": "APPROVED", "message_template_id": 1}}]}]}),
        ),
        (
            "another number",
            json!({"entry": [{"changes": [{"field": "messages", "value": {"metadata": {"phone_number_id": "7"}, "messages": [text("1", "a")]}}]}]}),
        ),
        ("no number", json!({"entry": [{"changes": [{"field": "messages", "value": {"messages": [text("1", "a")]}}]}]})),
        (
            "no sender",
            envelope(json!({"messages": [{"from_user_id": "ES.1", "id": "a", "timestamp": "1", "type": "text", "text": {"body": "hi"}}]})),
        ),
        ("a sender who is none", envelope(json!({"messages": [text("ES.1", "a")]}))),
        ("no id", envelope(json!({"messages": [text("1", "")]}))),
        ("a notice", from_ada(json!({"type": "system", "system": {"body": "Ada changed", "type": "user_changed_number"}}))),
        ("an edit", from_ada(json!({"type": "edit", "edit": {"original_message_id": "wamid.1"}}))),
        ("a new status", envelope(json!({"statuses": [{"id": "wamid.A", "status": "forwarded", "timestamp": "1"}]}))),
        ("errors", envelope(json!({"errors": [{"code": 130_429, "title": "Rate limit hit"}]}))),
    ] {
        assert_eq!(post(&adapter, &body), [], "{what}");
    }
    let events =
        post(&adapter, &envelope(json!({"messages": [7, {"id": []}, text("1", "b")], "statuses": ["x"], "contacts": [null], "new": {}})));
    assert_eq!(events.len(), 1, "one that cannot be read does not take the others with it: {events:?}");
}

/// Log lines, with their fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = event.metadata().level().to_string();
        event.record(&mut |_: &tracing::field::Field, value: &dyn std::fmt::Debug| line += &format!(" {value:?}"));
        self.0.lock().unwrap().push(line);
    }
}

/// Not in a time that grows with the product of both.
#[test]
fn many_messages_are_of_many_people() {
    let adapter = CLOUD.offline(json!({}));
    let people: Vec<Value> = (0..60_000).map(|n| json!({"wa_id": format!("346{n:08}"), "profile": {"name": "Ada"}})).collect();
    let messages: Vec<Value> = (0..60_000).map(|n| json!({"from": format!("346{n:08}"), "id": "wamid.IN", "type": "text"})).collect();
    let begun = std::time::Instant::now();
    let events = post(&adapter, &envelope(json!({"contacts": people, "messages": messages})));
    let named = |event: &ProviderEvent| matches!(event, ProviderEvent::Inbound(inbound) if inbound.profile_name.as_deref() == Some("Ada"));
    assert_eq!((events.len(), events.iter().all(named)), (60_000, true));
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}

#[test]
fn the_log_says_once_that_people_without_a_number_are_ignored() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
    let adapter = CLOUD.offline(json!({}));
    let message = json!({"from_user_id": "ES.1", "id": "wamid.IN", "timestamp": "1", "type": "text", "text": {"body": "hi"}});
    for _ in 0..3 {
        assert_eq!(post(&adapter, &envelope(json!({"messages": [message, message]}))), []);
    }
    let lines = lines.0.lock().unwrap();
    assert!(lines.len() == 1 && lines[0].starts_with("WARN ") && lines[0].contains("user name"), "{lines:?}");
    assert!(!["ES.1", "wamid.IN", "hi\""].iter().any(|personal| lines[0].contains(personal)), "{lines:?}");
}

#[test]
fn the_log_says_that_a_part_cannot_be_parsed() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
    let adapter = CLOUD.offline(json!({}));
    let message = json!({"from": "34600111222", "id": "wamid.IN", "type": "text", "text": {"body": ["Ada"]}});
    let value = json!({"messages": ["Ada", "Ada", message], "statuses": [{"id": "wamid.A", "status": 7, "recipient_id": "34600111222"}]});
    assert_eq!(post(&adapter, &envelope(value)).len(), 1, "the message without its content");
    assert_eq!(post(&adapter, &envelope(json!({"messages": "Ada"}))), []);
    let lines = lines.0.lock().unwrap();
    let said: Vec<_> =
        ["status", "message", "content", "change"].iter().filter(|what| lines.iter().any(|line| line.contains(**what))).collect();
    assert_eq!((lines.len(), said.len()), (4, 4), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("Ada") || line.contains("34600111222") || line.contains("wamid")), "{lines:?}");
}

#[test]
fn statuses_become_receipts_of_their_attempt() {
    let adapter = CLOUD.offline(json!({}));
    let id = CLOUD.message(MessageType::Text, None, json!({})).id;
    for (word, kind) in
        [("sent", ReceiptKind::Sent), ("delivered", ReceiptKind::Delivered), ("read", ReceiptKind::Read), ("played", ReceiptKind::Read)]
    {
        let status = json!({
            "id": "wamid.A", "status": word, "timestamp": "1749416383", "recipient_id": "34600111222",
            "biz_opaque_callback_data": format!("{id}/2"), "conversation": {"id": "c", "origin": {"type": "utility"}},
            "pricing": {"billable": true, "pricing_model": "PMP", "category": "utility"}
        });
        let events = post(&adapter, &envelope(json!({"statuses": [status]})));
        let [ProviderEvent::Receipt { target, kind: told, at, raw }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(
            *target,
            ReceiptTarget::Attempt {
                tenant: TenantId(3),
                message: id,
                attempt: Some(2),
                connection: CLOUD.account("https://graph.example", json!({})).id
            }
        );
        assert_eq!((told, *at), (&kind, Timestamp::from_millis(1_749_416_383_000)));
        assert_eq!(raw.as_deref(), Some(status.to_string().as_str()), "as it came");
    }
}

#[test]
fn what_failed_says_why() {
    let errors = json!([{"code": 131_047, "title": "Re-engagement message", "message": "Re-engagement message",
        "error_data": {"details": "More than 24 hours have passed"}, "href": "https://x.example"}]);
    let status = json!({"id": "wamid.A", "status": "failed", "timestamp": "x", "errors": errors});
    let odd = json!({"id": "wamid.C", "status": "failed", "timestamp": null, "errors": "gone", "biz_opaque_callback_data": null});
    let events = post(&CLOUD.offline(json!({})), &envelope(json!({"statuses": [status, {"id": "wamid.B", "status": "failed"}, odd]})));
    let [
        ProviderEvent::Receipt { target, kind: ReceiptKind::Failed(failure), at, .. },
        ProviderEvent::Receipt { kind: ReceiptKind::Failed(_), .. },
        ProviderEvent::Receipt { kind: ReceiptKind::Failed(_), .. },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!((failure.code, failure.provider_code.as_deref()), (FailureCode::WindowClosed, Some("131047")));
    assert_eq!(failure.message, "Re-engagement message: More than 24 hours have passed");
    assert_eq!(*at, NOW, "when the provider's time cannot be read");
    assert!(matches!(target, ReceiptTarget::Reference { reference, .. } if reference == "wamid.A"), "a message that was not named by us");
}

#[test]
fn duplicates_say_the_same() {
    let adapter = CLOUD.offline(json!({}));
    let body = from_ada(json!({"type": "text", "text": {"body": "hi"}}));
    assert_eq!(post(&adapter, &body), post(&adapter, &body));
}

/// A message of each kind, as Meta posts it.
pub(crate) fn kinds() -> Vec<(&'static str, Value)> {
    let context = json!({"from": "15550783881", "id": "wamid.OUT"});
    let button = json!({"type": "button_reply", "button_reply": {"id": "y", "title": "Yes", "new": 1}});
    let row = json!({"type": "list_reply", "list_reply": {"id": "r", "title": "One", "description": "first"}});
    vec![
        ("text", json!({"type": "text", "text": {"body": "¡Hola!"}, "context": context})),
        ("image", json!({"type": "image", "image": {"id": "10", "mime_type": "image/jpeg", "sha256": "x", "caption": "See"}})),
        ("video", json!({"type": "video", "video": {"id": "11", "mime_type": "video/mp4", "sha256": "x"}})),
        ("audio", json!({"type": "audio", "audio": {"id": "12", "mime_type": "audio/ogg; codecs=opus", "sha256": "x", "voice": true}})),
        (
            "document",
            json!({"type": "document", "document": {"id": "13", "mime_type": "application/pdf", "sha256": "x", "filename": "a.pdf", "caption": "See"}}),
        ),
        ("sticker", json!({"type": "sticker", "sticker": {"id": "14", "mime_type": "image/webp", "sha256": "x", "animated": false}})),
        ("location", json!({"type": "location", "location": {"latitude": 40.5, "longitude": -3.25, "name": "Sol", "address": "Plaza 1"}})),
        (
            "contacts",
            json!({"type": "contacts", "contacts": [{"name": {"formatted_name": "Bob", "first_name": "Bob"}, "phones": [{"phone": "+34600333444", "wa_id": "34600333444", "type": "CELL"}]}]}),
        ),
        ("button", json!({"type": "interactive", "interactive": button, "context": context})),
        ("row", json!({"type": "interactive", "interactive": row, "context": context})),
        ("quick reply", json!({"type": "button", "button": {"payload": "y", "text": "Yes"}, "context": context})),
        ("reaction", json!({"type": "reaction", "reaction": {"message_id": "wamid.OUT", "emoji": "👍"}})),
        ("reaction taken back", json!({"type": "reaction", "reaction": {"message_id": "wamid.OUT"}})),
        ("unsupported", json!({"type": "unsupported", "errors": [{"code": 131_051, "title": "Message type unknown"}]})),
        ("odd", json!({"type": "image", "image": {"no_id": 1}})),
    ]
}

#[test]
fn messages_of_every_kind() {
    let adapter = CLOUD.offline(json!({}));
    let button = json!({"buttons": [{"id": "y", "title": "Yes"}]});
    let row = json!({"sections": [{"rows": [{"id": "r", "title": "One", "description": "first"}]}]});
    let place = json!({"latitude": 40.5, "longitude": -3.25, "locationName": "Sol", "locationAddress": "Plaza 1"});
    let cards = json!({"contacts": [{"name": "Bob", "phones": ["+34600333444"]}]});
    let wanted = [
        (MessageType::Text, "¡Hola!", None, None),
        (MessageType::Image, "See", None, Some(("10", "image/jpeg"))),
        (MessageType::Video, "", None, Some(("11", "video/mp4"))),
        (MessageType::Audio, "", None, Some(("12", "audio/ogg; codecs=opus"))),
        (MessageType::Document, "See", None, Some(("13", "application/pdf"))),
        (MessageType::Sticker, "", None, Some(("14", "image/webp"))),
        (MessageType::Location, "", Some(place), None),
        (MessageType::Contact, "", Some(cards), None),
        (MessageType::Text, "Yes", Some(button.clone()), None),
        (MessageType::Text, "One", Some(row), None),
        (MessageType::Text, "Yes", Some(button), None),
        (MessageType::Reaction, "", Some(json!({"emoji": "👍", "reactToMessageId": "wamid.OUT"})), None),
        (MessageType::Reaction, "", Some(json!({"emoji": "", "reactToMessageId": "wamid.OUT"})), None),
        (MessageType::Text, "", None, None),
        (MessageType::Text, "", None, None),
    ];
    let kinds = kinds();
    assert_eq!(kinds.len(), wanted.len());
    for ((name, more), (message_type, text, content, media)) in kinds.into_iter().zip(wanted) {
        let replies_to = more["context"]["id"].as_str().map(str::to_owned);
        let inbound = read(&adapter, &from_ada(more));
        assert_eq!((inbound.from.as_str(), inbound.profile_name.as_deref()), ("+34600111222", Some("Ada")), "{name}");
        assert_eq!((inbound.provider_message_id.as_str(), inbound.at), ("wamid.IN", Timestamp::from_millis(1_749_416_383_000)));
        assert_eq!((inbound.message_type, inbound.text.as_str()), (message_type, text), "{name}");
        assert_eq!(inbound.content.map(|content| serde_json::to_value(content).unwrap()), content, "{name}");
        assert_eq!(inbound.media.first().map(|m| (m.reference.as_str(), m.content_type.as_str())), media, "{name}");
        assert_eq!(inbound.replies_to, replies_to, "{name}");
    }
}

#[tokio::test]
async fn what_comes_in_is_marked_as_read_if_that_is_wanted() {
    let api = start(|_| Reply::json(200, &json!({"success": true}))).await;
    let adapter = CLOUD.open(&api, json!({"mark_read": true}));
    let (ask, asked) = stop();
    let session = tokio::spawn({
        let adapter = Arc::clone(&adapter);
        async move { adapter.run(asked).await }
    });
    post(&adapter, &from_ada(json!({"type": "text", "text": {"body": "hi"}})));
    post(&adapter, &envelope(json!({"statuses": [{"id": "wamid.A", "status": "sent", "timestamp": "1"}]})));
    post(&adapter, &from_ada(json!({"id": "wamid.IN2", "type": "text", "text": {"body": "hi"}})));
    api.wait(2).await;
    ask.send(true).unwrap();
    session.await.unwrap();
    let marked: Vec<_> = api.seen().iter().map(|seen| (seen.path.clone(), seen.json())).collect();
    let mark =
        |id: &str| (format!("/v23.0/{NUMBER}/messages"), json!({"messaging_product": "whatsapp", "status": "read", "message_id": id}));
    assert_eq!(marked, [mark("wamid.IN"), mark("wamid.IN2")]);
}

/// What callbacks are made of.
const NAMES: &[&str] = &[
    "statuses",
    "messages",
    "contacts",
    "id",
    "status",
    "delivered",
    "failed",
    "timestamp",
    "errors",
    "code",
    "from",
    "type",
    "text",
    "body",
    "image",
    "caption",
    "interactive",
    "button_reply",
    "list_reply",
    "reaction",
    "message_id",
    "context",
    "profile",
    "name",
    "wa_id",
    "34600111222",
    "location",
    "latitude",
    "biz_opaque_callback_data",
    "metadata",
    "phone_number_id",
    NUMBER,
];

proptest! {
    #![proptest_config(arbitrary::config(512))]

    #[test]
    fn nothing_breaks_the_reader(value in arbitrary::json(NAMES), more in arbitrary::json(NAMES), octets: Vec<u8>) {
        static ADAPTER: LazyLock<Arc<dyn Adapter>> = LazyLock::new(|| CLOUD.offline(json!({})));
        let any = json!({"entry": [{"changes": [{"field": "messages", "value": value}]}]}).to_string().into_bytes();
        let lists = envelope(json!({"statuses": [more], "messages": [value, more], "contacts": [value]})).to_string().into_bytes();
        for body in [any, lists, octets] {
            prop_assert!(!matches!(post_signed(&ADAPTER, &sign(&body), &body), Err(CallError::Unproved(_))));
        }
    }
}
