//! Reads callbacks: statuses, at the URL sent with the message, and inbound messages. Checks the signature first. Pure.
//!
//! Sources: <https://www.twilio.com/docs/usage/webhooks/webhooks-security>, <https://www.twilio.com/docs/messaging/guides/webhook-request>,
//! <https://www.twilio.com/docs/messaging/guides/track-outbound-message-status>

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use nuncio_channel::{CallError, CallbackReply, CallbackRequest, ParsedCallback, ProviderEvent, Wish, sms};
use nuncio_channel_http::{Parameters, mac};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use sha1::Sha1;

use crate::config::Config;
use crate::{map, media, voice};

const SIGNATURE: &str = "x-twilio-signature";

pub(crate) fn read(config: &Config, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
    let posted = call.method == "POST";
    let parameters = Parameters::parse(if posted { call.body } else { b"" });
    prove(config, call, &parameters)?;
    match call.rest {
        "status" => Ok(status(config, call, &parameters).into()),
        "" if config.voice.is_some() => Ok(ParsedCallback { events: Vec::new(), reply: xml(voice::REJECT) }),
        "" => {
            // With GET, the parameters are in the URL, which is signed as a whole.
            let parameters = if posted { parameters } else { Parameters::parse(call.query.as_bytes()) };
            Ok(ParsedCallback { events: inbound(config, call, &parameters)?, reply: xml("<Response/>") })
        }
        _ => Err(CallError::malformed("the provider was not given this URL")),
    }
}

/// TwiML: what the provider is to do next.
fn xml(body: &str) -> CallbackReply {
    CallbackReply { content_type: "text/xml", body: body.to_owned() }
}

/// The signature covers the URL and the parameters, sorted by name.
fn prove(config: &Config, call: &CallbackRequest<'_>, parameters: &Parameters<'_>) -> Result<(), CallError> {
    let header = call.header(SIGNATURE).ok_or_else(|| CallError::unproved("the header X-Twilio-Signature is missing"))?;
    let given = STANDARD.decode(header).map_err(|_| CallError::unproved("X-Twilio-Signature is not base64"))?;
    let sorted = parameters.sorted();
    let matches = |address: &String| {
        let mac: Hmac<Sha1> = mac(config.auth_token.expose(), address.as_bytes());
        let mac = sorted.iter().fold(mac, |mac, (name, value)| mac.chain_update(name).chain_update(value));
        mac.verify_slice(&given).is_ok()
    };
    let why = "X-Twilio-Signature does not match; check that auth_token belongs to the calling account and that server.public_url is the URL called";
    addresses(call.url).iter().any(matches).then_some(()).ok_or_else(|| CallError::unproved(why))
}

/// The URL as called, and the same with or without its port: providers differ in which one they sign.
fn addresses(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return vec![url.to_owned()] };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let other = match host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((bare, _)) => bare.to_owned(),
        None => format!("{host}:{}", if scheme == "https" { 443 } else { 80 }),
    };
    vec![url.to_owned(), format!("{scheme}://{other}{path}")]
}

fn status(config: &Config, call: &CallbackRequest<'_>, parameters: &Parameters<'_>) -> Vec<ProviderEvent> {
    let is_voice = config.voice.is_some();
    let (sid, status) = if is_voice { ("CallSid", "CallStatus") } else { ("MessageSid", "MessageStatus") };
    let [sid, status, error, sip, text] = [sid, status, "ErrorCode", "SipResponseCode", "ErrorMessage"].map(|name| parameters.text(name));
    let kind = if is_voice { voice::status(&status, &sip) } else { map::message_status(&status, &error, &text) };
    let Some(kind) = kind else { return Vec::new() };
    let origin = config.endpoint.origin;
    let target = match Parameters::parse(call.query.as_bytes()).attempt() {
        Some((message, attempt)) => origin.attempt(message, attempt),
        None => origin.reference(sid.to_string()),
    };
    let opted_out = matches!(&kind, ReceiptKind::Failed(Failure { code: FailureCode::RecipientSuppressed, .. }));
    let raw = Some(format!("{sid} {status} {error}{sip}").trim_end().to_owned());
    let receipt = ProviderEvent::Receipt { target, kind, at: call.now, raw };
    let opted_out = opted_out.then(|| origin.opted_out(parameters.text("To").into_owned(), None));
    std::iter::once(receipt).chain(opted_out).collect()
}

fn inbound(config: &Config, call: &CallbackRequest<'_>, parameters: &Parameters<'_>) -> Result<Vec<ProviderEvent>, CallError> {
    let origin = config.endpoint.origin;
    let [from, to, text] = ["From", "To", "Body"].map(|name| parameters.text(name));
    let inbound = parameters.some("MessageSid").and_then(|sid| sms::inbound(origin, sid, [&from, &to], text.into_owned(), call.now));
    let mut inbound = inbound.ok_or_else(|| CallError::malformed("MessageSid or From is missing"))?;
    inbound.profile_name = parameters.some("ProfileName");
    media::read(parameters, &mut inbound);
    inbound.answered = wish(&parameters.text("OptOutType"));
    Ok(vec![ProviderEvent::Inbound(inbound)])
}

/// What a person asked for by a word of Twilio's or the account's, to which Twilio has replied:
/// <https://www.twilio.com/docs/messaging/tutorials/advanced-opt-out>.
fn wish(opt_out_type: &str) -> Option<Wish> {
    match opt_out_type {
        "STOP" => Some(Wish::Stop),
        "START" => Some(Wish::Start),
        "HELP" => Some(Wish::Help),
        _ => None,
    }
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
            ("https://[::1]/a", vec!["https://[::1]:443/a"]),
            ("nonsense", vec![]),
        ] {
            assert_eq!(addresses(url)[1..], others[..], "{url}");
        }
    }
}
