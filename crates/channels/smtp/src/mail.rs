//! What a mail from outside is: a letter of a person, a report of a machine, or neither. Pure.

use std::borrow::Cow;

use mail_parser::{Message, MessageParser, MimeHeaders as _};
use nuncio_channel::Media;
use nuncio_domain::{MessageId, Timestamp};

use crate::report;
pub use crate::report::{Complaint, Delivery, Fate};

/// Header fields named `Content-Type` of a mail that is read. Each can nest a level deeper.
const NESTED: usize = 500;
/// Lines of a mail that may divide its parts. Each part costs memory although it may be empty.
const DIVIDED: usize = 100_000;
/// Attachments that are kept of a letter.
const ATTACHMENTS: usize = 100;
/// Characters of a text that are kept: those that one of our own mails may have.
const TEXT: usize = 1_000_000;
/// Characters of an HTML body that are kept.
const HTML: usize = 2_000_000;
/// Octets of an identifier that are kept.
const ID: usize = 250;

/// A mail from outside.
#[derive(Clone, PartialEq, Debug)]
pub enum Mail {
    /// A report of what became of a mail (RFC 3464), one entry for each recipient.
    Report(Vec<Delivery>),
    /// A report that somebody complained about a mail (RFC 5965).
    Complaint(Complaint),
    /// A mail that came back without such a report, and its beginning.
    Returned(String),
    /// Sent by a machine: an automatic reply, a list, a mail of our own. No person waits for an answer.
    Automatic,
    /// A letter of a person.
    Letter(Box<Letter>),
}

/// A letter of a person.
#[derive(Clone, PartialEq, Debug)]
pub struct Letter {
    /// Who wrote, as the letter says. Nothing proves it.
    pub from: String,
    /// The name beside it.
    pub name: Option<String>,
    /// `Message-ID`, without brackets.
    pub message_id: Option<String>,
    /// The newest of our messages that it answers.
    pub replies_to: Option<MessageId>,
    /// Subject.
    pub subject: Option<String>,
    /// Its text; made from the HTML where it has none.
    pub text: String,
    /// HTML.
    pub html: Option<String>,
    /// What is attached.
    pub media: Vec<Media>,
    /// Its date, as it says.
    pub at: Option<Timestamp>,
}

impl Mail {
    /// Reads a mail whose envelope names `from` (empty for none). `None` for what is no mail, or built to be hard to read.
    pub fn read(from: &str, bytes: &[u8]) -> Option<Self> {
        if is_hostile(bytes) {
            return None;
        }
        let message = MessageParser::default().parse(bytes)?;
        if let Some(report) = report::read(&message) {
            return Some(report);
        }
        if is_answer(&message) {
            return Some(Self::Automatic);
        }
        if from.is_empty() {
            return Some(returned(&message, bytes));
        }
        if is_automatic(&message) || message.message_id().is_some_and(|id| own(id).is_some()) {
            return Some(Self::Automatic);
        }
        letter(&message).map(|letter| Self::Letter(Box::new(letter)))
    }
}

fn is_hostile(bytes: &[u8]) -> bool {
    let (mut nested, mut divided) = (0, 0);
    for line in bytes.split(|&b| b == b'\n') {
        divided += usize::from(line.starts_with(b"--"));
        nested += usize::from(line.get(..13).is_some_and(|name| name.eq_ignore_ascii_case(b"content-type:")));
    }
    nested > NESTED || divided > DIVIDED
}

fn raw<'a>(message: &'a Message<'_>, name: &'static str) -> Option<&'a str> {
    message.header_raw(name).map(str::trim)
}

/// Whether a machine answered (RFC 3834): somebody is away, a ticket was opened.
fn is_answer(message: &Message<'_>) -> bool {
    let submitted = raw(message, "Auto-Submitted").unwrap_or_default().to_ascii_lowercase();
    let precedence = raw(message, "Precedence").unwrap_or_default().to_ascii_lowercase();
    submitted.starts_with("auto-replied")
        || precedence == "auto_reply"
        || ["X-Autoreply", "X-Autorespond"].iter().any(|name| message.header_raw(*name).is_some())
}

/// Whether a machine sent it to many, or by itself.
fn is_automatic(message: &Message<'_>) -> bool {
    let submitted = raw(message, "Auto-Submitted").is_some_and(|value| !value.to_ascii_lowercase().starts_with("no"));
    let precedence = raw(message, "Precedence").unwrap_or_default().to_ascii_lowercase();
    submitted || matches!(precedence.as_str(), "bulk" | "junk" | "list") || message.header_raw("List-Id").is_some()
}

/// A mail without a sender: it came back, unless it only tells of a delay, of which nothing is known yet.
fn returned(message: &Message<'_>, bytes: &[u8]) -> Mail {
    let subject = message.subject().unwrap_or_default().to_ascii_lowercase();
    if ["delay", "warning", "still being retried"].iter().any(|word| subject.contains(word)) {
        return Mail::Automatic;
    }
    Mail::Returned(clean(&String::from_utf8_lossy(&bytes[..bytes.len().min(4 * 1_024)]), usize::MAX))
}

fn letter(message: &Message<'_>) -> Option<Letter> {
    let from = message.from()?.first()?;
    let html = message.html_part(0).filter(|part| part.is_text_html()).and_then(|part| part.text_contents());
    // The reader makes a text from the HTML where there is none.
    let text = message.body_text(0).unwrap_or_default();
    let media = message.attachments().take(ATTACHMENTS).map(media);
    Some(Letter {
        from: from.address()?.trim().to_owned(),
        name: from.name().map(|name| clean(name, 256)).filter(|name| !name.is_empty()),
        message_id: message.message_id().map(|id| clean(id, ID)),
        replies_to: answered(message),
        subject: message.subject().map(|subject| clean(subject, 998)).filter(|subject| !subject.is_empty()),
        text: clean(text.replace("\r\n", "\n").trim_end(), TEXT),
        html: html.map(|html| clean(html, HTML)),
        media: media.collect(),
        at: message.date().map(|date| Timestamp::from_millis(date.to_timestamp().saturating_mul(1_000))),
    })
}

fn media(part: &mail_parser::MessagePart<'_>) -> Media {
    let kind = |kind: &mail_parser::ContentType<'_>| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("octet-stream"));
    let content_type = part.content_type().map_or(Cow::Borrowed("application/octet-stream"), |found| Cow::Owned(kind(found)));
    Media {
        reference: String::new(),
        filename: part.attachment_name().map(|name| clean(name, 255)).filter(|name| !name.is_empty()),
        content_type: clean(&content_type.to_ascii_lowercase(), 127),
        content_id: part.content_id().map(|id| clean(id, ID)),
        bytes: Some(part.contents().to_vec()),
    }
}

/// The newest of our messages among those that a letter says it answers.
fn answered(message: &Message<'_>) -> Option<MessageId> {
    let ids = |value: &mail_parser::HeaderValue<'_>| -> Vec<MessageId> {
        value.as_text_list().unwrap_or_default().iter().filter_map(|id| own(id)).collect()
    };
    ids(message.in_reply_to()).pop().or_else(|| ids(message.references()).pop())
}

/// Our message of a `Message-ID`.
pub(crate) fn own(message_id: &str) -> Option<MessageId> {
    message_id.trim().trim_start_matches('<').split_once('@')?.0.parse().ok()
}

/// What no database takes is left out, and what is too much.
pub(crate) fn clean(text: &str, most: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(most).collect()
}

#[cfg(test)]
#[path = "mail_tests.rs"]
mod tests;
