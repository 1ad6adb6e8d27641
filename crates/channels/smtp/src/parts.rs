//! Parses an email safely, with bounded effort. Pure.
//!
//! `mail-parser` represents nested emails as a tree and frees it recursively: a deep tree overflows the stack. So the tree is bounded
//! before parsing, by counting everything that could be taken for a header field, including whitespace that the parser ignores. The parser
//! must not decode either: it would parse decoded content as an email too, uncounted, and copy it once per level.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::parsers::MessageStream;
use mail_parser::{HeaderName, Message, MessageParser, MessagePart, MimeHeaders as _};
use nuncio_domain::MessageId;

use crate::fields::{self, FIELDS};

/// Maximum number of `Content-Type` fields in a parsed email. Each can nest one level deeper.
pub(crate) const NESTED: usize = 500;
/// Maximum number of lines that can separate parts. Each part costs memory, even if empty.
pub(crate) const DIVIDED: usize = 100_000;
/// Maximum number of lines. 25 MiB of base64 are 340,000.
pub(crate) const LINES: usize = 600_000;

/// Decodes a transfer encoding; `None` if there is nothing to decode.
type Decode = fn(&[u8]) -> Option<Vec<u8>>;

/// Parses an email. `None` if it is not an email, or built to be hard to parse. Bodies stay encoded: see [`content`] and [`text`].
pub(crate) fn parse(mail: &[u8]) -> Option<Message<'_>> {
    if is_hostile(mail) {
        return None;
    }
    let parser = MessageParser::new()
        .with_mime_headers()
        .ignore_header(HeaderName::ContentTransferEncoding)
        .header_address(HeaderName::From)
        .header_text(HeaderName::Subject)
        .header_date(HeaderName::Date)
        .with_message_ids()
        .header_id(HeaderName::ReturnPath)
        .default_header_ignore();
    // mail-parser 0.11.9 panics on multiparts whose messages end in the wrong order; it has no state between emails.
    catch_unwind(AssertUnwindSafe(|| parser.parse(mail))).ok().flatten()
}

/// Can count more than there is, but never less.
fn is_hostile(mail: &[u8]) -> bool {
    let lines = mail.iter().filter(|&&b| b == b'\n');
    let dividers = mail.split(|&b| b == b'\n').filter(|line| line.windows(2).any(|pair| pair == b"--"));
    lines.take(LINES + 1).count() > LINES
        || dividers.take(DIVIDED + 1).count() > DIVIDED
        || types(mail).is_none_or(|types| fields::count(mail, &types) > FIELDS)
}

/// Returns where `Content-Type:` ends, with any whitespace inside; `None` if it occurs too often.
pub(crate) fn types(mail: &[u8]) -> Option<Vec<usize>> {
    const NAME: &[u8] = b"content-type:";
    let (mut found, mut matched) = (Vec::new(), 0);
    for (at, byte) in mail.iter().map(u8::to_ascii_lowercase).enumerate().filter(|(_, byte)| !byte.is_ascii_whitespace()) {
        // `c` occurs only at the beginning, so only it can restart the match.
        matched = if byte == NAME[matched] { matched + 1 } else { usize::from(byte == NAME[0]) };
        if matched == NAME.len() {
            found.push(at);
            matched = 0;
        }
        if found.len() > NESTED {
            return None;
        }
    }
    Some(found)
}

/// Returns whether a contained email is encoded, which RFC 2046 §5.2.1 forbids. Its end is unknown, so later parts can be missing.
pub(crate) fn has_encoded_mail(message: &Message<'_>) -> bool {
    let mut levels = vec![&message.parts];
    while let Some(parts) = levels.pop() {
        for part in parts {
            let is_mail = part.is_message() || part.content_type().is_some_and(|kind| matches!(kind.subtype(), Some("rfc822" | "global")));
            if is_mail && decoder(message, part).is_some() {
                return true;
            }
            levels.extend(part.message().map(|within| &within.parts));
        }
    }
    false
}

/// Returns whether a part has this media type.
pub(crate) fn is(part: &MessagePart<'_>, main: &str, sub: &str) -> bool {
    let found = part.content_type();
    found.is_some_and(|t| t.ctype().eq_ignore_ascii_case(main) && t.subtype().is_some_and(|s| s.eq_ignore_ascii_case(sub)))
}

/// Returns the decoded content of a part; unchanged if it cannot be decoded.
pub(crate) fn content<'a>(message: &'a Message<'_>, part: &MessagePart<'_>) -> Cow<'a, [u8]> {
    let raw = slice(message, part.offset_body, part.offset_end);
    decoder(message, part).and_then(|decode| decode(raw)).map_or(Cow::Borrowed(raw), Cow::Owned)
}

fn decoder(message: &Message<'_>, part: &MessagePart<'_>) -> Option<Decode> {
    let header = part.headers.iter().rfind(|header| header.name == HeaderName::ContentTransferEncoding)?;
    let value = slice(message, header.offset_start, header.offset_end).trim_ascii_start();
    // Some programs add parameters or a comment.
    let name = value.split(|octet| octet.is_ascii_whitespace() || matches!(octet, b';' | b'(')).next().unwrap_or_default();
    match name.to_ascii_lowercase().as_slice() {
        b"base64" => Some(base64),
        b"quoted-printable" => Some(quoted_printable),
        _ => None,
    }
}

/// Ignores characters outside the alphabet (RFC 2045 §6.8). Where there are any, what is after the padding, or after a line of words or rules,
/// is a footer that was added to the encoded text.
fn base64(raw: &[u8]) -> Option<Vec<u8>> {
    let is_sign = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/');
    let is_footer = |line: &[u8]| line.contains(&b' ') || !(line.is_empty() || line.iter().any(|octet| is_sign(octet) || *octet == b'='));
    base64_decode(raw).or_else(|| {
        let lines = raw.split(|&octet| octet == b'\n').map(<[u8]>::trim_ascii).take_while(|line| !is_footer(line));
        let signs: Vec<u8> = lines.flatten().copied().take_while(|&octet| octet != b'=').filter(is_sign).collect();
        base64_decode(&signs).filter(|decoded| !decoded.is_empty())
    })
}

/// Copies each `=` that begins no escape (RFC 2045 §6.7).
fn quoted_printable(raw: &[u8]) -> Option<Vec<u8>> {
    let mut escaped = Vec::with_capacity(raw.len());
    for (at, &octet) in raw.iter().enumerate() {
        escaped.push(octet);
        if octet == b'=' && !begins_escape(&raw[at + 1..]) {
            escaped.extend_from_slice(b"3D");
        }
    }
    quoted_printable_decode(&escaped)
}

/// Returns whether `rest`, after an `=`, is an octet in hexadecimal, or the end of a line.
fn begins_escape(rest: &[u8]) -> bool {
    rest.get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        || rest.iter().find(|octet| !matches!(octet, b' ' | b'\t' | b'\r')).is_none_or(|&octet| octet == b'\n')
}

fn slice<'a>(message: &'a Message<'_>, from: u32, to: u32) -> &'a [u8] {
    message.raw_message.get(from as usize..to as usize).unwrap_or_default()
}

/// Returns the text of a part.
pub(crate) fn text(message: &Message<'_>, part: &MessagePart<'_>) -> String {
    let bytes = content(message, part);
    let charset = part.content_type().and_then(|kind| kind.attribute("charset"));
    // The default of programs that do not look at what they send.
    let charset = charset.filter(|charset| !charset.eq_ignore_ascii_case("us-ascii") || std::str::from_utf8(&bytes).is_err());
    let decode = charset.and_then(|charset| charset_decoder(charset.as_bytes()));
    decode.map_or_else(|| String::from_utf8_lossy(&bytes).into_owned(), |decode| decode(&bytes))
}

/// Returns the subject. Some programs split a character between two encoded words, which RFC 2047 §5 forbids: then words of the same charset
/// and encoding are decoded together.
pub(crate) fn subject(message: &Message<'_>) -> Option<String> {
    let subject = message.subject()?;
    let split = message.header_raw(HeaderName::Subject).filter(|_| subject.contains(char::REPLACEMENT_CHARACTER));
    let Some(joined) = split.map(|raw| joined(raw) + "\n") else { return Some(subject.to_owned()) };
    MessageStream::new(joined.as_bytes()).parse_unstructured().as_text().map(str::to_owned)
}

/// Joins adjacent encoded words of the same charset and encoding.
fn joined(raw: &str) -> String {
    let (mut joined, mut before) = (String::new(), "");
    for word in raw.split_ascii_whitespace() {
        let opening = opening(word).unwrap_or_default();
        if !opening.is_empty() && opening.eq_ignore_ascii_case(before) {
            joined.truncate(joined.len() - "?=".len());
            joined += &word[opening.len()..];
        } else {
            joined.push(' ');
            joined += word;
        }
        before = opening;
    }
    joined
}

/// Returns the beginning of an encoded word: `=?charset?encoding?`.
fn opening(word: &str) -> Option<&str> {
    let (end, _) = word.strip_prefix("=?")?.strip_suffix("?=")?.match_indices('?').nth(1)?;
    Some(&word[..end + "=??".len()])
}

/// The message of ours that a `Message-ID` names.
pub(crate) fn own(message_id: &str) -> Option<MessageId> {
    message_id.trim().trim_start_matches('<').split_once('@')?.0.parse().ok()
}

/// The first `most` characters, without NUL, which databases cannot store.
pub(crate) fn clean(text: &str, most: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(most).collect()
}
