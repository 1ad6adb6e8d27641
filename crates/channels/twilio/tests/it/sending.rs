//! What the API is sent, and what it is asked for.

use std::sync::Arc;

use nuncio_channel::contract::request;
use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_channel::testing::{Pushed, services, services_with};
use nuncio_channel::{OptedOut, Outcome, ProviderEvent, SendRequest};
use nuncio_domain::message::{FailureCode, Message};
use nuncio_domain::{Channel, MessageType};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Value, json};

use crate::support::{SID, TWILIO, refusal, taken};

async fn sent(channel: Channel, message: &Message, settings: Value) -> Seen {
    let api = Scripted::start(|_| taken()).await;
    let outcome = TWILIO.on(channel).open(&api, settings).send(&request(message)).await;
    assert_eq!(outcome, Outcome::Accepted { refs: vec!["SM00000000000000000000000000000001".into()], cost: None });
    api.seen().remove(0)
}

async fn refused(message: &Message, settings: Value) -> String {
    let api = Scripted::start(|_| taken()).await;
    let channel = message.state.route.channel;
    let outcome = TWILIO.on(channel).open(&api, settings).send(&request(message)).await;
    let Outcome::Rejected { failure } = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.code, api.seen().len()), (FailureCode::ContentRejected, 0));
    failure.message
}

#[tokio::test]
async fn a_text() {
    let text = TWILIO.message(MessageType::Text, Some("Olé {€} & more"), json!({}));
    let seen = sent(Channel::Sms, &text, json!({})).await;
    assert_eq!((seen.method.as_str(), &*seen.path), ("POST", &*format!("/2010-04-01/Accounts/{SID}/Messages.json")));
    assert_eq!(seen.header("content-type"), Some("application/x-www-form-urlencoded"));
    let callback = seen.parameter("StatusCallback").unwrap();
    assert!(callback.starts_with("https://nuncio.example/providers/twilio/cnx_"), "{callback}");
    assert!(callback.ends_with(&format!("/status?m={}&a=0", text.id)), "{callback}");
    let expected = [
        ("Body", "Olé {€} & more"),
        ("From", "+34600111222"),
        ("StatusCallback", &callback),
        ("To", "+34600111333"),
        ("ValidityPeriod", "3600"),
    ];
    assert_eq!(seen.parameters(), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));

    let seen = sent(Channel::Sms, &text, json!({"messaging_service_sid": "MG1"})).await;
    assert_eq!((seen.parameter("From"), seen.parameter("MessagingServiceSid").as_deref()), (None, Some("MG1")));
    let seen = sent(Channel::SmsOneway, &text, json!({"messaging_service_sid": "MG1", "from": "ACME"})).await;
    assert_eq!((seen.parameter("From").as_deref(), seen.parameter("MessagingServiceSid").as_deref()), (Some("ACME"), Some("MG1")));
    let mut long = text;
    long.state.expires_at = long.state.updated_at.plus(std::time::Duration::from_secs(36_000));
    assert_eq!(sent(Channel::Sms, &long, json!({})).await.parameter("ValidityPeriod"), None, "it is kept no longer in any case");
}

#[tokio::test]
async fn media_go_as_links_or_as_mms() {
    let image = TWILIO.message(MessageType::Image, Some("See"), json!({"mediaUrl": "https://x.example/a.png"}));
    let seen = sent(Channel::Sms, &image, json!({})).await;
    assert_eq!((seen.parameter("Body").as_deref(), seen.parameter("MediaUrl")), (Some("See\nhttps://x.example/a.png"), None));
    let seen = sent(Channel::Sms, &image, json!({"mms": true})).await;
    assert_eq!((seen.parameter("Body").as_deref(), seen.parameter("MediaUrl").as_deref()), (Some("See"), Some("https://x.example/a.png")));
    let buttons = json!({"buttons": [{"id": "y", "title": "Yes"}, {"id": "n", "title": "No"}]});
    let buttons = TWILIO.message(MessageType::Buttons, Some("Coming?"), buttons);
    assert_eq!(sent(Channel::Sms, &buttons, json!({"mms": true})).await.parameter("Body").as_deref(), Some("Coming?\n1. Yes\n2. No"));
    refused(&TWILIO.message(MessageType::Sticker, None, json!({})), json!({})).await;
}

#[tokio::test]
async fn a_call() {
    let text = TWILIO.on(Channel::Voice).message(MessageType::Text, Some("Tea & <cake>"), json!({}));
    let seen = sent(Channel::Voice, &text, json!({"ring_seconds": 20})).await;
    assert_eq!(seen.path, format!("/2010-04-01/Accounts/{SID}/Calls.json"));
    let twiml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response><Say language=\"es-ES\">Tea &amp; &lt;cake&gt;</Say></Response>";
    let callback = seen.parameter("StatusCallback").unwrap();
    let expected = [
        ("From", "+34600111222"),
        ("StatusCallback", &callback),
        ("StatusCallbackEvent", "answered"),
        ("StatusCallbackEvent", "completed"),
        ("StatusCallbackEvent", "ringing"),
        ("Timeout", "20"),
        ("To", "+34600111333"),
        ("Twiml", twiml),
    ];
    assert_eq!(seen.parameters(), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn what_a_call_says() {
    let body = |seen: &Seen| {
        let twiml = seen.parameter("Twiml").unwrap();
        twiml.split_once("<Response>").unwrap().1.strip_suffix("</Response>").unwrap().to_owned()
    };
    let mut text = TWILIO.on(Channel::Voice).message(MessageType::Text, Some("Hola"), json!({}));
    text.request_mut().voice_language = Some("ca-ES".to_owned());
    let seen = sent(Channel::Voice, &text, json!({"voice": "Polly.\"Arlet\"", "repeat": 2})).await;
    let once = "<Say language=\"ca-ES\" voice=\"Polly.&quot;Arlet&quot;\">Hola</Say>";
    assert_eq!(body(&seen), format!("{once}<Pause length=\"1\"/>{once}"));
    let audio = TWILIO.on(Channel::Voice).message(MessageType::Audio, None, json!({"mediaUrl": "https://x.example/a.mp3?b=1&c=2"}));
    assert_eq!(body(&sent(Channel::Voice, &audio, json!({})).await), "<Play>https://x.example/a.mp3?b=1&amp;c=2</Play>");
    let place = json!({"latitude": 40.4, "longitude": -3.7, "locationName": "Prado", "locationAddress": "Madrid"});
    let place = TWILIO.on(Channel::Voice).message(MessageType::Location, Some("Here:"), place);
    assert_eq!(body(&sent(Channel::Voice, &place, json!({})).await), "<Say language=\"es-ES\">Here:\nPrado\nMadrid</Say>");

    let long = TWILIO.on(Channel::Voice).message(MessageType::Text, Some(&"a".repeat(3_999)), json!({}));
    assert!(refused(&long, json!({})).await.contains("the provider allows 4000"));
    assert!(
        refused(&TWILIO.on(Channel::Voice).message(MessageType::Text, Some(" "), json!({})), json!({})).await.contains("nothing to say")
    );
    refused(&TWILIO.on(Channel::Voice).message(MessageType::Image, Some("x"), json!({})), json!({})).await;
}

#[tokio::test]
async fn each_attempt_has_an_address_of_its_own() {
    let api = Scripted::start(|_| taken()).await;
    let (adapter, text) = (TWILIO.open(&api, json!({})), TWILIO.message(MessageType::Text, Some("x"), json!({})));
    for attempt in [0, 1] {
        let _ = adapter.send(&SendRequest { attempt, ..request(&text) }).await;
    }
    let seen: Vec<_> = api.seen().iter().filter_map(|seen| seen.parameter("StatusCallback")).collect();
    assert!(seen[0].ends_with("&a=0") && seen[1].ends_with("&a=1"), "{seen:?}");
}

#[tokio::test]
async fn who_told_the_provider_to_stop_is_told_of() {
    let api = Scripted::start(|_| refusal(400, 21_610, "Attempt to send to unsubscribed recipient")).await;
    let sink = Arc::new(Pushed::default());
    let account = TWILIO.account(&api.base(), json!({}));
    let adapter = TWILIO.factory().open(&account, &services_with(&sink)).unwrap();
    let outcome = adapter.send(&request(&TWILIO.message(MessageType::Text, Some("x"), json!({})))).await;
    let Outcome::Rejected { failure } = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.code, failure.provider_code.as_deref()), (FailureCode::RecipientSuppressed, Some("21610")));
    let opted = OptedOut { tenant: account.tenant, connection: account.id, channel: Channel::Sms, from: "+34600111333".into(), at: None };
    assert_eq!(sink.events(), [ProviderEvent::OptedOut(opted)]);
}

#[tokio::test]
async fn silence_is_an_unknown_outcome() {
    let api = Scripted::start(|_| Reply::Silence).await;
    let text = TWILIO.message(MessageType::Text, Some("x"), json!({}));
    let outcome = TWILIO.open(&api, json!({"timeout_seconds": 1})).send(&request(&text)).await;
    let Outcome::Unknown { failure, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.code, FailureCode::UnknownOutcome);
}

#[tokio::test]
async fn a_check_tells_what_was_found() {
    let api = Scripted::start(|_| Reply::json(200, &json!({"friendly_name": "Acme", "status": "active", "sid": SID}))).await;
    let found = TWILIO.open(&api, json!({})).check().await.unwrap();
    assert!(found.contains("Acme (active)") && found.contains("https://nuncio.example/providers/twilio/cnx_"), "{found}");
    assert_eq!(api.seen()[0].path, format!("/2010-04-01/Accounts/{SID}.json"));
    let api = Scripted::start(|_| Reply::json(200, &json!({"friendly_name": "Acme", "status": "suspended"}))).await;
    let wrong = TWILIO.open(&api, json!({})).check().await.unwrap_err();
    assert!(wrong.contains("suspended") && wrong.contains("What to do"), "{wrong}");
}

#[tokio::test]
async fn media_are_fetched_from_where_they_lie() {
    let cdn = Scripted::start(|_| Reply::text(200, "the file").with("X-From", "cdn")).await;
    let target = format!("{}/file", cdn.base());
    let api = Scripted::start(move |seen| match &*seen.path {
        "/Media/ME1" => Reply::text(307, "").with("Location", &target),
        "/Media/ME2" => Reply::text(200, "a file of the API itself"),
        _ => refusal(404, 20_404, "The requested resource was not found"),
    })
    .await;
    let adapter = TWILIO.open(&api, json!({}));
    let file = adapter.fetch_media(&format!("{}/Media/ME1", api.base()), 100).await.unwrap();
    assert_eq!((file.filename.as_str(), file.content_type.as_str(), &*file.bytes), ("ME1", "text/plain", &b"the file"[..]));
    assert!(api.seen()[0].header("authorization").is_some_and(|login| login.starts_with("Basic ")));
    assert_eq!(cdn.seen()[0].header("authorization"), None, "the token stays with the API");
    let file = adapter.fetch_media(&format!("{}/Media/ME2", api.base()), 100).await.unwrap();
    assert_eq!(file.bytes, b"a file of the API itself");
    let elsewhere = adapter.fetch_media(&format!("{}/x", cdn.base()), 100).await.unwrap();
    assert_eq!((elsewhere.filename.as_str(), cdn.seen()[1].header("authorization")), ("x", None));
    for (path, most, why) in [("Media/ME2", 10, "larger than 10 bytes"), ("Media/ME1", 3, "longer than 3 bytes"), ("x", 10, "404")] {
        let failure = adapter.fetch_media(&format!("{}/{path}", api.base()), most).await.unwrap_err();
        assert!(failure.code == FailureCode::AttachmentUnavailable && failure.message.contains(why), "{failure:?}");
    }
}

#[tokio::test]
async fn a_trusted_account_leads_to_its_api_only() {
    let inside = Scripted::start(|_| Reply::text(200, "of the house")).await;
    let file = format!("{}/file", inside.base());
    let target = file.clone();
    let api = Scripted::start(move |seen| match &*seen.path {
        "/Media/ME1" => Reply::text(307, "").with("Location", &target),
        _ => Reply::text(200, "a file of the API itself"),
    })
    .await;
    let net = Network::new(GuardPolicy { allow_http: true, ..GuardPolicy::default() }).unwrap();
    let adapter = nuncio_channel_twilio::factory(net).open(&TWILIO.account(&api.base(), json!({})), &services()).unwrap();
    for reference in [format!("{}/Media/ME1", api.base()), file] {
        let failure = adapter.fetch_media(&reference, 100).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::AttachmentUnavailable, "{reference}");
    }
    assert!(inside.seen().is_empty());
    assert!(adapter.fetch_media(&format!("{}/Media/ME2", api.base()), 100).await.is_ok());
}
