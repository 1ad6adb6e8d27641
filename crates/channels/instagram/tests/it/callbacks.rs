//! What Meta posts: proof, reads, messages of all kinds, and what is none of them.

use std::sync::{Arc, LazyLock};

use nuncio_channel::contract::arbitrary;
use nuncio_channel::{Adapter, CallError, CallbackReply, Inbound, Media, ParsedCallback, ProviderEvent, ReceiptTarget};
use nuncio_channel_meta::scripted::{NOW, Reply, WORD, call, sign};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::FailureCode;
use nuncio_domain::{Channel, MessageType, TenantId, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{ACCOUNT, ADA, INSTAGRAM, start};

const AT: i64 = 1_749_416_383_123;

static ADAPTER: LazyLock<Arc<dyn Adapter>> = LazyLock::new(|| INSTAGRAM.offline(json!({})));

fn post(body: &[u8]) -> Result<Vec<ProviderEvent>, CallError> {
    let told = call(&ADAPTER, "POST", "", Some(&sign(body)), body)?;
    assert_eq!(told.reply, CallbackReply::default());
    Ok(told.events)
}

/// A callback with these events.
fn envelope(events: Value) -> Value {
    json!({"object": "instagram", "entry": [{"id": ACCOUNT, "time": AT, "messaging": events}]})
}

/// An event by Ada.
fn by_ada(more: Value) -> Value {
    let mut event = json!({"sender": {"id": ADA}, "recipient": {"id": ACCOUNT}, "timestamp": AT});
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event
}

/// A message by Ada.
fn says(more: Value) -> Value {
    let mut message = json!({"mid": "aWdfIN"});
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    by_ada(json!({"message": message}))
}

fn told(events: Value) -> Vec<ProviderEvent> {
    post(envelope(events).to_string().as_bytes()).unwrap()
}

fn inbound(event: Value) -> Inbound {
    match told(json!([event.clone()])).pop() {
        Some(ProviderEvent::Inbound(inbound)) => inbound,
        other => panic!("{event} told {other:?}"),
    }
}

#[test]
fn meta_tries_the_address() {
    let adapter = INSTAGRAM.offline(json!({}));
    let query = format!("hub.mode=subscribe&hub.verify_token={WORD}&hub.challenge=1158201444");
    let told = call(&adapter, "GET", &query, None, b"").unwrap();
    assert_eq!(told, ParsedCallback { events: Vec::new(), reply: CallbackReply { content_type: "text/plain", body: "1158201444".into() } });
    let wrong = call(&adapter, "GET", "hub.mode=subscribe&hub.verify_token=x&hub.challenge=1", None, b"");
    assert!(matches!(wrong, Err(CallError::Unproved(_))));
    assert!(matches!(call(&adapter, "GET", &format!("hub.verify_token={WORD}"), None, b""), Err(CallError::Malformed(_))));
}

#[test]
fn only_meta_is_believed() {
    let adapter = INSTAGRAM.offline(json!({}));
    let body = envelope(json!([says(json!({"text": "hi"}))])).to_string().into_bytes();
    let good = sign(&body);
    assert_eq!(call(&adapter, "POST", "", Some(&good), &body).unwrap().events.len(), 1);
    for bad in [None, Some("sha256="), Some("sha1=00"), Some("sha256=zz"), Some(sign(b"other").as_str())] {
        assert!(matches!(call(&adapter, "POST", "", bad, &body), Err(CallError::Unproved(_))), "{bad:?}");
    }
    let mut changed = body.clone();
    *changed.last_mut().unwrap() = b' ';
    assert!(matches!(call(&adapter, "POST", "", Some(&good), &changed), Err(CallError::Unproved(_))));
    assert!(matches!(post(b"{"), Err(CallError::Malformed(_))));
    assert!(matches!(call(&adapter, "PUT", "", Some(&good), &body), Err(CallError::Malformed(_))));
}

#[test]
fn messages_of_every_kind() {
    let media = |kind: &str, url: &str| json!({"type": kind, "payload": {"url": url}});
    let (a, b) = ("https://lookaside.fbsbx.com/a?s=1", "https://lookaside.fbsbx.com/b?s=2");
    let share = json!({"type": "ig_reel", "payload": {"reel_video_id": "1", "title": "Look", "url": a}});
    let pressed = json!({"buttons": [{"id": "y", "title": "Yes"}]});
    let story = json!({"story": {"url": a, "id": "18"}});
    let table = [
        ("text", json!({"text": "¡Hola!"}), MessageType::Text, "¡Hola!", None, vec![]),
        ("quick reply", json!({"text": "Yes", "quick_reply": {"payload": "y"}}), MessageType::Text, "Yes", Some(pressed), vec![]),
        ("image", json!({"attachments": [media("image", a)]}), MessageType::Image, "", None, vec![(a, "image/jpeg")]),
        ("video", json!({"attachments": [media("video", a)]}), MessageType::Video, "", None, vec![(a, "video/mp4")]),
        ("audio", json!({"attachments": [media("audio", a)]}), MessageType::Audio, "", None, vec![(a, "audio/mp4")]),
        ("file", json!({"attachments": [media("file", a)]}), MessageType::Document, "", None, vec![(a, "application/octet-stream")]),
        (
            "two",
            json!({"text": "See", "attachments": [media("image", a), media("video", b)]}),
            MessageType::Image,
            "See",
            None,
            vec![(a, "image/jpeg"), (b, "video/mp4")],
        ),
        ("mention in a story", json!({"attachments": [media("story_mention", a)]}), MessageType::Text, a, None, vec![]),
        ("reply to a story", json!({"text": "Nice", "reply_to": story}), MessageType::Text, "Nice", None, vec![]),
        (
            "shared reel",
            json!({"text": "So?", "attachments": [share]}),
            MessageType::Text,
            "So?\nLook\nhttps://lookaside.fbsbx.com/a?s=1",
            None,
            vec![],
        ),
        ("unsupported", json!({"is_unsupported": true}), MessageType::Text, "", None, vec![]),
        ("no address", json!({"attachments": [{"type": "image"}, 7, {"payload": null}]}), MessageType::Text, "", None, vec![]),
        ("odd parts do not take the text", json!({"text": "STOP", "attachments": [7]}), MessageType::Text, "STOP", None, vec![]),
        ("odd", json!({"text": {"no": 1}}), MessageType::Text, "", None, vec![]),
    ];
    for (name, more, message_type, text, content, files) in table {
        let inbound = inbound(says(more));
        assert_eq!((inbound.channel, inbound.from.as_str(), inbound.tenant), (Channel::Instagram, ADA, TenantId(3)), "{name}");
        assert_eq!((inbound.provider_message_id.as_str(), inbound.at), ("aWdfIN", Timestamp::from_millis(AT)), "{name}");
        assert_eq!((inbound.message_type, inbound.text.as_str()), (message_type, text), "{name}");
        assert_eq!(inbound.content.map(|content| serde_json::to_value(content).unwrap()), content, "{name}");
        let media = |m: &Media| (m.reference.clone(), m.content_type.clone());
        let files: Vec<_> = files.into_iter().map(|(url, kind)| (url.to_owned(), kind.to_owned())).collect();
        assert_eq!(inbound.media.iter().map(media).collect::<Vec<_>>(), files, "{name}");
        assert_eq!(inbound.replies_to, None, "{name}");
    }
    let reply = inbound(says(json!({"text": "That", "reply_to": {"mid": "aWdfOUT"}})));
    assert_eq!(reply.replies_to.as_deref(), Some("aWdfOUT"));
}

#[test]
fn postbacks_are_choices() {
    let pressed = inbound(by_ada(json!({"postback": {"mid": "aWdfPB", "title": "Prices", "payload": "p"}})));
    assert_eq!((pressed.provider_message_id.as_str(), pressed.text.as_str()), ("aWdfPB", "Prices"));
    assert_eq!(serde_json::to_value(pressed.content).unwrap(), json!({"buttons": [{"id": "p", "title": "Prices"}]}));
    let nameless = inbound(by_ada(json!({"postback": {"title": "Prices", "payload": "p"}})));
    assert_eq!(nameless.provider_message_id, format!("postback:{ADA}:{AT}"));
}

#[test]
fn reactions_come_and_go() {
    let react = |more: Value, at: i64| {
        let mut reaction = json!({"mid": "aWdfOUT"});
        reaction.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        inbound(by_ada(json!({"reaction": reaction, "timestamp": at})))
    };
    let given = react(json!({"action": "react", "reaction": "love", "emoji": "❤"}), 1);
    let taken = react(json!({"action": "unreact"}), 2);
    let again = react(json!({"action": "react", "reaction": "love", "emoji": "❤"}), 3);
    for (reaction, emoji) in [(&given, "❤"), (&taken, ""), (&again, "❤")] {
        assert_eq!(reaction.message_type, MessageType::Reaction);
        let content = serde_json::to_value(&reaction.content).unwrap();
        assert_eq!(content, json!({"emoji": emoji, "reactToMessageId": "aWdfOUT"}));
    }
    let ids = [&given, &taken, &again].map(|reaction| reaction.provider_message_id.clone());
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "each is an event of its own: {ids:?}");
    assert_eq!(react(json!({"action": "react", "emoji": "❤"}), 1).provider_message_id, ids[0], "told twice, it is one");
}

#[test]
fn reads_are_receipts() {
    let read = by_ada(json!({"read": {"mid": "aWdfOUT"}}));
    for _ in 0..2 {
        let events = told(json!([read]));
        let [ProviderEvent::Receipt { target, kind, at, raw }] = events.as_slice() else { panic!("{events:?}") };
        assert!(matches!(target, ReceiptTarget::Reference { tenant: TenantId(3), reference, .. } if reference == "aWdfOUT"));
        assert_eq!((kind, *at), (&ReceiptKind::Read, Timestamp::from_millis(AT)));
        assert_eq!(serde_json::from_str::<Value>(raw.as_deref().unwrap()).unwrap(), read);
    }
}

#[test]
fn what_tells_nothing_is_passed_over() {
    let echo = json!({"sender": {"id": ACCOUNT}, "recipient": {"id": ADA}, "timestamp": AT,
        "message": {"mid": "aWdfOUT", "text": "ours", "is_echo": true}});
    for event in [
        echo,
        says(json!({"text": "x", "is_echo": true})),
        says(json!({"is_deleted": true})),
        by_ada(json!({"referral": {"ref": "x", "source": "SHORTLINK", "type": "OPEN_THREAD"}})),
        by_ada(json!({"read": {"watermark": 1_749_416_383_123_i64}})),
        by_ada(json!({"delivery": {"mids": ["aWdfOUT"]}})),
        by_ada(json!({"message": {"text": "no id"}})),
        by_ada(json!({"something_new": {"x": 1}})),
        json!({"sender": {"id": "ada"}, "message": {"mid": "m", "text": "x"}}),
        json!({"sender": {"id": ACCOUNT}, "message": {"mid": "m", "text": "to itself"}}),
        json!(7),
    ] {
        assert_eq!(told(json!([event.clone()])), [], "{event}");
        let both = told(json!([event.clone(), says(json!({"text": "hi", "new": {"x": [1]}}))]));
        assert_eq!(both.len(), 1, "it takes nothing with it: {event}");
    }
    for body in [
        json!({"object": "page", "entry": [{"id": ACCOUNT, "messaging": [says(json!({"text": "x"}))]}]}),
        json!({"object": "instagram", "entry": [{"id": "1", "messaging": [says(json!({"text": "x"}))]}]}),
        json!({"object": "instagram", "entry": [{"id": ACCOUNT, "changes": [{"field": "comments", "value": {"id": "1"}}]}]}),
        json!({"object": "instagram"}),
    ] {
        assert_eq!(post(body.to_string().as_bytes()).unwrap(), [], "{body}");
    }
}

#[test]
fn an_event_without_a_time_came_now() {
    assert_eq!(inbound(json!({"sender": {"id": ADA}, "message": {"mid": "m", "text": "x"}})).at, NOW);
}

#[tokio::test]
async fn media_are_fetched_without_the_token() {
    let api = start(|seen| match seen.path.as_str() {
        "/cdn?s=1" => Reply::raw(200, vec![("Content-Type", "image/png".to_owned())], b"\x89PNG".to_vec()),
        _ => Reply::raw(404, Vec::new(), Vec::new()),
    })
    .await;
    let adapter = INSTAGRAM.open(&api, json!({}));
    let file = adapter.fetch_media(&format!("{}/cdn?s=1", api.base()), 4).await.unwrap();
    assert_eq!((file.content_type.as_str(), file.bytes.as_slice()), ("image/png", b"\x89PNG".as_slice()));
    assert_eq!(api.seen()[0].header("authorization"), None);
    for (reference, most) in [("/cdn?s=1", 3), ("/gone?s=secret", 9)] {
        let failure = adapter.fetch_media(&format!("{}{reference}", api.base()), most).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::AttachmentUnavailable);
        assert!(!failure.message.contains("s="), "{}", failure.message);
    }
    assert!(adapter.fetch_media("file:///etc/passwd", 9).await.is_err());
}

/// What events are made of.
const NAMES: &[&str] = &[
    "sender", "id", "timestamp", "message", "mid", "text", "attachments", "type", "payload", "url", "quick_reply", "reaction", "action",
    "emoji", "read", "postback", "title", "reply_to", "is_echo", ACCOUNT, ADA,
];

proptest! {
    #![proptest_config(arbitrary::config(512))]

    #[test]
    fn no_bytes_break_the_reader(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = post(&body);
    }

    #[test]
    fn no_json_breaks_the_reader(event in arbitrary::json(NAMES), said in arbitrary::json(NAMES)) {
        let bodies = [envelope(json!([event, by_ada(json!({"message": said}))])), envelope(event.clone()), said.clone()];
        for body in bodies {
            let read = post(body.to_string().as_bytes());
            prop_assert!(!matches!(read, Err(CallError::Unproved(_))));
        }
    }
}
