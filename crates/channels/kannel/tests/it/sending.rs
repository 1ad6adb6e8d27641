//! What the gateway is sent.

use std::time::Duration;

use nuncio_channel::contract::request;
use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_channel::{Outcome, SendRequest};
use nuncio_domain::MessageType;
use nuncio_domain::message::{Content, FailureCode, Message};
use serde_json::{Value, json};

use crate::support::{GATEWAY, PASSWORD, identity};

fn draft(text: &str) -> Message {
    GATEWAY.message(MessageType::Text, Some(text), json!({}))
}

async fn sent(message: &Message, settings: Value) -> Seen {
    let gateway = Scripted::start(|_| Reply::text(202, "0: Accepted for delivery")).await;
    let outcome = GATEWAY.open(&gateway, settings).send(&request(message)).await;
    assert_eq!(outcome, Outcome::Accepted { refs: Vec::new(), cost: None });
    gateway.seen().remove(0)
}

#[tokio::test]
async fn what_get_says() {
    let mut message = draft("Olé {€} & more");
    let seen = sent(&message, json!({"smsc": "FAKE", "account": "acme"})).await;
    assert_eq!((seen.method.as_str(), seen.path.split_once('?').unwrap().0), ("GET", "/cgi-bin/sendsms"));
    for (name, value) in [
        ("username", "tester"),
        ("password", PASSWORD),
        ("from", "+34600111222"),
        ("to", "+34600111222"),
        ("text", "Olé {€} & more"),
        ("charset", "UTF-8"),
        ("coding", "0"),
        ("validity", "60"),
        ("smsc", "FAKE"),
        ("account", "acme"),
        ("dlr-mask", "31"),
    ] {
        assert_eq!(seen.parameter(name).as_deref(), Some(value), "{name}");
    }
    let address = seen.parameter("dlr-url").unwrap();
    let (start, end) = ("https://nuncio.example/providers/kannel/cnx_", "&type=%d&answer=%A&time=%T");
    assert!(address.starts_with(start) && address.ends_with(end), "{address}");
    assert!(address.contains(&format!("/dlr?m={}&a=0&k=", message.id)), "{address}");

    message.request_mut().text = Some("Привет".to_owned());
    message.from.clear();
    let seen = sent(&message, json!({"numbers": "digits", "receipts": "none"})).await;
    assert_eq!(seen.parameter("coding").as_deref(), Some("2"));
    assert_eq!((seen.parameter("to").as_deref(), seen.parameter("from")), (Some("34600111222"), None), "the gateway knows its sender");
    assert_eq!((seen.parameter("dlr-url"), seen.parameter("dlr-mask")), (None, None));
    let seen = sent(&message, json!({"from": "ACME", "receipts": "final"})).await;
    assert_eq!((seen.parameter("from").as_deref(), seen.parameter("dlr-mask").as_deref()), (Some("ACME"), Some("19")));
}

#[tokio::test]
async fn what_post_says() {
    let message = draft("Olé {€}\nmore");
    let seen = sent(&message, json!({"method": "post", "smsc": "FAKE"})).await;
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/cgi-bin/sendsms"), "no secret in the address");
    assert_eq!(seen.body, "Olé {€}\nmore".as_bytes());
    for (name, value) in [
        ("content-type", "text/plain; charset=UTF-8"),
        ("x-kannel-username", "tester"),
        ("x-kannel-password", PASSWORD),
        ("x-kannel-from", "+34600111222"),
        ("x-kannel-to", "+34600111222"),
        ("x-kannel-coding", "0"),
        ("x-kannel-validity", "60"),
        ("x-kannel-smsc", "FAKE"),
        ("x-kannel-dlr-mask", "31"),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert!(identity(&seen).unwrap().ends_with("&type=%d&answer=%A&time=%T"));
}

#[tokio::test]
async fn each_attempt_has_an_address_of_its_own() {
    let gateway = Scripted::start(|_| Reply::text(202, "0: Accepted for delivery")).await;
    let (adapter, message) = (GATEWAY.open(&gateway, json!({})), draft("x"));
    for attempt in [0, 1] {
        let _ = adapter.send(&SendRequest { attempt, ..request(&message) }).await;
    }
    let seen: Vec<_> = gateway.seen().iter().filter_map(identity).collect();
    assert!(seen[0].contains("&a=0&") && seen[1].contains("&a=1&"), "{seen:?}");
    let proof = |address: &str| address.split_once("&k=").unwrap().1.to_owned();
    assert_ne!(proof(&seen[0]), proof(&seen[1]));
}

#[tokio::test]
async fn other_types_go_in_words_or_not_at_all() {
    let mut message = draft("Coming?");
    message.message_type = MessageType::Buttons;
    let buttons = json!({"buttons": [{"id": "y", "title": "Yes"}, {"id": "n", "title": "No"}]});
    message.request_mut().content = Some(Box::new(serde_json::from_value::<Content>(buttons).unwrap()));
    let seen = sent(&message, json!({})).await;
    assert_eq!(seen.parameter("text").as_deref(), Some("Coming?\n1. Yes\n2. No"));
    for refused in [MessageType::Sticker, MessageType::Reaction] {
        let gateway = Scripted::start(|_| Reply::text(202, "")).await;
        message.message_type = refused;
        let outcome = GATEWAY.open(&gateway, json!({})).send(&request(&message)).await;
        let Outcome::Rejected { failure } = outcome else { panic!("{outcome:?}") };
        assert_eq!(failure.code, FailureCode::ContentRejected);
        assert_eq!(gateway.seen(), []);
    }
}

#[tokio::test]
async fn silence_is_an_unknown_outcome() {
    let gateway = Scripted::start(|_| Reply::Silence).await;
    let adapter = GATEWAY.open(&gateway, json!({"timeout_seconds": 1}));
    let began = std::time::Instant::now();
    let outcome = adapter.send(&request(&draft("x"))).await;
    let Outcome::Unknown { failure, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.code, FailureCode::UnknownOutcome);
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_check_says_where_to_call_back() {
    let gateway = Scripted::start(|_| Reply::text(400, "Missing receiver number, rejected")).await;
    let found = GATEWAY.open(&gateway, json!({})).check().await.unwrap();
    assert!(found.contains("https://nuncio.example/providers/kannel/cnx_"), "{found}");
    for (status, text, todo) in [
        (403, "Authorization failed for sendsms", "check username and password"),
        (404, "Unknown request.", "check url"),
        (202, "0: Accepted for delivery", "check url"),
        (200, "<html>", "check url"),
        (500, "", "look into the gateway's log"),
    ] {
        let gateway = Scripted::start(move |_| Reply::text(status, text)).await;
        let wrong = GATEWAY.open(&gateway, json!({})).check().await.unwrap_err();
        assert!(wrong.contains(todo), "{wrong}");
    }
}
