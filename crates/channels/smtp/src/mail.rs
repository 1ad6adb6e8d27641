//! Classifies inbound email: written by a person, a report, or neither. Pure.

use std::borrow::Cow;

use mail_parser::decoders::html::html_to_text;
use mail_parser::{Message, MessagePart, MimeHeaders as _, PartType};
use nuncio_channel::Media;
use nuncio_domain::{Authentication, MessageId, Timestamp, address};

use crate::html::tag_name;
use crate::parts::{self, clean, own};
use crate::report::{self, Report};
pub use crate::report::{Complaint, Delivery, DsnAction};

/// Attachments stored per email.
const ATTACHMENTS: usize = 100;
/// Maximum characters of a stored text: as many as an outbound email can have.
const TEXT: usize = 1_000_000;
/// Maximum characters of a stored HTML body.
const HTML: usize = 2_000_000;
/// Maximum marks of quotations before a line.
const QUOTES: usize = 3;
/// Maximum octets of a stored identifier.
const ID: usize = 250;

/// An inbound email.
#[derive(Clone, PartialEq, Debug)]
pub enum Mail {
    /// A delivery report (RFC 3464), one entry for each recipient.
    Report(Vec<Delivery>),
    /// A complaint report (RFC 5965).
    Complaint(Complaint),
    /// The beginning of an email that bounced without a report.
    Returned(String),
    /// Sent automatically, such as an automatic reply or by a mailing list. Nobody expects a reply.
    Automatic,
    /// Written by a person.
    InboundEmail(Box<InboundEmail>),
}

/// An email written by a person.
#[derive(Clone, PartialEq, Debug)]
pub struct InboundEmail {
    /// The author's claimed address; empty if there is none that can be answered. Only `authentication` proves it.
    pub from: String,
    /// Authentication results; `None` until checked.
    pub authentication: Option<Authentication>,
    /// The author's display name.
    pub name: Option<String>,
    /// `Message-ID`, without brackets.
    pub message_id: Option<String>,
    /// The newest of our messages that it replies to.
    pub replies_to: Option<MessageId>,
    pub subject: Option<String>,
    /// Its text; made from the HTML if it is blank.
    pub text: String,
    pub html: Option<String>,
    /// Attachments.
    pub media: Vec<Media>,
    /// Its `Date`.
    pub at: Option<Timestamp>,
}

impl Mail {
    /// Parses an email with the envelope sender `from` (empty for none). `None` if it is not an email, or built to be hard to parse.
    pub fn read(from: &str, bytes: &[u8]) -> Option<Self> {
        let message = parts::parse(bytes)?;
        if let Some(report) = report::read(&message) {
            return Some(match report {
                Report::Deliveries(deliveries) => Self::Report(deliveries),
                Report::Complaint(complaint) => Self::Complaint(complaint),
                Report::Other => Self::Automatic,
            });
        }
        let names_failed = from.is_empty() && message.header_raw("X-Failed-Recipients").is_some();
        if !names_failed && is_automatic(&message) {
            return Some(Self::Automatic);
        }
        if from.is_empty() {
            return Some(returned(&message, names_failed, bytes));
        }
        letter(&message).map(|letter| Self::InboundEmail(Box::new(letter)))
    }
}

fn raw<'a>(message: &'a Message<'_>, name: &'static str) -> Option<&'a str> {
    message.header_raw(name).map(str::trim)
}

/// Returns whether it was sent automatically or to many recipients (RFC 3834): an absence notice, a ticket system.
fn is_automatic(message: &Message<'_>) -> bool {
    let word =
        |name| raw(message, name).and_then(|value| value.split([' ', '\t', ';', '(']).next()).unwrap_or_default().to_ascii_lowercase();
    !matches!(word("Auto-Submitted").as_str(), "" | "no")
        || matches!(word("Precedence").as_str(), "bulk" | "junk" | "list" | "auto_reply")
        || ["List-Id", "X-Autoreply", "X-Autorespond"].iter().any(|name| message.header_raw(*name).is_some())
}

/// Classifies an email without envelope sender: it bounced, unless it only reports a delay, or asks for no automatic replies, as automatic
/// emails from Exchange do, and names no recipients that failed. Emails from people can have that field too, but they have a sender.
fn returned(message: &Message<'_>, names_failed: bool, bytes: &[u8]) -> Mail {
    // After a colon, most quote the subject of the email that bounced.
    let kind = message.subject().unwrap_or_default().split(':').next().unwrap_or_default().to_ascii_lowercase();
    if ["delay", "warning", "still being retried"].iter().any(|word| kind.contains(word))
        || (!names_failed && message.header_raw("X-Auto-Response-Suppress").is_some())
    {
        return Mail::Automatic;
    }
    Mail::Returned(clean(&String::from_utf8_lossy(&bytes[..bytes.len().min(4 * 1_024)]), usize::MAX))
}

fn letter(message: &Message<'_>) -> Option<InboundEmail> {
    if parts::has_encoded_mail(message) {
        return None;
    }
    // An unquoted comma in a name makes another author of what is before it, without an address.
    let authors = message.from().into_iter().flat_map(|from| from.iter());
    let author =
        authors.filter_map(|author| Some((author.address()?.trim(), author.name()))).find(|(from, _)| address::email(from).is_ok());
    let (from, name) = author.unwrap_or_default();
    let (text, html) = bodies(message);
    let media = message.attachments().filter(|part| !is_text_cut_off(part)).take(ATTACHMENTS).map(|part| media(message, part));
    Some(InboundEmail {
        from: from.to_owned(),
        authentication: None,
        name: name.map(|name| clean(name, 256)).filter(|name| !name.is_empty()),
        message_id: message.message_id().map(|id| clean(id, ID)),
        replies_to: answered(message),
        subject: parts::subject(message).map(|subject| clean(&subject, 998)).filter(|subject| !subject.is_empty()),
        text: clean(text.trim_end(), TEXT),
        html: (!html.is_empty()).then(|| clean(&html, HTML)),
        media: media.collect(),
        at: message.date().map(|date| Timestamp::from_millis(date.to_timestamp().saturating_mul(1_000))),
    })
}

/// Returns the text and the HTML. Pictures can stand between their parts.
fn bodies(message: &Message<'_>) -> (String, String) {
    let is_html = |part: &&MessagePart<'_>| parts::is(part, "text", "html");
    let cut_off = || message.attachments().filter(|part| is_text_cut_off(part));
    let html = message.html_bodies().filter(|part| part.is_text_html()).chain(cut_off().filter(is_html));
    let html = html.map(|part| parts::text(message, part)).collect::<Vec<_>>().join("\n");
    let text = message.text_bodies().chain(cut_off().filter(|part| !is_html(part))).filter_map(|part| match part.body {
        PartType::Text(_) => Some(parts::text(message, part)),
        PartType::Html(_) => Some(text_of(&parts::text(message, part))),
        _ => None,
    });
    let text = text.map(|text| text.replace("\r\n", "\n").trim_end().to_owned()).collect::<Vec<_>>().join("\n");
    // Some programs leave the text empty beside HTML.
    if text.trim().is_empty() { (text_of(&html), html) } else { (text, html) }
}

/// Returns whether a part is text that ends with the email, without its boundary: the parser takes it for an attachment.
fn is_text_cut_off(part: &MessagePart<'_>) -> bool {
    let is_text = part.content_type().is_none() || ["plain", "html"].iter().any(|kind| parts::is(part, "text", kind));
    let is_file = part.attachment_name().is_some() || part.content_disposition().is_some_and(|disposition| disposition.is_attachment());
    // Bodies are not decoded, so they can have no other problem.
    part.is_encoding_problem && is_text && !is_file
}

/// Converts HTML to text: blocks on lines of their own, quotations as text has them.
fn text_of(html: &str) -> String {
    let (mut text, mut block, mut depth) = (String::new(), String::new(), 0_usize);
    let mut pieces = html.split('<');
    block.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let tag = tag_name(piece);
        match tag.as_str() {
            "div" | "hr" | "li" | "table" | "tr" => block.push_str("<br>"),
            "blockquote" | "/blockquote" => {
                push_lines(&mut text, &html_to_text(&std::mem::take(&mut block)), depth);
                depth = if tag.starts_with('/') { depth.saturating_sub(1) } else { depth + 1 };
            }
            _ => {}
        }
        block.push('<');
        block.push_str(piece);
    }
    push_lines(&mut text, &html_to_text(&block), depth);
    text
}

/// Adds lines with the marks of quotations, without surplus empty lines.
fn push_lines(text: &mut String, lines: &str, depth: usize) {
    let mut after_blank = true;
    for line in lines.trim().lines().map(str::trim) {
        if !(line.is_empty() && after_blank) {
            text.push_str(&"> ".repeat(depth.min(QUOTES)));
            text.push_str(line);
            text.push('\n');
        }
        after_blank = line.is_empty();
    }
}

fn media(message: &Message<'_>, part: &mail_parser::MessagePart<'_>) -> Media {
    let kind = |kind: &mail_parser::ContentType<'_>| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("octet-stream"));
    let content_type = part.content_type().map_or(Cow::Borrowed("application/octet-stream"), |found| Cow::Owned(kind(found)));
    Media {
        reference: String::new(),
        filename: part.attachment_name().map(|name| clean(name, 255)).filter(|name| !name.is_empty()),
        content_type: clean(&content_type.to_ascii_lowercase(), 127),
        content_id: part.content_id().map(|id| clean(id, ID)),
        bytes: Some(match part.body {
            // In one charset, as the name of another is not stored.
            PartType::Text(_) | PartType::Html(_) => parts::text(message, part).into_bytes(),
            _ => parts::content(message, part).into_owned(),
        }),
    }
}

/// Returns the newest of our messages that an email replies to.
fn answered(message: &Message<'_>) -> Option<MessageId> {
    let ids = |value: &mail_parser::HeaderValue<'_>| -> Vec<MessageId> {
        value.as_text_list().unwrap_or_default().iter().filter_map(|id| own(id)).collect()
    };
    ids(message.in_reply_to()).pop().or_else(|| ids(message.references()).pop())
}

#[cfg(test)]
#[path = "mail_tests.rs"]
mod tests;
