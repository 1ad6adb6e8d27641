//! Builds the bytes of an email: headers, parts and encodings (RFC 5322, 2045 to 2047, 2183, 2231, 2387).
//!
//! lettre encodes texts, file names and dates and validates addresses. The MIME tree is written here, into one buffer, because attachments
//! can be large, boundaries must be derived from the message id, and lines must not be too long.

use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lettre::message::Body;
use lettre::message::header::{ContentDisposition, ContentType, Date, Headers};
use nuncio_channel::{ResolvedAttachment, SendRequest};
use nuncio_domain::Timestamp;
use nuncio_domain::message::{Failure, FailureCode};

use crate::degrade;
use crate::dkim::Signer;

/// An email ready to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OutboundEmail {
    /// Envelope recipient, its domain in ASCII.
    pub(crate) to: String,
    /// `Message-ID`, with its angle brackets; the same for every attempt.
    pub(crate) message_id: String,
    /// Header and body with CRLF line ends, the last one included. No line is longer than 998 octets.
    pub(crate) bytes: Vec<u8>,
    /// The address that needs SMTPUTF8 (RFC 6531).
    pub(crate) utf8: Option<NonAscii>,
}

/// Which address has characters beyond ASCII before the `@`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum NonAscii {
    /// The recipient, or the sender.
    Envelope,
    /// Only this one, which the caller gave.
    ReplyTo(String),
}

/// An address fit for the envelope and for headers: valid, without spaces and control characters, its domain in ASCII (RFC 5890).
pub(crate) fn wire_address(text: &str) -> Option<String> {
    let address: lettre::Address = text.parse().ok()?;
    if text.len() > 254 || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return None;
    }
    let domain = if address.domain().is_ascii() { address.domain().to_owned() } else { idna::domain_to_ascii(address.domain()).ok()? };
    Some(format!("{}@{domain}", address.user()))
}

/// The sender of emails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sender {
    /// Display name.
    pub(crate) name: Option<String>,
    /// Address, its domain in ASCII.
    pub(crate) address: String,
}

/// Builds the email of `request` with the header fields `more`, signed if there is a `signer`. An error is permanent.
pub(crate) fn build(
    request: &SendRequest<'_>,
    from: &Sender,
    more: &[(&str, String)],
    signer: Option<&Signer>,
) -> Result<OutboundEmail, Failure> {
    let message = request.message;
    let Some(to) = wire_address(&message.to) else {
        return Err(Failure::own(FailureCode::InvalidRecipient, format!("{:?} is no email address", message.to)));
    };
    let reply_to = message.request.reply_to.as_deref().map(reply_to).transpose()?;
    let body = degrade::body(message)?;
    let domain = from.address.rsplit('@').next().unwrap_or_default();
    let message_id = format!("<{}@{domain}>", message.id);

    let mut out = String::new();
    header(&mut out, "Date", &date(request.now));
    header(&mut out, "From", &mailbox(from.name.as_deref(), &from.address));
    header(&mut out, "To", &to);
    if let Some(reply_to) = &reply_to {
        header(&mut out, "Reply-To", reply_to);
    }
    if let Some(subject) = message.request.subject.as_deref().filter(|s| !s.is_empty()) {
        header(&mut out, "Subject", &unstructured(subject, "Subject: ".len()));
    }
    header(&mut out, "Message-ID", &message_id);
    for (name, value) in more {
        header(&mut out, name, value);
    }
    header(&mut out, "MIME-Version", "1.0");

    let mut bytes = out.into_bytes();
    let content: usize = request.attachments.iter().map(|a| a.bytes.len()).sum();
    bytes.reserve(content / 57 * 78 + body.text.len() * 2 + body.html.as_ref().map_or(0, String::len) * 2 + 4_096);
    let mut writer = Writer { out: bytes, boundary: format!("=_{}", message.id), multiparts: 0 };
    writer.part(&tree(&body, request.attachments));
    let mut bytes = writer.out;
    if let Some(signer) = signer {
        let signature = signer.sign(&bytes, request.now);
        bytes.splice(0..0, signature.into_bytes());
    }
    let utf8 = match &reply_to {
        _ if !(to.is_ascii() && from.address.is_ascii()) => Some(NonAscii::Envelope),
        Some(reply_to) if !reply_to.is_ascii() => message.request.reply_to.clone().map(NonAscii::ReplyTo),
        _ => None,
    };
    Ok(OutboundEmail { to, message_id, bytes, utf8 })
}

fn header(out: &mut String, name: &str, value: &str) {
    out.push_str(name);
    out.push_str(": ");
    out.push_str(value);
    out.push_str("\r\n");
}

fn date(at: Timestamp) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(at.millis().max(0).unsigned_abs());
    header_value(|headers| headers.set(Date::new(at)))
}

/// The encoded value of the one header that `set` sets.
fn header_value(set: impl FnOnce(&mut Headers)) -> String {
    let mut headers = Headers::new();
    set(&mut headers);
    let text = headers.to_string();
    text.split_once(": ").map_or(String::new(), |(_, value)| value.trim_end().to_owned())
}

fn reply_to(text: &str) -> Result<String, Failure> {
    let wrong = || Failure::own(FailureCode::ContentRejected, format!("replyTo {text:?} is no email address"));
    parse_mailbox(text).map(|sender| mailbox(sender.name.as_deref(), &sender.address)).ok_or_else(wrong)
}

/// Reads `name <address>`, the name quoted or not, or a bare address.
pub(crate) fn parse_mailbox(text: &str) -> Option<Sender> {
    let Some((name, address)) = text.trim().strip_suffix('>').and_then(|text| text.rsplit_once('<')) else {
        return Some(Sender { name: None, address: wire_address(text.trim())? });
    };
    let name = name.trim();
    let name = match name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) {
        Some(quoted) => unescape(quoted),
        None => name.to_owned(),
    };
    Some(Sender { name: Some(name).filter(|n| !n.is_empty()), address: wire_address(address)? })
}

/// The content of a quoted string (RFC 5322 §3.2.4).
fn unescape(quoted: &str) -> String {
    let mut characters = quoted.chars();
    std::iter::from_fn(|| match characters.next()? {
        '\\' => characters.next(),
        c => Some(c),
    })
    .collect()
}

fn mailbox(name: Option<&str>, address: &str) -> String {
    let name = clean(name.unwrap_or_default());
    let name = name.trim();
    if name.is_empty() {
        return address.to_owned();
    }
    if name.len() <= 60 && name.is_ascii() && !name.contains("=?") {
        return format!("\"{}\" <{address}>", name.replace('\\', "\\\\").replace('"', "\\\""));
    }
    format!("{}\r\n <{address}>", encoded_words(name))
}

/// `text` with every control character, line ends above all, turned into a space.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// An unstructured header value, folded; as encoded words, unless it is plain ASCII with words and spaces that survive folding.
fn unstructured(text: &str, offset: usize) -> String {
    let text = clean(text);
    let plain = text.is_ascii() && !text.contains("=?") && text.split(' ').all(|word| (1..=60).contains(&word.len()));
    if !plain {
        return encoded_words(&text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut width = offset;
    for (index, word) in text.split(' ').enumerate() {
        if index > 0 {
            let fold = width + 1 + word.len() > 76;
            out.push_str(if fold { "\r\n " } else { " " });
            width = if fold { 1 } else { width + 1 };
        }
        out.push_str(word);
        width += word.len();
    }
    out
}

/// `text` as encoded words of at most 60 characters (RFC 2047 allows 75), one a line, never parting a character.
fn encoded_words(text: &str) -> String {
    const OCTETS: usize = 36;
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = (0..=OCTETS.min(rest.len())).rev().find(|&i| rest.is_char_boundary(i)).unwrap_or(rest.len());
        words.push(format!("=?utf-8?B?{}?=", STANDARD.encode(&rest[..end])));
        rest = &rest[end..];
    }
    words.join("\r\n ")
}

/// One node of the MIME tree.
enum MimePart<'a> {
    Text { subtype: &'static str, content: &'a str },
    File { name: &'a str, content_type: &'a str, content_id: Option<&'a str>, bytes: &'a [u8] },
    Multi { subtype: &'static str, parts: Vec<MimePart<'a>> },
}

fn tree<'a>(body: &'a degrade::Body, attachments: &'a [ResolvedAttachment]) -> MimePart<'a> {
    let plain = MimePart::Text { subtype: "plain", content: &body.text };
    let (inline, attached): (Vec<_>, Vec<_>) = attachments.iter().partition(|a| body.html.is_some() && a.content_id.is_some());
    let shown = match &body.html {
        None => plain,
        Some(html) => {
            let html = MimePart::Text { subtype: "html", content: html };
            let html = if inline.is_empty() {
                html
            } else {
                MimePart::Multi {
                    subtype: "related",
                    parts: std::iter::once(html).chain(inline.into_iter().map(|a| file(a, true))).collect(),
                }
            };
            MimePart::Multi { subtype: "alternative", parts: vec![plain, html] }
        }
    };
    let vcard = body.vcard.as_deref().map(|card| MimePart::File {
        name: "contacts.vcf",
        content_type: "text/vcard; charset=utf-8",
        content_id: None,
        bytes: card.as_bytes(),
    });
    if attached.is_empty() && vcard.is_none() {
        return shown;
    }
    MimePart::Multi {
        subtype: "mixed",
        parts: std::iter::once(shown).chain(vcard).chain(attached.into_iter().map(|a| file(a, false))).collect(),
    }
}

fn file(attachment: &ResolvedAttachment, inline: bool) -> MimePart<'_> {
    MimePart::File {
        name: &attachment.filename,
        content_type: &attachment.content_type,
        content_id: attachment.content_id.as_deref().filter(|_| inline),
        bytes: &attachment.bytes,
    }
}

struct Writer {
    out: Vec<u8>,
    /// Prefix of all boundaries. `=_` cannot occur in an encoded body, and the id was unknown when the text was written.
    boundary: String,
    multiparts: usize,
}

impl Writer {
    fn header(&mut self, name: &str, value: &str) {
        for piece in [name, ": ", value, "\r\n"] {
            self.out.extend_from_slice(piece.as_bytes());
        }
    }

    fn line(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn part(&mut self, part: &MimePart<'_>) {
        match part {
            MimePart::Text { subtype, content } => self.text(subtype, content),
            MimePart::File { name, content_type, content_id, bytes } => self.file(name, content_type, *content_id, bytes),
            MimePart::Multi { subtype, parts } => self.multi(subtype, parts),
        }
    }

    fn text(&mut self, subtype: &str, content: &str) {
        let body = Body::new(crlf(content));
        self.header("Content-Type", &format!("text/{subtype}; charset=utf-8"));
        self.header("Content-Transfer-Encoding", &body.encoding().to_string());
        self.line("");
        self.out.extend_from_slice(body.as_ref());
        self.line("");
    }

    fn file(&mut self, name: &str, content_type: &str, content_id: Option<&str>, bytes: &[u8]) {
        let name = file_name(name);
        self.header("Content-Type", &media_type(content_type));
        self.header("Content-Transfer-Encoding", "base64"); // for text too: a file must arrive as it was
        let disposition =
            if content_id.is_some() { ContentDisposition::inline_with_name(&name) } else { ContentDisposition::attachment(&name) };
        self.header("Content-Disposition", &header_value(|headers| headers.set(disposition)));
        if let Some(id) = content_id {
            let id: String = id.chars().filter(|c| c.is_ascii_graphic() && !"<>".contains(*c)).collect();
            self.header("Content-ID", &format!("<{id}>"));
        }
        self.line("");
        let mut line = [0; 76];
        for chunk in bytes.chunks(57) {
            let length = STANDARD.encode_slice(chunk, &mut line).expect("57 octets are 76 characters");
            self.out.extend_from_slice(&line[..length]);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    fn multi(&mut self, subtype: &str, parts: &[MimePart<'_>]) {
        let boundary = format!("{}_{}", self.boundary, self.multiparts);
        self.multiparts += 1;
        let root = if subtype == "related" { "; type=\"text/html\"" } else { "" };
        self.header("Content-Type", &format!("multipart/{subtype}{root};\r\n boundary=\"{boundary}\""));
        self.line("");
        for part in parts {
            self.line(&format!("--{boundary}"));
            self.part(part);
        }
        self.line(&format!("--{boundary}--"));
    }
}

/// Returns `text` with CRLF line ends, also for bare CRs, and without NUL, which emails must not contain (RFC 5322 §2.3).
fn crlf(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 32);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\0' => {}
            '\r' => {
                characters.next_if_eq(&'\n');
                out.push_str("\r\n");
            }
            '\n' => out.push_str("\r\n"),
            _ => out.push(c),
        }
    }
    out
}

fn file_name(name: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_control() || matches!(c, '/' | '\\' | '"') { '_' } else { c }).take(255).collect();
    if name.trim().is_empty() { "attachment".to_owned() } else { name }
}

/// Returns the media type if it can be sent as base64, otherwise the generic one. `multipart` and `message` cannot (RFC 2046 §5.2).
fn media_type(given: &str) -> String {
    let usable = given.len() <= 200 && given.bytes().all(|b| b.is_ascii_graphic() || b == b' ') && !given.contains(['(', '\\']);
    let lower = given.to_ascii_lowercase();
    let composite = lower.starts_with("multipart/") || lower.starts_with("message/");
    match ContentType::parse(given) {
        Ok(parsed) if usable && !composite => header_value(|headers| headers.set(parsed)),
        _ => "application/octet-stream".to_owned(),
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
