//! Reads callbacks: receipts, at the URL sent with the message, and inbound messages, by get-url or post-url. Checks the proof first. Pure.
//!
//! Source: Kannel 1.4.5 User's Guide, table "Parameters (Escape Codes)" and chapter "Delivery Reports".

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE};
use hmac::Mac as _;
use nuncio_channel::{CallError, CallbackRequest, Inbound, ParsedCallback, ProviderEvent};
use nuncio_domain::address::sms_sender;
use nuncio_domain::{MessageId, Timestamp};
use percent_encoding::percent_decode;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::Config;
use crate::{map, wire};

pub(crate) fn read(config: &Config, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
    let event = match call.rest {
        "" => inbound(config, call)?,
        "dlr" => receipt(config, call)?,
        _ => return Err(CallError::Unproved("the gateway was not given this URL".to_owned())),
    };
    Ok(ParsedCallback { events: event.into_iter().collect(), ..ParsedCallback::default() })
}

fn receipt(config: &Config, call: &CallbackRequest<'_>) -> Result<Option<ProviderEvent>, CallError> {
    let variables = Variables(call.query);
    let unproved =
        || CallError::Unproved("k does not prove m and a; callback_secret may have changed since the message was sent".to_owned());
    let message: MessageId = variables.text("m").parse().map_err(|_| unproved())?;
    let attempt: usize = variables.text("a").parse().map_err(|_| unproved())?;
    let proof = hex::decode(variables.text("k")).map_err(|_| unproved())?;
    // Compares in constant time.
    wire::mac(config, message, attempt).verify_slice(&proof).map_err(|_| unproved())?;
    let (receipt_type, answer) = (variables.text("type"), variables.text("answer"));
    Ok(map::receipt(&receipt_type, &answer).map(|kind| ProviderEvent::Receipt {
        target: config.origin.attempt(message, attempt),
        kind,
        at: at(&variables.text("time"), call.now),
        raw: Some(format!("type {receipt_type}, answer {answer}")),
    }))
}

fn inbound(config: &Config, call: &CallbackRequest<'_>) -> Result<Option<ProviderEvent>, CallError> {
    let variables = Variables(call.query);
    if !bool::from(variables.bytes("key").ct_eq(config.callback_secret.expose().as_bytes())) {
        return Err(CallError::Unproved(
            "key is not the connection's callback_secret; see get-url in the gateway's configuration".to_owned(),
        ));
    }
    let header = |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let value = |name: &str, header_name: &str| match variables.text(name) {
        text if text.is_empty() => header(header_name).to_owned(),
        text => text,
    };
    let from = value("from", "x-kannel-from");
    if from.trim().is_empty() {
        return Err(CallError::Malformed("from is missing: get-url must name %p, post-url needs send-sender = true".to_owned()));
    }
    // 1: binary data.
    if value("coding", "x-kannel-coding") == "1" {
        return Ok(None);
    }
    let posted = call.method == "POST" && !call.body.is_empty();
    let (bytes, charset) = if posted {
        (Cow::Borrowed(call.body), header("content-type").split_once("charset=").map_or("", |(_, charset)| charset).to_owned())
    } else {
        (variables.bytes("text"), variables.text("charset"))
    };
    let text = decode(&bytes, &charset);
    let at = at(&variables.text("time"), call.now);
    let id = match variables.text("id") {
        // Without an id, the same text from the same number in the same second is the same message.
        id if id.is_empty() => hex::encode(Sha256::digest(format!("{from}\n{}\n{text}", variables.text("time")))),
        id => id,
    };
    let to = Some(sms_sender(&value("to", "x-kannel-to"), None)).filter(|to| !to.is_empty());
    Ok(Some(ProviderEvent::Inbound(Inbound { to, ..Inbound::text(config.origin, id, sms_sender(&from, None), text, at) })))
}

/// Reads Unix seconds.
fn at(seconds: &str, now: Timestamp) -> Timestamp {
    seconds.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000)).map_or(now, Timestamp::from_millis)
}

/// Decodes a text from the character set that the gateway names; UTF-8 by default.
fn decode(bytes: &[u8], charset: &str) -> String {
    let charset = charset.split(';').next().unwrap_or_default().trim().trim_matches('"').to_ascii_lowercase();
    let encoding = match charset.as_str() {
        // In SMS these are big-endian; on the web the same names mean little-endian.
        "utf-16" | "utf16-be" | "ucs-2" | "ucs2" | "iso-10646-ucs-2" => UTF_16BE,
        label => Encoding::for_label(label.as_bytes()).unwrap_or(UTF_8),
    };
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

/// The variables of a query. Values are bytes, because texts are not always UTF-8.
struct Variables<'a>(&'a str);

impl<'a> Variables<'a> {
    fn bytes(&self, name: &str) -> Cow<'a, [u8]> {
        let mut pairs = self.0.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let Some((_, value)) = pairs.find(|(key, _)| *key == name) else { return Cow::Borrowed(&[]) };
        if value.contains('+') {
            let spaced = value.replace('+', " ");
            return Cow::Owned(percent_decode(spaced.as_bytes()).collect());
        }
        percent_decode(value.as_bytes()).into()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.bytes(name)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_come_in_many_character_sets() {
        for (bytes, charset, text) in [
            ("Olé €".as_bytes(), "UTF-8", "Olé €"),
            ("Olé".as_bytes(), "", "Olé"),
            (b"Ol\xe9", "ISO-8859-1", "Olé"),
            (b"\x04\x1f\xd8\x3d\xde\x00", "UTF-16BE", "П\u{1F600}"),
            (b"\x04\x1f", " \"utf16-be\"; x=y", "П"),
            (b"\x04\x1f", "UCS-2", "П"),
            (b"\x00H\x00", "UTF-16BE", "H\u{fffd}"),
            (b"10 \x80 \x93Ol\xe9\x94", "windows-1252", "10 € “Olé”"),
            (b"\xcf\xf0", "windows-1251", "Пр"),
            ("Olé".as_bytes(), "unheard-of", "Olé"),
            (b"Ol\xe9", "UTF-8", "Ol\u{fffd}"),
        ] {
            assert_eq!(decode(bytes, charset), text);
        }
    }

    #[test]
    fn variables_are_bytes() {
        let variables = Variables("a=1+2%2B3&text=%04%1F&key&a=9&b=%zz");
        assert_eq!(variables.text("a"), "1 2+3");
        assert_eq!(variables.bytes("text").as_ref(), b"\x04\x1f");
        assert_eq!((variables.text("key"), variables.text("none"), variables.text("b")), (String::new(), String::new(), "%zz".to_owned()));
    }

    proptest! {
        #[test]
        fn any_query_and_text_can_be_read(query in "\\PC*", bytes in proptest::collection::vec(any::<u8>(), 0..64), charset in "(UTF-8|UTF-16BE|ISO-8859-1|x)?") {
            Variables(&query).text("text");
            decode(&bytes, &charset);
        }

        #[test]
        fn what_is_encoded_is_read(text in "\\PC*") {
            let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("text", &text).finish();
            prop_assert_eq!(Variables(&query).text("text"), text.clone());
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            prop_assert_eq!(decode(&units, "UTF-16BE"), text);
        }
    }
}
