//! Reads callbacks: statuses, at the URL sent with the message, and inbound messages. Checks the signature first. Pure.
//!
//! Sources: <https://www.twilio.com/docs/usage/webhooks/webhooks-security>, <https://www.twilio.com/docs/messaging/guides/webhook-request>,
//! <https://www.twilio.com/docs/messaging/guides/track-outbound-message-status>

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use nuncio_channel::{CallError, CallbackReply, CallbackRequest, Inbound, Media, ParsedCallback, ProviderEvent};
use nuncio_domain::MessageType;
use nuncio_domain::address::sms_sender;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use sha1::Sha1;
use url::{Url, form_urlencoded};

use crate::config::Config;
use crate::map;

const SIGNATURE: &str = "x-twilio-signature";
/// Most media read of a message; Twilio's limit is ten.
const MEDIA: usize = 16;

pub(crate) fn read(config: &Config, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
    let posted = if call.method == "POST" { call.body } else { b"" };
    let parameters = Parameters::parse(posted);
    prove(config, call, &parameters)?;
    match call.rest {
        "status" => Ok(ParsedCallback { events: status(config, call, &parameters), ..ParsedCallback::default() }),
        "" if config.is_voice() => Ok(ParsedCallback { events: Vec::new(), reply: xml("<Response><Reject/></Response>") }),
        "" => {
            // With GET, the parameters are in the URL, which is signed as a whole.
            let parameters = if call.method == "POST" { parameters } else { Parameters::parse(call.query.as_bytes()) };
            Ok(ParsedCallback { events: inbound(config, call, &parameters)?, reply: xml("<Response/>") })
        }
        _ => Err(CallError::Malformed("the provider was not given this URL".to_owned())),
    }
}

/// TwiML: what the provider is to do next.
fn xml(body: &str) -> CallbackReply {
    CallbackReply { content_type: "text/xml", body: body.to_owned() }
}

struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Parameters<'a> {
    fn parse(form: &'a [u8]) -> Self {
        Self(form_urlencoded::parse(form).collect())
    }

    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// The signature covers the URL and the parameters, sorted by name.
fn prove(config: &Config, call: &CallbackRequest<'_>, parameters: &Parameters<'_>) -> Result<(), CallError> {
    let unproved = |what: &str| CallError::Unproved(what.to_owned());
    let header = call.headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    let header = header.ok_or_else(|| unproved("the header X-Twilio-Signature is missing"))?;
    let given = STANDARD.decode(header).map_err(|_| unproved("X-Twilio-Signature is not base64"))?;
    let mut sorted: Vec<_> = parameters.0.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let key = Hmac::<Sha1>::new_from_slice(config.auth_token.expose().as_bytes()).map_err(|_| unproved("there is no auth_token"))?;
    let matches = addresses(call.url).iter().any(|address| {
        let mac = key.clone().chain_update(address);
        let mac = sorted.iter().fold(mac, |mac, (name, value)| mac.chain_update(name.as_bytes()).chain_update(value.as_bytes()));
        // Compares in constant time.
        mac.verify_slice(&given).is_ok()
    });
    let why = "X-Twilio-Signature does not match; check that auth_token belongs to the calling account and that server.public_url is the URL called";
    if matches { Ok(()) } else { Err(unproved(why)) }
}

/// The URL as called, and the same with or without its port: providers differ in which one they sign.
fn addresses(url: &str) -> Vec<String> {
    let mut all = vec![url.to_owned()];
    let Some((scheme, host)) = url.split_once("://").map(|(scheme, rest)| (scheme, rest.split('/').next().unwrap_or_default())) else {
        return all;
    };
    let rest = &url[scheme.len() + 3 + host.len()..];
    match (Url::parse(url).ok().and_then(|url| url.port()), host.rsplit_once(':')) {
        (Some(_), Some((bare, _))) => all.push(format!("{scheme}://{bare}{rest}")),
        (None, None) => all.push(format!("{scheme}://{host}:{}{rest}", if scheme == "https" { 443 } else { 80 })),
        _ => {}
    }
    all
}

fn status(config: &Config, call: &CallbackRequest<'_>, parameters: &Parameters<'_>) -> Vec<ProviderEvent> {
    let voice = config.is_voice();
    let (sid, status) = if voice { ("CallSid", "CallStatus") } else { ("MessageSid", "MessageStatus") };
    let (sid, status, error) = (parameters.get(sid), parameters.get(status), parameters.get("ErrorCode"));
    let sip = parameters.get("SipResponseCode");
    let kind = if voice { map::call_status(status, sip) } else { map::message_status(status, error, parameters.get("ErrorMessage")) };
    let Some(kind) = kind else { return Vec::new() };
    let ours = Parameters::parse(call.query.as_bytes());
    let target = match (ours.get("m").parse(), ours.get("a").parse()) {
        (Ok(message), Ok(attempt)) => config.origin.attempt(message, attempt),
        _ => config.origin.reference(sid.to_owned()),
    };
    let opted_out = matches!(&kind, ReceiptKind::Failed(Failure { code: FailureCode::RecipientSuppressed, .. }));
    let raw = Some(format!("{sid} {status} {error}{sip}").trim_end().to_owned());
    let receipt = ProviderEvent::Receipt { target, kind, at: call.now, raw };
    let opted_out = opted_out.then(|| config.origin.opted_out(parameters.get("To").to_owned()));
    std::iter::once(receipt).chain(opted_out).collect()
}

fn inbound(config: &Config, call: &CallbackRequest<'_>, parameters: &Parameters<'_>) -> Result<Vec<ProviderEvent>, CallError> {
    let (sid, from) = (parameters.get("MessageSid"), sms_sender(parameters.get("From"), None));
    if sid.is_empty() || from.is_empty() {
        return Err(CallError::Malformed("MessageSid or From is missing".to_owned()));
    }
    let mut inbound = Inbound::text(config.origin, sid.to_owned(), from.clone(), parameters.get("Body").to_owned(), call.now);
    inbound.to = Some(sms_sender(parameters.get("To"), None)).filter(|to| !to.is_empty());
    inbound.profile_name = Some(parameters.get("ProfileName").to_owned()).filter(|name| !name.is_empty());
    let count = parameters.get("NumMedia").parse().unwrap_or(0).min(MEDIA);
    inbound.media.extend((0..count).filter_map(|number| media(parameters, number)));
    if let Some(first) = inbound.media.first() {
        inbound.message_type = match first.content_type.split('/').next() {
            Some("image") => MessageType::Image,
            Some("video") => MessageType::Video,
            Some("audio") => MessageType::Audio,
            _ => MessageType::Document,
        };
    }
    // The provider has confirmed the opt-out and would block our own confirmation: record the opt-out before the message.
    let opted_out = (parameters.get("OptOutType") == "STOP").then(|| config.origin.opted_out(from));
    Ok(opted_out.into_iter().chain([ProviderEvent::Inbound(inbound)]).collect())
}

fn media(parameters: &Parameters<'_>, number: usize) -> Option<Media> {
    let reference = parameters.get(&format!("MediaUrl{number}")).to_owned();
    let content_type = parameters.get(&format!("MediaContentType{number}")).to_owned();
    (!reference.is_empty()).then_some(Media { reference, filename: None, content_type, content_id: None, bytes: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_signed_or_not() {
        for (url, others) in [
            ("https://x.example/a?b=1:2", vec!["https://x.example:443/a?b=1:2"]),
            ("http://x.example/a", vec!["http://x.example:80/a"]),
            ("https://x.example:8443/a", vec!["https://x.example/a"]),
            ("nonsense", vec![]),
        ] {
            assert_eq!(addresses(url)[1..], others[..], "{url}");
        }
    }
}
