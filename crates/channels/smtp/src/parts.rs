//! Takes a mail apart, without anything in it that could make that endless. Pure.
//!
//! `mail-parser` keeps a mail within a mail as a tree, and frees it by recursion: a tree that is deep enough ends the process. What the
//! tree can be is therefore bounded before it reads, by counting what it could take for a header field, with the whitespace it ignores.
//! Nor does it decode here: what it finds decoded it would read as a mail too, of which nothing was counted, and copy once for each level.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::charsets::map::charset_decoder;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{HeaderName, Message, MessageParser, MessagePart, MimeHeaders as _};
use nuncio_domain::MessageId;

/// Fields named `Content-Type` of a mail that is read. Each can nest a level deeper.
pub(crate) const NESTED: usize = 500;
/// Lines of a mail that may divide its parts. Each part costs memory although it may be empty.
pub(crate) const DIVIDED: usize = 100_000;
/// Most lines: any of them may be a header, which is kept with its place. 25 MiB of base64 are 340,000.
pub(crate) const LINES: usize = 600_000;

/// Undoes what a mail's way needed; `None` where it cannot be undone.
type Decode = fn(&[u8]) -> Option<Vec<u8>>;

/// Takes a mail apart. `None` for what is none, or built to be hard to read. Bodies are as they came: see [`content`] and [`text`].
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
    // mail-parser 0.11.9 panics on multiparts whose messages end in the wrong order; it keeps nothing between mails.
    catch_unwind(AssertUnwindSafe(|| parser.parse(mail))).ok().flatten()
}

/// More may be counted than there is, but never less.
fn is_hostile(mail: &[u8]) -> bool {
    let lines = mail.iter().filter(|&&b| b == b'\n');
    let dividers = mail.split(|&b| b == b'\n').filter(|line| line.windows(2).any(|pair| pair == b"--"));
    nests(mail) || lines.take(LINES + 1).count() > LINES || dividers.take(DIVIDED + 1).count() > DIVIDED
}

/// Whether `Content-Type:` stands anywhere too often, with any whitespace within.
fn nests(mail: &[u8]) -> bool {
    const NAME: &[u8] = b"content-type:";
    let (mut count, mut matched) = (0, 0);
    for byte in mail.iter().filter(|byte| !byte.is_ascii_whitespace()).map(u8::to_ascii_lowercase) {
        // A `c` stands nowhere but at the beginning, so that nothing but that begins anew.
        matched = if byte == NAME[matched] { matched + 1 } else { usize::from(byte == NAME[0]) };
        if matched == NAME.len() {
            (count, matched) = (count + 1, 0);
        }
        if count > NESTED {
            return true;
        }
    }
    false
}

/// Whether a mail in it is encoded, which RFC 2046 §5.2.1 forbids. Where that ends is not known here, so parts after it may be missing.
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

/// What a part of a mail contains, decoded; as it came where it cannot be.
pub(crate) fn content<'a>(message: &'a Message<'_>, part: &MessagePart<'_>) -> Cow<'a, [u8]> {
    let raw = slice(message, part.offset_body, part.offset_end);
    decoder(message, part).and_then(|decode| decode(raw)).map_or(Cow::Borrowed(raw), Cow::Owned)
}

fn decoder(message: &Message<'_>, part: &MessagePart<'_>) -> Option<Decode> {
    let header = part.headers.iter().rfind(|header| header.name == HeaderName::ContentTransferEncoding)?;
    match slice(message, header.offset_start, header.offset_end).trim_ascii().to_ascii_lowercase().as_slice() {
        b"base64" => Some(base64_decode),
        b"quoted-printable" => Some(quoted_printable_decode),
        _ => None,
    }
}

fn slice<'a>(message: &'a Message<'_>, from: u32, to: u32) -> &'a [u8] {
    message.raw_message.get(from as usize..to as usize).unwrap_or_default()
}

/// What a part of a mail says, as text.
pub(crate) fn text(message: &Message<'_>, part: &MessagePart<'_>) -> String {
    let bytes = content(message, part);
    let charset = part.content_type().and_then(|kind| kind.attribute("charset"));
    let decode = charset.and_then(|charset| charset_decoder(charset.as_bytes()));
    decode.map_or_else(|| String::from_utf8_lossy(&bytes).into_owned(), |decode| decode(&bytes))
}

/// The message of ours that a `Message-ID` names.
pub(crate) fn own(message_id: &str) -> Option<MessageId> {
    message_id.trim().trim_start_matches('<').split_once('@')?.0.parse().ok()
}

/// The first `most` characters, without NUL, which databases cannot store.
pub(crate) fn clean(text: &str, most: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(most).collect()
}
