//! The wire format against Twilio's own client library: it makes the requests that we make, writes the TwiML that we write, and signs
//! what we prove.

use nuncio_channel::contract::request;
use nuncio_channel::scripted::{Scripted, Seen};
use nuncio_channel::testing::{PeerProcess, python_peer};
use nuncio_channel_http::testing::CALLBACK as BASE;
use nuncio_domain::message::Message;
use nuncio_domain::{Channel, MessageType};
use serde_json::{Value, json};

use crate::callbacks::call;
use crate::support::{SID, TOKEN, TWILIO, taken};

fn library() -> PeerProcess {
    PeerProcess::start(&mut python_peer("twilio_library.py"))
}

async fn sent(channel: Channel, message: &Message, settings: Value) -> Seen {
    let api = Scripted::start(|_| taken()).await;
    let _ = TWILIO.on(channel).open(&api, settings).send(&request(message)).await;
    api.seen().remove(0)
}

/// Our request is theirs, but for where it goes.
fn is_theirs(ours: &Seen, theirs: &Value) {
    assert_eq!(theirs["method"], ours.method);
    assert_eq!(theirs["url"], format!("https://api.twilio.com{}", ours.path));
    assert_eq!(theirs["form"], json!(ours.parameters()));
    assert_eq!(theirs["authorization"], json!([SID, TOKEN]));
}

#[tokio::test]
#[ignore = "needs the peers' Python packages; ./test runs it"]
async fn heavy_requests_are_those_of_the_library() {
    let mut library = library();
    let text = TWILIO.message(MessageType::Text, Some("Olé {€} & more"), json!({}));
    let ours = sent(Channel::Sms, &text, json!({"from": "ACME", "messaging_service_sid": "MG1"})).await;
    let callback = ours.parameter("StatusCallback").unwrap();
    let theirs = library.ask(json!({"messages": {
        "to": "+34600111333", "from_": "ACME", "messaging_service_sid": "MG1", "body": "Olé {€} & more", "status_callback": callback,
        "validity_period": 3_600
    }}));
    is_theirs(&ours, &theirs);

    let image = TWILIO.message(MessageType::Image, Some("See"), json!({"mediaUrl": "https://x.example/a.png"}));
    let ours = sent(Channel::Sms, &image, json!({"mms": true})).await;
    let theirs = library.ask(json!({"messages": {
        "to": "+34600111333", "from_": "+34600111222", "body": "See", "media_url": ["https://x.example/a.png"],
        "status_callback": ours.parameter("StatusCallback"), "validity_period": 3_600
    }}));
    is_theirs(&ours, &theirs);

    let call = TWILIO.on(Channel::Voice).message(MessageType::Text, Some("Hola"), json!({}));
    let ours = sent(Channel::Voice, &call, json!({})).await;
    let theirs = library.ask(json!({"calls": {
        "to": "+34600111333", "from_": "+34600111222", "twiml": ours.parameter("Twiml"), "status_callback": ours.parameter("StatusCallback"),
        "status_callback_event": ["ringing", "answered", "completed"], "timeout": 60
    }}));
    is_theirs(&ours, &theirs);
}

#[tokio::test]
#[ignore = "needs the peers' Python packages; ./test runs it"]
async fn heavy_twiml_is_that_of_the_library() {
    let mut library = library();
    for (text, media, settings, theirs) in [
        ("Tea & <cake> \"now\" 'n' €\n\u{1F600}", None, json!({}), json!({"language": "es-ES"})),
        ("Hola", None, json!({"repeat": 3, "voice": "Polly.Lucia"}), json!({"language": "es-ES", "voice": "Polly.Lucia"})),
        ("Listen:", Some("https://x.example/a.mp3?b=1&c=2"), json!({"repeat": 2}), json!({"language": "es-ES"})),
    ] {
        let message_type = if media.is_some() { MessageType::Audio } else { MessageType::Text };
        let content = media.map_or_else(|| json!({}), |url| json!({"mediaUrl": url}));
        let ours = sent(Channel::Voice, &TWILIO.on(Channel::Voice).message(message_type, Some(text), content), settings.clone()).await;
        let ours = library.ask(json!({"canonical": ours.parameter("Twiml").unwrap()}));
        let mut ask = theirs;
        ask["say"] = json!(text);
        ask["repeat"] = settings.get("repeat").cloned().unwrap_or(json!(1));
        if let Some(url) = media {
            ask["play"] = json!(url);
        }
        assert_eq!(ours["canonical"], library.ask(json!({"twiml": ask}))["canonical"], "{text}");
    }
}

#[test]
#[ignore = "needs the peers' Python packages; ./test runs it"]
fn heavy_what_the_library_signs_is_proved() {
    let mut library = library();
    let adapter = TWILIO.offline(json!({}));
    let status = format!("{BASE}/status?m=msg_x&a=0");
    let got = format!("{BASE}?MessageSid=SM9&From=%2B34600111222&Body=Hola+t%C3%BA");
    for (url, parameters) in [
        (status.as_str(), &[("MessageStatus", "delivered"), ("MessageSid", "SM1"), ("ErrorCode", ""), ("Apple", "ünï & co")][..]),
        (
            BASE,
            &[("From", "+34600111222"), ("MessageSid", "SM1"), ("Body", "Olé €\nmore"), ("NumMedia", "0"), ("a", "lower"), ("Z", "upper")],
        ),
        (got.as_str(), &[]),
    ] {
        let named: Value =
            parameters.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect::<serde_json::Map<_, _>>().into();
        let signed = library.ask(json!({"sign": {"url": url, "params": named}}));
        let signature = signed["signature"].as_str().unwrap();
        let told = call(&adapter, url, parameters, Some(signature)).unwrap_or_else(|error| panic!("{url}: {error}"));
        assert_eq!(told.events.len(), 1, "{url}");
        assert!(call(&adapter, &url.replace("cnx_1", "cnx_2"), parameters, Some(signature)).is_err());
    }
}
