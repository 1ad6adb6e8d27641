//! Validates a message for its channel and returns all errors at once.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use nuncio_domain::{Channel, FieldError, MessageType, Timestamp, address, limits};

use super::command::{AttachmentIn, SendMessage};
use super::content;
use crate::base::{BLANK, FieldErrors, check_metadata, is_blank};

/// Collects all errors of `command` on `channel`. With `lenient`, unused fields are removed instead.
pub(crate) fn check(command: &mut SendMessage, channel: Channel, now: Timestamp, lenient: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let message_type = command.message_type.unwrap_or_default();
    content::check(message_type, &mut command.content, lenient, &mut errors);
    only_for_email(command, channel, lenient, &mut errors);
    only_for_voice(command, channel, lenient, &mut errors);
    text(command, channel, message_type, lenient, &mut errors);
    email(command, channel, &mut errors);
    options(command, now, &mut errors);
    errors
}

/// Collects the errors that `command` has on every channel.
pub(crate) fn check_without_channel(command: &mut SendMessage, now: Timestamp, lenient: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    content::check(command.message_type.unwrap_or_default(), &mut command.content, lenient, &mut errors);
    options(command, now, &mut errors);
    errors
}

fn only_for_email(command: &mut SendMessage, channel: Channel, lenient: bool, errors: &mut Vec<FieldError>) {
    if channel == Channel::Email {
        return;
    }
    if lenient {
        (command.subject, command.html_body, command.reply_to, command.attachments) = (None, None, None, None);
        return;
    }
    let given = [
        ("subject", command.subject.is_some()),
        ("htmlBody", command.html_body.is_some()),
        ("replyTo", command.reply_to.is_some()),
        ("attachments", command.attachments.as_ref().is_some_and(|a| !a.is_empty())),
    ];
    for (name, _) in given.into_iter().filter(|(_, given)| *given) {
        errors.push(FieldError::new(name, format!("is for email only; the channel is {channel}")));
    }
}

fn only_for_voice(command: &mut SendMessage, channel: Channel, lenient: bool, errors: &mut Vec<FieldError>) {
    let Some(tag) = &command.voice_language else { return };
    if channel == Channel::Voice {
        if oxilangtag::LanguageTag::parse(tag.as_str()).is_err() {
            errors.push(FieldError::new("voiceLanguage", format!("{tag:?} is not a language tag such as es-ES")));
        }
    } else if lenient {
        command.voice_language = None;
    } else {
        errors.push(FieldError::new("voiceLanguage", format!("is for voice only; the channel is {channel}")));
    }
}

fn text(command: &mut SendMessage, channel: Channel, message_type: MessageType, lenient: bool, errors: &mut Vec<FieldError>) {
    if message_type == MessageType::Template && command.text.is_some() {
        if !lenient {
            errors.push(FieldError::new("text", "messageType template takes its text from the template"));
        }
        command.text = None;
    }
    let mut faults = FieldErrors { errors };
    let text = command.text.as_deref().unwrap_or_default();
    let needs_words = matches!(message_type, MessageType::Text | MessageType::Buttons | MessageType::List | MessageType::CtaUrl);
    let has_html = channel == Channel::Email && command.html_body.as_deref().is_some_and(|html| !is_blank(html));
    if !text.is_empty() && is_blank(text) && !has_html {
        faults.push("text", BLANK);
    } else if needs_words && text.is_empty() && !has_html {
        let also = if channel == Channel::Email { "text or an HTML body" } else { "text" };
        faults.push("text", format!("messageType {message_type} requires {also}"));
    }
    let wordless = matches!(message_type, MessageType::Sticker | MessageType::Reaction | MessageType::Location | MessageType::Contact);
    if wordless && !text.is_empty() && channel != Channel::Email {
        faults.push("text", format!("messageType {message_type} has no text"));
    }
    length(&mut faults, "text", text, channel, message_type != MessageType::Text);
    if has_html && is_blank(text) {
        command.text = None; // it is derived from the HTML
    }
}

/// Checks the text length limit of a channel.
pub(crate) fn length(faults: &mut FieldErrors<'_>, path: &str, text: &str, channel: Channel, interactive: bool) {
    match channel {
        Channel::Email => bytes(faults, path, text, limits::EMAIL_TEXT_BYTES),
        Channel::Voice => faults.length(path, Some(text), 0, limits::VOICE_TEXT),
        Channel::Sms | Channel::SmsOneway => faults.length(path, Some(text), 0, limits::SMS_TEXT),
        Channel::Instagram => bytes(faults, path, text, limits::INSTAGRAM_TEXT_BYTES),
        Channel::Whatsapp | Channel::Telegram if interactive => faults.length(path, Some(text), 0, limits::CAPTION),
        Channel::Whatsapp | Channel::Telegram => faults.length(path, Some(text), 0, limits::CHAT_TEXT),
    }
}

fn bytes(faults: &mut FieldErrors<'_>, path: &str, value: &str, most: usize) {
    if value.len() > most {
        faults.push(path, format!("is {} bytes of UTF-8; must be at most {most}", value.len()));
    }
}

fn email(command: &SendMessage, channel: Channel, errors: &mut Vec<FieldError>) {
    if channel != Channel::Email {
        return;
    }
    let mut faults = FieldErrors { errors };
    match command.subject.as_deref() {
        None | Some("") => faults.push("subject", "is required for email"),
        Some(subject) if is_blank(subject) => faults.push("subject", BLANK),
        Some(subject) => {
            faults.length("subject", Some(subject), 1, limits::SUBJECT);
            header(&mut faults, "subject", subject);
        }
    }
    bytes(&mut faults, "htmlBody", command.html_body.as_deref().unwrap_or_default(), limits::EMAIL_HTML_BYTES);
    if let Some(reply_to) = &command.reply_to
        && let Err(error) = address::email(reply_to)
    {
        faults.push("replyTo", error.to_string());
    }
    let attachments = command.attachments.as_deref().unwrap_or_default();
    faults.count("attachments", attachments.len(), 0, limits::ATTACHMENTS);
    let mut total = 0;
    for (n, attachment) in attachments.iter().enumerate().take(limits::ATTACHMENTS) {
        total += self::attachment(&mut faults, &format!("attachments[{n}]"), attachment);
    }
    if total > limits::ATTACHMENT_BYTES {
        faults.push("attachments", format!("are {total} bytes in all; must be at most {}", limits::ATTACHMENT_BYTES));
    }
}

/// Rejects control characters in headers: a line break would inject a header.
fn header(faults: &mut FieldErrors<'_>, path: &str, value: &str) {
    if value.chars().any(char::is_control) {
        faults.push(path, "must not contain line breaks or other control characters");
    }
}

/// Checks an attachment and returns its size in bytes.
fn attachment(faults: &mut FieldErrors<'_>, path: &str, attachment: &AttachmentIn) -> usize {
    faults.name(&format!("{path}.filename"), Some(&attachment.filename), 1, limits::FILENAME);
    if let Some(id) = &attachment.content_id {
        faults.length(&format!("{path}.content_id"), Some(id), 1, limits::FILENAME);
        let bad = id.chars().any(|c| c.is_control() || c.is_whitespace() || matches!(c, '<' | '>'));
        if bad {
            faults.push(&format!("{path}.content_id"), "must not contain spaces, control characters or angle brackets");
        }
    }
    faults.mime(&format!("{path}.content_type"), attachment.content_type.as_deref());
    match (&attachment.content, &attachment.path) {
        (Some(content), None) => match STANDARD.decode(content.as_bytes()) {
            Ok(bytes) => bytes.len(),
            Err(error) => {
                faults.push(&format!("{path}.content"), format!("is not base64 without line breaks: {error}"));
                0
            }
        },
        (None, Some(url)) => {
            faults.url(&format!("{path}.path"), Some(url));
            0
        }
        (Some(_), Some(_)) => {
            faults.push(path, "has both content and path; must have exactly one");
            0
        }
        (None, None) => {
            faults.push(path, "has neither content (base64) nor path (URL); must have exactly one");
            0
        }
    }
}

/// Checks the fields that mean the same on every channel.
fn options(command: &SendMessage, now: Timestamp, errors: &mut Vec<FieldError>) {
    check_metadata(command.metadata.as_ref(), errors);
    let mut faults = FieldErrors { errors };
    if let Some(validity) = command.validity_seconds
        && !(limits::VALIDITY_MIN..=limits::VALIDITY_MAX).contains(&validity)
    {
        faults.push("validitySeconds", format!("is {validity}; must be {} to {}", limits::VALIDITY_MIN, limits::VALIDITY_MAX));
    }
    let (least, most) = limits::FALLBACK_AFTER;
    if let Some(seconds) = command.fallback_after_seconds
        && !(least..=most).contains(&seconds)
    {
        faults.push("fallbackAfterSeconds", format!("is {seconds}; must be {least} to {most}"));
    }
    if let Some(at) = command.scheduled_at
        && at > now.plus(limits::SCHEDULE_AHEAD)
    {
        faults.push("scheduledAt", format!("{at} is more than 30 days ahead"));
    }
}
