//! Builds requests to the provider. Pure.
//!
//! Sources: <https://www.twilio.com/docs/messaging/api/message-resource#create-a-message-resource>,
//! <https://www.twilio.com/docs/voice/api/call-resource#create-a-call-resource>, <https://www.twilio.com/docs/voice/twiml/say>

use nuncio_channel::{SendRequest, sms};
use nuncio_domain::message::{Failure, FailureCode, Message};
use nuncio_domain::{MessageType, speech};
use url::form_urlencoded::Serializer;

use crate::SPOKEN;
use crate::config::Config;

/// The provider's longest validity period, which is also its default, in seconds.
const VALIDITY: u64 = 36_000;
/// Longest TwiML in a request, in characters.
const TWIML: usize = 4_000;

/// The resource that an attempt creates, and the form that creates it.
pub(crate) fn form(config: &Config, request: &SendRequest<'_>) -> Result<(&'static str, String), Failure> {
    let message = request.message;
    let mut form = Serializer::new(String::new());
    form.append_pair("To", &message.to);
    form.append_pair("StatusCallback", &format!("{}/status?m={}&a={}", config.endpoint.callback_url, message.id, request.attempt));
    if config.is_voice() {
        form.append_pair("From", config.from.as_ref().unwrap_or(&message.from));
        form.append_pair("Twiml", &twiml(config, message)?);
        form.append_pair("Timeout", &config.ring_seconds.to_string());
        form.extend_pairs(["ringing", "answered", "completed"].map(|event| ("StatusCallbackEvent", event)));
        return Ok(("/Calls", form.finish()));
    }
    match (&config.from, &config.messaging_service_sid) {
        // The service chooses the number, unless `From` names one of its numbers.
        (from, Some(service)) => {
            form.append_pair("MessagingServiceSid", service);
            form.extend_pairs(from.iter().map(|from| ("From", from)));
        }
        (from, None) => {
            form.append_pair("From", from.as_ref().unwrap_or(&message.from));
        }
    }
    match media(config, message) {
        Some(url) => {
            form.append_pair("MediaUrl", url);
            form.extend_pairs(message.request.text.iter().map(|caption| ("Body", caption)));
        }
        None => {
            form.append_pair("Body", &sms::text(request)?);
        }
    }
    let left = message.state.expires_at.since(request.now).as_secs();
    if left < VALIDITY {
        form.append_pair("ValidityPeriod", &left.max(1).to_string());
    }
    Ok(("/Messages", form.finish()))
}

/// The URL of media to be sent as MMS.
fn media<'a>(config: &Config, message: &'a Message) -> Option<&'a str> {
    use MessageType::{Audio, Document, Image, Video};
    let goes = config.mms && matches!(message.message_type, Image | Video | Audio | Document);
    message.request.content.as_ref().filter(|_| goes)?.media_url.as_deref()
}

/// The script of a call.
fn twiml(config: &Config, message: &Message) -> Result<String, Failure> {
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
        let voice = config.voice.as_ref().map_or_else(String::new, |voice| format!(" voice=\"{}\"", escaped(voice)));
        said.push_str(&format!("<Say language=\"{}\"{voice}>{}</Say>", escaped(language), escaped(&words)));
    }
    if let Some(url) = played {
        said.push_str(&format!("<Play>{}</Play>", escaped(url)));
    }
    if said.is_empty() {
        return refused("there is nothing to say".to_owned());
    }
    let again = vec![said.as_str(); config.repeat].join("<Pause length=\"1\"/>");
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
}
