//! Calls: their settings, requests, scripts (TwiML) and statuses. Pure.
//!
//! Sources: <https://www.twilio.com/docs/voice/api/call-resource#create-a-call-resource>, <https://www.twilio.com/docs/voice/twiml/say>

use nuncio_channel::{Field, FieldKind, SendRequest, Settings};
use nuncio_channel_http::Endpoint;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode, Message};
use nuncio_domain::{MessageType, speech};
use url::form_urlencoded::Serializer;

use crate::map::reported;

/// Message types that a call can carry.
pub(crate) static SPOKEN: &[MessageType] = &[MessageType::Text, MessageType::Audio, MessageType::Location, MessageType::Template];
/// Longest TwiML in a request, in characters.
const TWIML: usize = 4_000;
/// The reply to a call from outside: who calls the number back is not kept waiting.
pub(crate) const REJECT: &str = "<Response><Reject/></Response>";

pub(crate) const VOICE: Field =
    Field::optional("voice", FieldKind::Text, "voice of calls, such as Polly.Lucia; default the provider's for the language");
pub(crate) const REPEAT: Field = Field::optional("repeat", FieldKind::Integer(1, 10), "how many times a call says the message; default 1");
pub(crate) const RING_SECONDS: Field =
    Field::optional("ring_seconds", FieldKind::Integer(5, 600), "how long a call rings before it counts as not answered; default 60");

/// Settings of calls.
#[derive(Debug)]
pub(crate) struct Voice {
    /// The provider's name of the voice.
    name: Option<String>,
    repeat: usize,
    ring_seconds: u32,
}

impl Voice {
    pub(crate) fn read(settings: &Settings<'_>) -> Self {
        Self { name: settings.string("voice"), repeat: settings.number("repeat", 1), ring_seconds: settings.number("ring_seconds", 60) }
    }

    /// The form that makes a call, by `from` or the sender's own number.
    pub(crate) fn form(&self, endpoint: &Endpoint, from: Option<&str>, request: &SendRequest<'_>) -> Result<String, Failure> {
        let message = request.message;
        let mut form = Serializer::new(String::new());
        form.append_pair("To", &message.to);
        form.append_pair("StatusCallback", &endpoint.attempt_url("status", message.id, request.attempt));
        form.append_pair("From", from.unwrap_or(&message.from));
        form.append_pair("Twiml", &twiml(self, message)?);
        form.append_pair("Timeout", &self.ring_seconds.to_string());
        form.extend_pairs(["ringing", "answered", "completed"].map(|event| ("StatusCallbackEvent", event)));
        Ok(form.finish())
    }
}

/// Maps the status of a call and the SIP response of the called side (RFC 3261 §21) to a receipt; `None` for an unknown status.
pub(crate) fn status(status: &str, sip: &str) -> Option<ReceiptKind> {
    let failed = |code, what| Some(ReceiptKind::Failed(reported(code, status, what)));
    match (status, sip) {
        ("queued" | "initiated" | "ringing" | "in-progress", _) => Some(ReceiptKind::Sent),
        ("completed", _) => Some(ReceiptKind::Delivered),
        ("busy", _) => failed(FailureCode::Undeliverable, "the line was busy"),
        ("no-answer", _) => failed(FailureCode::Undeliverable, "there was no answer"),
        ("canceled", _) => failed(FailureCode::ProviderRejected, "the call was cancelled at the provider"),
        ("failed", "404" | "410" | "484" | "604") => failed(FailureCode::InvalidRecipient, "the number does not exist"),
        ("failed", _) => failed(FailureCode::Undeliverable, "the call could not be connected"),
        _ => None,
    }
}

/// The script of a call.
fn twiml(voice: &Voice, message: &Message) -> Result<String, Failure> {
    let refused = |what: String| Err(Failure::own(FailureCode::ContentRejected, what));
    if !SPOKEN.contains(&message.message_type) {
        return refused(format!("a call cannot carry a message of type {}", message.message_type));
    }
    let asked = &message.request;
    let words = speech::words(message.message_type, asked.text.as_deref(), asked.content.as_deref());
    let played = asked.content.as_ref().filter(|_| message.message_type == MessageType::Audio).and_then(|c| c.media_url.as_deref());
    let mut said = String::new();
    if !words.trim().is_empty() {
        let language = speech::language(asked.voice_language.as_deref(), &message.to);
        let name = voice.name.as_ref().map_or_else(String::new, |name| format!(" voice=\"{}\"", escaped(name)));
        said.push_str(&format!("<Say language=\"{}\"{name}>{}</Say>", escaped(language), escaped(&words)));
    }
    if let Some(url) = played {
        said.push_str(&format!("<Play>{}</Play>", escaped(url)));
    }
    if said.is_empty() {
        return refused("there is nothing to say".to_owned());
    }
    let again = vec![said.as_str(); voice.repeat].join("<Pause length=\"1\"/>");
    let twiml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response>{again}</Response>");
    let length = twiml.chars().count();
    if length > TWIML {
        return refused(format!(
            "the call needs {length} characters of TwiML, but the provider allows {TWIML}; shorten the text or lower repeat"
        ));
    }
    Ok(twiml)
}

/// Escapes text for XML 1.0 (§2.4) and drops characters that XML cannot represent (§2.2).
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a<b>&\"c\" 'd'\u{1}\u{fffe}é\n\r\u{1F600}"), "a&lt;b&gt;&amp;&quot;c&quot; 'd'é\n\u{1F600}");
    }

    #[test]
    fn what_statuses_of_calls_say() {
        for sent in ["queued", "initiated", "ringing", "in-progress"] {
            assert_eq!(status(sent, ""), Some(ReceiptKind::Sent));
        }
        assert_eq!(status("completed", "200"), Some(ReceiptKind::Delivered));
        for (said, sip, code) in [
            ("busy", "486", FailureCode::Undeliverable),
            ("no-answer", "487", FailureCode::Undeliverable),
            ("canceled", "", FailureCode::ProviderRejected),
            ("failed", "404", FailureCode::InvalidRecipient),
            ("failed", "503", FailureCode::Undeliverable),
        ] {
            let Some(ReceiptKind::Failed(failure)) = status(said, sip) else { panic!("{said}") };
            assert_eq!((failure.code, failure.provider_code.as_deref()), (code, Some(said)));
        }
        assert_eq!(status("answered-by-a-cat", ""), None);
    }
}
