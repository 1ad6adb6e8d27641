//! What the provider calls: proof, statuses, messages, and what is none of them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use nuncio_channel::{Adapter, CallError, CallbackReply, Inbound, Media, ParsedCallback, ProviderEvent, ReceiptTarget, Wish};
use nuncio_channel_http::testing::{self, CALLBACK as BASE, NOW};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::FailureCode;
use nuncio_domain::{Channel, MessageId, MessageType, TenantId};
use proptest::prelude::*;
use serde_json::json;
use sha1::Sha1;
use url::form_urlencoded::Serializer;

use crate::support::{TOKEN, TWILIO};

/// Calls as the provider does, with this signature.
pub(crate) fn call(
    adapter: &Arc<dyn Adapter>,
    url: &str,
    parameters: &[(&str, &str)],
    signature: Option<&str>,
) -> Result<ParsedCallback, CallError> {
    let body = Serializer::new(String::new()).extend_pairs(parameters).finish();
    let method = if parameters.is_empty() { "GET" } else { "POST" };
    let headers: Vec<_> = signature.map(|text| ("x-twilio-signature", text)).into_iter().collect();
    testing::call(adapter, method, url, &headers, body.as_bytes())
}

fn sign(url: &str, parameters: &[(&str, &str)]) -> String {
    let mut sorted = parameters.to_vec();
    sorted.sort_unstable();
    let all: String = std::iter::once(url).chain(sorted.into_iter().flat_map(|(name, value)| [name, value])).collect();
    STANDARD.encode(Hmac::<Sha1>::new_from_slice(TOKEN.as_bytes()).unwrap().chain_update(all).finalize().into_bytes())
}

fn told(adapter: &Arc<dyn Adapter>, url: &str, parameters: &[(&str, &str)]) -> ParsedCallback {
    call(adapter, url, parameters, Some(&sign(url, parameters))).unwrap()
}

fn id() -> MessageId {
    TWILIO.message(MessageType::Text, None, json!({})).id
}

fn status_url() -> String {
    format!("{BASE}/status?m={}&a=1", id())
}

#[test]
fn statuses_find_their_attempt() {
    let adapter = TWILIO.offline(json!({}));
    let delivered = [("MessageSid", "SM1"), ("MessageStatus", "delivered"), ("AccountSid", "AC1"), ("Future", "x")];
    for _ in ["first", "duplicate"] {
        let ParsedCallback { events, reply } = told(&adapter, &status_url(), &delivered);
        let [ProviderEvent::Receipt { target, kind, at, raw }] = &events[..] else { panic!("{events:?}") };
        let ReceiptTarget::Attempt { tenant, message, attempt, .. } = target else { panic!("{target:?}") };
        assert_eq!((*tenant, *message, *attempt), (TenantId(3), id(), Some(1)));
        assert_eq!((kind, *at, raw.as_deref()), (&ReceiptKind::Delivered, NOW, Some("SM1 delivered")));
        assert_eq!(reply, CallbackReply::default());
    }
    // Without our name, by the provider's.
    let by_sid = told(&adapter, &format!("{BASE}/status"), &delivered);
    let [ProviderEvent::Receipt { target: ReceiptTarget::Reference { reference, .. }, .. }] = &by_sid.events[..] else {
        panic!("{by_sid:?}")
    };
    assert_eq!(reference, "SM1");
    assert_eq!(told(&adapter, &status_url(), &[("MessageStatus", "partially_delivered")]).events, [], "unknown ones are passed over");
    let failed = told(&adapter, &status_url(), &[("MessageSid", "SM1"), ("MessageStatus", "undelivered"), ("ErrorCode", "30004")]);
    let [ProviderEvent::Receipt { kind: ReceiptKind::Failed(failure), raw, .. }] = &failed.events[..] else { panic!("{failed:?}") };
    assert_eq!((failure.code, failure.provider_code.as_deref()), (FailureCode::BlockedByRecipient, Some("30004")));
    assert_eq!(raw.as_deref(), Some("SM1 undelivered 30004"));
}

#[test]
fn who_stopped_is_told_of() {
    let stopped = [("MessageSid", "SM1"), ("MessageStatus", "failed"), ("ErrorCode", "21610"), ("To", "+34600111333")];
    let told = told(&TWILIO.offline(json!({})), &status_url(), &stopped);
    let [ProviderEvent::Receipt { .. }, ProviderEvent::OptedOut(opted)] = &told.events[..] else { panic!("{told:?}") };
    assert_eq!((opted.from.as_str(), opted.channel), ("+34600111333", Channel::Sms));
}

#[test]
fn calls_tell_how_they_went() {
    let adapter = TWILIO.on(Channel::Voice).offline(json!({}));
    let kind = |parameters: &[(&str, &str)]| match told(&adapter, &status_url(), parameters).events.remove(0) {
        ProviderEvent::Receipt { kind, .. } => kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(&[("CallSid", "CA1"), ("CallStatus", "ringing")]), ReceiptKind::Sent);
    assert_eq!(kind(&[("CallSid", "CA1"), ("CallStatus", "completed"), ("CallDuration", "7")]), ReceiptKind::Delivered);
    let ReceiptKind::Failed(failure) = kind(&[("CallSid", "CA1"), ("CallStatus", "failed"), ("SipResponseCode", "404")]) else { panic!() };
    assert_eq!(failure.code, FailureCode::InvalidRecipient);
    // Who calls the number back is not kept waiting.
    assert_eq!(told(&adapter, BASE, &[("CallSid", "CA2"), ("CallStatus", "ringing")]).reply.body, "<Response><Reject/></Response>");
}

#[test]
fn callers_are_proved() {
    let adapter = TWILIO.offline(json!({}));
    let (url, parameters) = (status_url(), [("MessageSid", "SM1"), ("MessageStatus", "delivered")]);
    let right = sign(&url, &parameters);
    let other = url.replace("a=1", "a=2");
    for (url, parameters, signature) in [
        (&url, &parameters[..], None),
        (&url, &parameters[..], Some("")),
        (&url, &parameters[..], Some("no base64!")),
        (&url, &parameters[..], Some("AAAAAAAAAAAAAAAAAAAAAAAAAAA=")),
        (&other, &parameters[..], Some(&*right)),
        (&url, &[("MessageSid", "SM1"), ("MessageStatus", "failed")][..], Some(&*right)),
        (&url, &[][..], Some(&*right)),
    ] {
        let error = call(&adapter, url, parameters, signature).unwrap_err();
        let CallError::Unproved(text) = error else { panic!("{error:?}") };
        assert!(text.contains("X-Twilio-Signature") && !text.contains(TOKEN), "{text}");
    }
    // With the port, as some sign it.
    let with_port = url.replace("nuncio.example/", "nuncio.example:443/");
    assert!(call(&adapter, &url, &parameters, Some(&sign(&with_port, &parameters))).is_ok());
    // Proved, but nowhere that we told.
    let elsewhere = format!("{BASE}/other");
    let error = call(&adapter, &elsewhere, &parameters, Some(&sign(&elsewhere, &parameters))).unwrap_err();
    assert!(matches!(error, CallError::Malformed(_)));
}

fn read(parameters: &[(&str, &str)]) -> Vec<ProviderEvent> {
    let ParsedCallback { events, reply } = told(&TWILIO.offline(json!({})), BASE, parameters);
    assert_eq!((reply.content_type, &*reply.body), ("text/xml", "<Response/>"));
    events
}

#[test]
fn messages_come_with_media() {
    let events =
        read(&[("MessageSid", "SM9"), ("From", "+34600111222"), ("To", "+12125550100"), ("Body", "Olé & more"), ("NumMedia", "0")]);
    let [ProviderEvent::Inbound(inbound)] = &events[..] else { panic!("{events:?}") };
    let place = (TenantId(3), inbound.connection, Channel::Sms);
    let wanted = Inbound::text(place, "SM9".into(), "+34600111222".into(), "Olé & more".into(), NOW);
    assert_eq!(*inbound, Inbound { to: Some("+12125550100".into()), ..wanted });

    let events = read(&[
        ("MessageSid", "MM9"),
        ("From", "+34600111222"),
        ("Body", ""),
        ("NumMedia", "2"),
        ("MediaUrl0", "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM9/Media/ME1"),
        ("MediaContentType0", "image/jpeg"),
        ("MediaUrl1", "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM9/Media/ME2"),
        ("MediaContentType1", "text/vcard"),
    ]);
    let [ProviderEvent::Inbound(Inbound { message_type: MessageType::Image, media, .. })] = &events[..] else { panic!("{events:?}") };
    let reference = "https://api.twilio.com/2010-04-01/Accounts/AC1/Messages/MM9/Media/ME2".to_owned();
    let card = Media { reference, filename: None, content_type: "text/vcard".into(), content_id: None, bytes: None };
    assert_eq!((media.len(), &media[1]), (2, &card));
}

#[test]
fn what_twilio_has_answered_is_known() {
    for (opt_out_type, wanted) in
        [("STOP", Some(Wish::Stop)), ("START", Some(Wish::Start)), ("HELP", Some(Wish::Help)), ("PAUSE", None), ("", None)]
    {
        let events = read(&[("MessageSid", "SM9"), ("From", "+34600111222"), ("Body", "x"), ("OptOutType", opt_out_type)]);
        let [ProviderEvent::Inbound(inbound)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(inbound.answered, wanted, "{opt_out_type}");
    }
}

#[test]
fn messages_come_by_get_too() {
    let url = format!("{BASE}?MessageSid=SM9&From=%2B34600111222&Body=Hola+t%C3%BA");
    let told = told(&TWILIO.offline(json!({})), &url, &[]);
    let [ProviderEvent::Inbound(inbound)] = &told.events[..] else { panic!("{told:?}") };
    assert_eq!((inbound.from.as_str(), inbound.text.as_str()), ("+34600111222", "Hola tú"));
}

#[test]
fn what_is_no_message_is_malformed() {
    for parameters in [&[("Body", "x")][..], &[("MessageSid", "SM1")], &[("From", "+34600111222")]] {
        let error = call(&TWILIO.offline(json!({})), BASE, parameters, Some(&sign(BASE, parameters))).unwrap_err();
        assert!(matches!(error, CallError::Malformed(_)), "{error:?}");
    }
}

proptest! {
    #[test]
    fn no_call_breaks_it(
        names in proptest::collection::vec("(MessageSid|MessageStatus|NumMedia|MediaUrl0|From|ErrorCode|\\PC{0,8})", 0..6),
        values in proptest::collection::vec("\\PC{0,12}|[0-9]{0,20}", 6),
        end in "(/status)?(\\?m=\\PC{0,8}&a=[0-9]{0,20})?",
    ) {
        let parameters: Vec<_> = names.iter().map(String::as_str).zip(values.iter().map(String::as_str)).collect();
        let url = format!("{BASE}{end}");
        for channel in [Channel::Sms, Channel::Voice] {
            let _ = call(&TWILIO.on(channel).offline(json!({})), &url, &parameters, Some(&sign(&url, &parameters)));
        }
    }
}
