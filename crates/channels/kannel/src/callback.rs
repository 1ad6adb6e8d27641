//! Reads callbacks: receipts, at the URL sent with the message, and inbound messages, by get-url or post-url. Checks the proof first. Pure.
//!
//! Source: Kannel 1.4.5 User's Guide, table "Parameters (Escape Codes)" and chapter "Delivery Reports".

use encoding_rs::{Encoding, UTF_8, UTF_16BE};
use hmac::Mac as _;
use nuncio_channel::{CallError, CallbackRequest, ParsedCallback, ProviderEvent, sms};
use nuncio_channel_http::{Parameters, unix_seconds};
use sha2::{Digest as _, Sha256};

use crate::config::Config;
use crate::{map, wire};

pub(crate) fn read(config: &Config, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
    let variables = Parameters::parse(call.query.as_bytes());
    let event = match call.rest {
        "" => inbound(config, call, &variables)?,
        "dlr" => receipt(config, call, &variables)?,
        _ => return Err(CallError::unproved("the gateway was not given this URL")),
    };
    Ok(event.into())
}

fn receipt(config: &Config, call: &CallbackRequest<'_>, variables: &Parameters<'_>) -> Result<Option<ProviderEvent>, CallError> {
    let unproved = || CallError::unproved("k does not prove m and a; callback_secret may have changed since the message was sent");
    let (message, attempt) = variables.attempt().ok_or_else(unproved)?;
    let proof = hex::decode(variables.bytes("k")).map_err(|_| unproved())?;
    wire::proof(config, message, attempt).verify_slice(&proof).map_err(|_| unproved())?;
    let (receipt_type, answer) = (variables.text("type"), variables.text("answer"));
    Ok(map::receipt(&receipt_type, &answer).map(|kind| ProviderEvent::Receipt {
        target: config.endpoint.origin.attempt(message, attempt),
        kind,
        at: unix_seconds(&variables.text("time"), call.now),
        raw: Some(format!("type {receipt_type}, answer {answer}")),
    }))
}

fn inbound(config: &Config, call: &CallbackRequest<'_>, variables: &Parameters<'_>) -> Result<Option<ProviderEvent>, CallError> {
    if !variables.is_secret("key", &config.callback_secret) {
        return Err(CallError::unproved("key is not the connection's callback_secret; see get-url in the gateway's configuration"));
    }
    let header = |name: &str| call.header(name).unwrap_or_default();
    let value = |name: &str| variables.some(name).unwrap_or_else(|| header(&format!("x-kannel-{name}")).to_owned());
    // 1: binary data.
    if value("coding") == "1" {
        return Ok(None);
    }
    let text = if call.method == "POST" && !call.body.is_empty() {
        decode(call.body, header("content-type").split_once("charset=").map_or("", |(_, charset)| charset))
    } else {
        decode(variables.bytes("text"), &variables.text("charset"))
    };
    let (from, time) = (value("from"), variables.text("time"));
    // Without an id, the same text from the same number in the same second is the same message.
    let id = variables.some("id").unwrap_or_else(|| hex::encode(Sha256::digest(format!("{from}\n{time}\n{text}"))));
    let inbound = sms::inbound(config.endpoint.origin, id, [&from, &value("to")], text, unix_seconds(&time, call.now));
    let no_author = || CallError::malformed("from is missing: get-url must name %p, post-url needs send-sender = true");
    inbound.map(|inbound| Some(ProviderEvent::Inbound(inbound))).ok_or_else(no_author)
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

    proptest! {
        #[test]
        fn any_query_and_text_can_be_read(query in "\\PC*", bytes in proptest::collection::vec(any::<u8>(), 0..64), charset in "(UTF-8|UTF-16BE|ISO-8859-1|x)?") {
            Parameters::parse(query.as_bytes()).text("text");
            decode(&bytes, &charset);
        }

        #[test]
        fn what_is_encoded_is_read(text in "\\PC*") {
            let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("text", &text).finish();
            prop_assert_eq!(Parameters::parse(query.as_bytes()).some("text").unwrap_or_default(), text.clone());
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            prop_assert_eq!(decode(&units, "UTF-16BE"), text);
        }
    }
}
