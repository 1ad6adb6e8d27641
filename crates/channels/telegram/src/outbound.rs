//! What a message of any type is in calls of the Bot API. Pure.

use std::borrow::Cow;
use std::sync::LazyLock;

use nuncio_channel::{ResolvedAttachment, SendRequest};
use nuncio_domain::message::{Content, CtaHeaderType, Failure, FailureCode};
use nuncio_domain::{MessageType, limits};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::api::{ApiCall, File, Source};

/// Longest `callback_data`, in bytes: <https://core.telegram.org/bots/api#inlinekeyboardbutton>.
const CALLBACK_DATA: usize = 64;

static NO_CONTENT: LazyLock<Content> = LazyLock::new(Content::default);

/// The calls that send a message, in order, or why it cannot be sent.
pub(crate) fn calls<'a>(request: &SendRequest<'a>) -> Result<Vec<ApiCall<'a>>, Failure> {
    let message = request.message;
    let chat: i64 = message.to.parse().map_err(|_| {
        Failure::own(FailureCode::InvalidRecipient, format!("{:?} is not a Telegram chat id, which is a whole number", message.to))
    })?;
    let text = message.request.text.as_deref().unwrap_or_default();
    let content = message.request.content.as_deref().unwrap_or(&NO_CONTENT);
    let files = request.attachments;
    let media = |kind| Media { kind, content, files, chat, caption: text }.call().map(one);
    if !files.is_empty() && !carries_file(message.message_type) {
        return Err(refused(format!("a message of type {} carries no file; send it as document", message.message_type)));
    }
    match message.message_type {
        // Templates are already rendered as text.
        MessageType::Text | MessageType::Template => Ok(one(send_text(chat, text.to_owned()))),
        MessageType::Image => media(if is_gif(content) { MediaKind::Animation } else { MediaKind::Photo }),
        MessageType::Video => media(MediaKind::Video),
        MessageType::Audio => media(if is_voice(content) { MediaKind::Voice } else { MediaKind::Audio }),
        MessageType::Document => media(MediaKind::Document),
        MessageType::Sticker => media(MediaKind::Sticker),
        MessageType::Location => Ok(one(location(chat, content))),
        MessageType::Contact => Ok(contacts(chat, content)),
        MessageType::Buttons => Ok(one(buttons(chat, text, content))),
        MessageType::List => Ok(one(list(chat, text, content))),
        MessageType::CtaUrl => Ok(one(call_to_action(chat, text, content))),
        MessageType::Reaction => reaction(chat, content).map(one),
    }
}

fn one<T>(only: T) -> Vec<T> {
    vec![only]
}

fn refused(message: impl Into<String>) -> Failure {
    Failure::own(FailureCode::ContentRejected, message)
}

const fn carries_file(message_type: MessageType) -> bool {
    use MessageType::{Audio, Document, Image, Sticker, Video};
    matches!(message_type, Image | Video | Audio | Document | Sticker)
}

fn send_text(chat: i64, text: String) -> ApiCall<'static> {
    ApiCall::new("sendMessage", json!({"chat_id": chat, "text": text}))
}

/// The kinds of media: the method, and the parameter that the file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MediaKind {
    Photo,
    Animation,
    Video,
    Audio,
    Voice,
    Document,
    Sticker,
}

impl MediaKind {
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Photo => ("sendPhoto", "photo"),
            Self::Animation => ("sendAnimation", "animation"),
            Self::Video => ("sendVideo", "video"),
            Self::Audio => ("sendAudio", "audio"),
            Self::Voice => ("sendVoice", "voice"),
            Self::Document => ("sendDocument", "document"),
            Self::Sticker => ("sendSticker", "sticker"),
        }
    }
}

fn is_gif(content: &Content) -> bool {
    content.mime_type.as_deref() == Some("image/gif")
}

/// What Telegram plays as a voice message; `sendAudio` wants MP3 or M4A.
fn is_voice(content: &Content) -> bool {
    content.mime_type.as_deref().is_some_and(|t| t.starts_with("audio/ogg"))
}

struct Media<'a> {
    kind: MediaKind,
    content: &'a Content,
    files: &'a [ResolvedAttachment],
    chat: i64,
    caption: &'a str,
}

impl<'a> Media<'a> {
    fn call(self) -> Result<ApiCall<'a>, Failure> {
        let (method, parameter) = self.kind.names();
        let mut call = ApiCall::new(method, json!({"chat_id": self.chat}));
        if !self.caption.is_empty() && self.kind != MediaKind::Sticker {
            call.parameters.insert("caption".to_owned(), self.caption.into());
        }
        match (self.files, &self.content.media_id, &self.content.media_url) {
            ([file], ..) => call.file = Some(upload(parameter, file)),
            ([_, _, ..], ..) => return Err(refused("a message carries one file; send the others by messages of their own")),
            ([], Some(id), _) if !is_file_id(id) => {
                return Err(refused("content.mediaId is not a file_id of Telegram, which consists of letters, digits, - and _"));
            }
            ([], Some(id), _) => {
                call.parameters.insert(parameter.to_owned(), id.as_str().into());
            }
            ([], None, Some(url)) => link(&mut call, self.kind, url, self.content),
            ([], None, None) => return Err(refused("there is neither a file nor content.mediaUrl nor content.mediaId")),
        }
        Ok(call)
    }
}

/// Whether this can be a `file_id`, which is base64url. A self-hosted Bot API server takes `file://` as a file of its machine
/// (<https://core.telegram.org/bots/api#using-a-local-bot-api-server>).
fn is_file_id(id: &str) -> bool {
    id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn upload<'a>(parameter: &'static str, file: &'a ResolvedAttachment) -> File<'a> {
    File {
        parameter,
        name: file.filename.as_str().into(),
        content_type: file.content_type.as_str().into(),
        source: Source::Bytes(file.bytes.as_slice().into()),
    }
}

/// Adds media by its URL.
fn link<'a>(call: &mut ApiCall<'a>, kind: MediaKind, url: &'a str, content: &'a Content) {
    let (_, parameter) = kind.names();
    if kind == MediaKind::Document && !telegram_fetches(url, content) {
        call.file = Some(fetched(parameter, url, content));
    } else {
        call.parameters.insert(parameter.to_owned(), url.into());
    }
}

/// Whether Telegram fetches a document itself: only PDF and ZIP, and under the name that it has there
/// (<https://core.telegram.org/bots/api#sending-files>).
fn telegram_fetches(url: &str, content: &Content) -> bool {
    let name = name_in(url);
    let suffix = name.rsplit_once('.').map(|(_, suffix)| suffix.to_ascii_lowercase());
    matches!(suffix.as_deref(), Some("pdf" | "zip")) && content.filename.as_deref().is_none_or(|wanted| wanted == name)
}

fn name_in(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}

fn fetched<'a>(parameter: &'static str, url: &'a str, content: &'a Content) -> File<'a> {
    let name = content.filename.as_deref().unwrap_or_else(|| name_in(url));
    File {
        parameter,
        name: if name.is_empty() { "document" } else { name }.into(),
        content_type: content.mime_type.as_deref().unwrap_or_default().into(),
        source: Source::Url(url),
    }
}

fn location(chat: i64, content: &Content) -> ApiCall<'static> {
    let (latitude, longitude) = (content.latitude.unwrap_or_default(), content.longitude.unwrap_or_default());
    let mut parameters = json!({"chat_id": chat, "latitude": latitude, "longitude": longitude});
    let [name, address] = [&content.location_name, &content.location_address].map(|t| t.as_deref().filter(|t| !t.is_empty()));
    let Some(title) = name.or(address) else { return ApiCall::new("sendLocation", parameters) };
    // A venue needs both.
    let address = address.map_or_else(|| format!("{latitude}, {longitude}"), str::to_owned);
    parameters["title"] = title.into();
    parameters["address"] = address.into();
    ApiCall::new("sendVenue", parameters)
}

/// One for each phone: a contact of Telegram has one.
fn contacts(chat: i64, content: &Content) -> Vec<ApiCall<'static>> {
    let cards = content.contacts.as_deref().unwrap_or_default();
    let phones = cards.iter().flat_map(|card| card.phones.iter().map(|phone| (&card.name, phone)));
    phones.map(|(name, phone)| ApiCall::new("sendContact", json!({"chat_id": chat, "phone_number": phone, "first_name": name}))).collect()
}

fn buttons(chat: i64, text: &str, content: &Content) -> ApiCall<'static> {
    let choices = content.buttons.iter().flatten().map(|b| (b.title.as_str(), b.id.as_str()));
    with_keyboard(chat, &paragraphs([Some(text), content.footer_text.as_deref()]), choices_keyboard(choices))
}

fn list(chat: i64, text: &str, content: &Content) -> ApiCall<'static> {
    let sections = content.sections.as_deref().unwrap_or_default();
    let described: Vec<String> = sections
        .iter()
        .map(|section| {
            let rows = section.rows.iter().filter_map(|row| row.description.as_ref().map(|d| format!("{}: {d}", row.title)));
            let heading = Some(section.title.clone()).filter(|title| !title.is_empty());
            heading.into_iter().chain(rows).collect::<Vec<_>>().join("\n")
        })
        .collect();
    let parts = std::iter::once(text).chain(described.iter().map(String::as_str)).chain(content.footer_text.as_deref());
    let rows = sections.iter().flat_map(|s| &s.rows).map(|row| (row.title.as_str(), row.id.as_str()));
    with_keyboard(chat, &paragraphs(parts.map(Some)), choices_keyboard(rows))
}

fn call_to_action<'a>(chat: i64, text: &str, content: &'a Content) -> ApiCall<'a> {
    let (label, url) = (content.cta_display_text.as_deref().unwrap_or_default(), content.cta_url.as_deref().unwrap_or_default());
    let keyboard = json!([[{"text": label, "url": url}]]);
    let words = paragraphs([content.cta_header_text.as_deref(), Some(text), content.footer_text.as_deref()]);
    let kind = match content.cta_header_type {
        Some(CtaHeaderType::Image) => MediaKind::Photo,
        Some(CtaHeaderType::Video) => MediaKind::Video,
        Some(CtaHeaderType::Document) => MediaKind::Document,
        Some(CtaHeaderType::Text) | None => return with_keyboard(chat, &words, keyboard),
    };
    let Some(media) = content.cta_header_media_url.as_deref() else { return with_keyboard(chat, &words, keyboard) };
    if words.chars().count() > limits::CAPTION {
        return with_keyboard(chat, &paragraphs([Some(media), Some(&words)]), keyboard);
    }
    let (method, _) = kind.names();
    let mut call = ApiCall::new(method, json!({"chat_id": chat, "caption": words, "reply_markup": {"inline_keyboard": keyboard}}));
    link(&mut call, kind, media, content);
    call
}

fn with_keyboard(chat: i64, text: &str, keyboard: Value) -> ApiCall<'static> {
    ApiCall::new("sendMessage", json!({"chat_id": chat, "text": text, "reply_markup": {"inline_keyboard": keyboard}}))
}

/// One choice a row, so that none is cut on a narrow screen.
fn choices_keyboard<'a>(choices: impl Iterator<Item = (&'a str, &'a str)>) -> Value {
    choices.enumerate().map(|(n, (title, id))| json!([{"text": title, "callback_data": callback_data(n, id)}])).collect()
}

/// Returns the callback data of a choice: its id; or, if that is too long for Telegram, `~`, its position from 0, `~`, and the first 16
/// hexadecimal digits of the SHA-256 of its id.
fn callback_data(place: usize, id: &str) -> Cow<'_, str> {
    if id.len() <= CALLBACK_DATA {
        return id.into();
    }
    format!("~{place}~{}", hex::encode(&Sha256::digest(id)[..8])).into()
}

fn paragraphs<'a>(parts: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

fn reaction(chat: i64, content: &Content) -> Result<ApiCall<'static>, Failure> {
    let target = content.react_to_message_id.as_deref().unwrap_or_default();
    let Some(message) = message_in(chat, target) else {
        return Err(refused(format!("{target:?} names no message of Telegram in this chat")));
    };
    let emoji = content.emoji.as_deref().unwrap_or_default();
    // An empty list removes the reaction: https://core.telegram.org/bots/api#setmessagereaction
    let reaction = if emoji.is_empty() { json!([]) } else { json!([{"type": "emoji", "emoji": emoji}]) };
    Ok(ApiCall::new("setMessageReaction", json!({"chat_id": chat, "message_id": message, "reaction": reaction})))
}

/// Our name for a message of Telegram, whose own is unique in its chat only.
pub(crate) fn reference(chat: impl std::fmt::Display, message: i64) -> String {
    format!("{chat}:{message}")
}

/// The id within `chat` of the message that [`reference`] named.
fn message_in(chat: i64, reference: &str) -> Option<i64> {
    let (there, message) = reference.split_once(':')?;
    let here = there.parse::<i64>().is_ok_and(|there| there == chat);
    message.parse().ok().filter(|_| here)
}

#[cfg(test)]
#[path = "outbound_tests.rs"]
mod tests;
