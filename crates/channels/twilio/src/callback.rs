//! What the provider calls: statuses, by the address that went out with the message, and messages. Proof first. Pure.
//!
//! Sources: <https://www.twilio.com/docs/usage/webhooks/webhooks-security>, <https://www.twilio.com/docs/messaging/guides/webhook-request>,
//! <https://www.twilio.com/docs/messaging/guides/track-outbound-message-status>

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use nuncio_channel::{Answer, Call, CallError, Inbound, Media, OptedOut, ProviderEvent, ReceiptTarget, Told};
use nuncio_domain::address::sms_sender;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, MessageType};
use sha1::Sha1;
use url::{Url, form_urlencoded};

use crate::config::Config;
use crate::map;

const SIGNATURE: &str = "x-twilio-signature";
/// Most media of a message; Twilio carries ten.
const MEDIA: usize = 16;

/// Reads one call.
pub(crate) fn read(config: &Config, call: &Call<'_>) -> Result<Told, CallError> {
    let posted = if call.method == "POST" { call.body } else { b"" };
    let parameters = Parameters(form_urlencoded::parse(posted).collect());
    prove(config, call, &parameters)?;
    match call.rest {
        "status" => Ok(Told { events: status(config, call, &parameters), ..Told::default() }),
        "" if config.channel == Channel::Voice => Ok(Told { events: Vec::new(), answer: xml("<Response><Reject/></Response>") }),
        "" => {
            // By GET everything stands in the address, which is signed as a whole.
            let queried = Parameters(form_urlencoded::parse(call.query.as_bytes()).collect());
            let parameters = if call.method == "POST" { parameters } else { queried };
            Ok(Told { events: inbound(config, call, &parameters)?, answer: xml("<Response/>") })
        }
        _ => Err(CallError::Malformed("the provider was given no such address".to_owned())),
    }
}

/// Nothing is to be done by the provider, or one thing.
fn xml(body: &str) -> Answer {
    Answer { content_type: "text/xml", body: body.to_owned() }
}

struct Parameters<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl Parameters<'_> {
    fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// The signature is of the address and the parameters, in the order of their names.
fn prove(config: &Config, call: &Call<'_>, parameters: &Parameters<'_>) -> Result<(), CallError> {
    let unproved = |what: &str| CallError::Unproved(what.to_owned());
    let header = call.headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    let header = header.ok_or_else(|| unproved("the header X-Twilio-Signature is missing"))?;
    let given = STANDARD.decode(header).map_err(|_| unproved("X-Twilio-Signature is not base64"))?;
    let mut sorted: Vec<_> = parameters.0.iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let key = Hmac::<Sha1>::new_from_slice(config.auth_token.expose().as_bytes()).map_err(|_| unproved("there is no auth_token"))?;
    let fits = addresses(call.url).iter().any(|address| {
        let mac = key.clone().chain_update(address);
        let mac = sorted.iter().fold(mac, |mac, (name, value)| mac.chain_update(name.as_bytes()).chain_update(value.as_bytes()));
        // Compares in constant time.
        mac.verify_slice(&given).is_ok()
    });
    let why =
        "X-Twilio-Signature does not fit; is auth_token that of the account that calls, and the server's public address the one called?";
    if fits { Ok(()) } else { Err(unproved(why)) }
}

/// The address as it was called, and with its port written or not: providers differ in which of them they sign.
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

fn status(config: &Config, call: &Call<'_>, parameters: &Parameters<'_>) -> Vec<ProviderEvent> {
    let voice = config.channel == Channel::Voice;
    let (sid, status) = if voice { ("CallSid", "CallStatus") } else { ("MessageSid", "MessageStatus") };
    let (sid, status, error) = (parameters.get(sid), parameters.get(status), parameters.get("ErrorCode"));
    let sip = parameters.get("SipResponseCode");
    let kind = if voice { map::call_status(status, sip) } else { map::message_status(status, error, parameters.get("ErrorMessage")) };
    let Some(kind) = kind else { return Vec::new() };
    let named = Parameters(form_urlencoded::parse(call.query.as_bytes()).collect());
    let (tenant, connection) = (config.tenant, config.connection);
    let target = match (named.get("m").parse(), named.get("a").parse()) {
        (Ok(message), Ok(attempt)) => ReceiptTarget::Attempt { tenant, message, attempt: Some(attempt), connection },
        _ => ReceiptTarget::Reference { tenant, connection, reference: sid.to_owned() },
    };
    let stopped = matches!(&kind, ReceiptKind::Failed(Failure { code: FailureCode::RecipientSuppressed, .. }));
    let raw = Some(format!("{sid} {status} {error}{sip}").trim_end().to_owned());
    let receipt = ProviderEvent::Receipt { target, kind, at: call.now, raw };
    let opted = stopped.then(|| ProviderEvent::OptedOut(opted_out(config, parameters.get("To").to_owned())));
    std::iter::once(receipt).chain(opted).collect()
}

/// Who told the provider to stop.
pub(crate) fn opted_out(config: &Config, from: String) -> OptedOut {
    OptedOut { tenant: config.tenant, connection: config.connection, channel: config.channel, from }
}

fn inbound(config: &Config, call: &Call<'_>, parameters: &Parameters<'_>) -> Result<Vec<ProviderEvent>, CallError> {
    let (sid, from) = (parameters.get("MessageSid"), sms_sender(parameters.get("From"), None));
    if sid.is_empty() || from.is_empty() {
        return Err(CallError::Malformed("MessageSid or From is missing".to_owned()));
    }
    let place = (config.tenant, config.connection, config.channel);
    let mut inbound = Inbound::text(place, sid.to_owned(), from.clone(), parameters.get("Body").to_owned(), call.now);
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
    // The provider has answered already, and will not let our own confirmation through: it must be known before the words are.
    let opted = (parameters.get("OptOutType") == "STOP").then(|| ProviderEvent::OptedOut(opted_out(config, from)));
    Ok(opted.into_iter().chain([ProviderEvent::Inbound(inbound)]).collect())
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
