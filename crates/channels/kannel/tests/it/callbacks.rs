//! What the gateway calls: proof, receipts, messages, and what is none of them.

use std::sync::Arc;

use nuncio_channel::contract::request;
use nuncio_channel::scripted::{Reply, Scripted, query};
use nuncio_channel::{Adapter, CallError, CallbackReply, Inbound, ParsedCallback, ProviderEvent, ReceiptTarget};
use nuncio_channel_http::testing::{CALLBACK, NOW, call};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{FailureCode, Message};
use nuncio_domain::{Channel, MessageType, TenantId, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{GATEWAY, SECRET, identity};

fn offline() -> Arc<dyn Adapter> {
    GATEWAY.offline(json!({}))
}

fn message() -> Message {
    GATEWAY.message(MessageType::Text, Some("x"), json!({}))
}

/// Calls back, as the gateway would with GET.
fn get(adapter: &Arc<dyn Adapter>, rest: &str, query: &str) -> Result<ParsedCallback, CallError> {
    call(adapter, "GET", &format!("{CALLBACK}/{rest}?{query}"), &[], b"")
}

/// The address for receipts of the first attempt of a message, as the gateway was given it.
async fn dlr_url(message: &Message) -> String {
    let gateway = Scripted::start(|_| Reply::text(202, "0: Accepted for delivery")).await;
    let _ = GATEWAY.open(&gateway, json!({})).send(&request(message)).await;
    identity(&gateway.seen()[0]).unwrap()
}

/// The address for receipts as the gateway calls it.
fn filled(address: &str, kind: &str, answer: &str) -> String {
    query(address).replace("%d", kind).replace("%A", answer).replace("%T", "1795304697")
}

#[tokio::test]
async fn receipts_find_their_attempt() {
    let (adapter, message) = (offline(), message());
    let address = dlr_url(&message).await;
    for _ in ["first", "duplicate"] {
        let ParsedCallback { events, reply } = get(&adapter, "dlr", &filled(&address, "1", "")).unwrap();
        let [ProviderEvent::Receipt { target, kind, at, raw }] = &events[..] else { panic!("{events:?}") };
        let ReceiptTarget::Attempt { tenant, message: told, attempt, .. } = target else { panic!("{target:?}") };
        assert_eq!((*tenant, *told, *attempt), (TenantId(3), message.id, Some(0)));
        assert_eq!((kind, *at), (&ReceiptKind::Delivered, Timestamp::from_millis(1_795_304_697_000)));
        assert_eq!((raw.as_deref(), reply), (Some("type 1, answer "), CallbackReply::default()));
    }
    let told = get(&adapter, "dlr", &filled(&address, "16", "NACK%2F0x0000000b%2FInvalid+Destination+Address")).unwrap();
    let [ProviderEvent::Receipt { kind: ReceiptKind::Failed(failure), .. }] = &told.events[..] else { panic!("{told:?}") };
    assert_eq!((failure.code, failure.provider_code.as_deref()), (FailureCode::InvalidRecipient, Some("16")));
    // What is not known is passed over; a time that cannot be read is now.
    assert_eq!(get(&adapter, "dlr", &filled(&address, "64", "")).unwrap().events, []);
    let told = get(&adapter, "dlr", &filled(&address, "8", "ACK%2F").replace("1795304697", "%T")).unwrap();
    let [ProviderEvent::Receipt { at, kind: ReceiptKind::Sent, .. }] = told.events[..] else { panic!("{told:?}") };
    assert_eq!(at, NOW);
}

#[tokio::test]
async fn receipts_are_proved() {
    let (adapter, message) = (offline(), message());
    let right = filled(&dlr_url(&message).await, "1", "");
    let digit = if right.contains("&k=0") { "&k=1" } else { "&k=0" };
    let start = right.find("&k=").unwrap();
    let forged = format!("{}{digit}{}", &right[..start], &right[start + 4..]);
    for wrong in [
        forged,
        right.replace("&a=0&", "&a=1&"),
        right.replace("m=msg_", "m=msg_x"),
        right.replace("&k=", "&other="),
        right.replace("&k=", "&k=zz"),
        format!("key={SECRET}&type=1"),
        String::new(),
    ] {
        assert!(matches!(get(&adapter, "dlr", &wrong), Err(CallError::Unproved(_))), "{wrong}");
    }
    assert!(matches!(get(&adapter, "other", &right), Err(CallError::Unproved(_))));
    let CallError::Unproved(text) = get(&adapter, "", "key=wrong&from=1&text=x").unwrap_err() else { panic!() };
    assert!(!text.contains(SECRET), "{text}");
}

fn inbound(told: &ParsedCallback) -> &Inbound {
    let [ProviderEvent::Inbound(inbound)] = &told.events[..] else { panic!("{told:?}") };
    inbound
}

fn key() -> String {
    format!("key={}", SECRET.replace('+', "%2B"))
}

#[test]
fn messages_come_by_get_url() {
    let adapter = offline();
    let rest = "from=34600111222&to=12345&text=hello%2B+you&charset=UTF-8&coding=0&time=1795304695&id=de7a9d14-a4d8&new=1";
    let told = get(&adapter, "", &format!("{}&{rest}", key())).unwrap();
    let place = (TenantId(3), inbound(&told).connection, Channel::Sms);
    let wanted =
        Inbound::text(place, "de7a9d14-a4d8".into(), "+34600111222".into(), "hello+ you".into(), Timestamp::from_millis(1_795_304_695_000));
    assert_eq!(inbound(&told), &Inbound { to: Some("12345".into()), ..wanted });
    let ucs2 = format!("{}&from=%2B34600111222&text=%04%1F%D8%3D%DE%00&charset=UTF-16BE&coding=2&id=2", key());
    let told = get(&adapter, "", &ucs2).unwrap();
    assert_eq!((inbound(&told).text.as_str(), inbound(&told).at), ("П\u{1F600}", NOW));
    // Without an id, the same call is the same message, and another is not.
    let ids = ["text=a&time=1", "text=a&time=1", "text=b&time=1", "text=a&time=2"]
        .map(|said| inbound(&get(&adapter, "", &format!("{}&from=12345678901&{said}", key())).unwrap()).provider_message_id.clone());
    assert!(ids[0] == ids[1] && ids[0] != ids[2] && ids[0] != ids[3], "{ids:?}");
    assert_eq!(get(&adapter, "", &format!("{}&from=1&text=%00&coding=1", key())).unwrap().events, [], "bytes are no text");
    assert!(matches!(get(&adapter, "", &key()), Err(CallError::Malformed(_))));
}

#[test]
fn messages_come_by_post_url() {
    let adapter = offline();
    let headers = [("content-type", "text/plain; charset=\"UTF-16BE\""), ("x-kannel-from", "+34600111222"), ("x-kannel-coding", "2")];
    let told = call(&adapter, "POST", &format!("{CALLBACK}?{}&id=7", key()), &headers, b"\x04\x1f").unwrap();
    let read = inbound(&told);
    assert_eq!((read.from.as_str(), read.text.as_str(), read.provider_message_id.as_str()), ("+34600111222", "П", "7"));
}

proptest! {
    #[test]
    fn no_call_breaks_it(rest in "(dlr)?", query in "(key=a-word-of-our-own%2B16&)?[a-z=&%+0-9]*", body in proptest::collection::vec(any::<u8>(), 0..32)) {
        let _ = call(&offline(), "POST", &format!("{CALLBACK}/{rest}?{query}"), &[], &body);
    }
}
