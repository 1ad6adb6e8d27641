//! Messages as the Cloud API takes them. Pure.
//!
//! Source: <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/messages>

use nuncio_channel::SendRequest;
use nuncio_domain::message::{Card, Content, CtaHeaderType, Failure, FailureCode, Section};
use nuncio_domain::{MessageId, MessageType};
use serde_json::{Map, Value, json};

use crate::{link, template};

/// Where the media of a message is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Meta fetches it.
    Link(String),
    /// Meta has it.
    Id(String),
}

impl Source {
    fn json(self) -> Map<String, Value> {
        let (name, value) = match self {
            Self::Link(url) => ("link", url),
            Self::Id(id) => ("id", id),
        };
        Map::from_iter([(name.to_owned(), value.into())])
    }
}

/// The name of a media type, both in `type` and as the object's name; `None` for what is not a media.
pub(crate) const fn media_name(message_type: MessageType) -> Option<&'static str> {
    match message_type {
        MessageType::Image => Some("image"),
        MessageType::Video => Some("video"),
        MessageType::Audio => Some("audio"),
        MessageType::Document => Some("document"),
        MessageType::Sticker => Some("sticker"),
        _ => None,
    }
}

/// The attempt, as statuses name it: at most 512 characters come back unchanged.
pub(crate) fn callback_data(message: MessageId, attempt: usize) -> String {
    format!("{message}/{attempt}")
}

pub(crate) fn read_callback_data(text: &str) -> Option<(MessageId, usize)> {
    let (message, attempt) = text.split_once('/')?;
    Some((message.parse().ok()?, attempt.parse().ok()?))
}

/// The body of the call that sends a message. `uploaded` is Meta's id of an attachment that was uploaded for it.
pub(crate) fn message(request: &SendRequest<'_>, uploaded: Option<&str>) -> Result<Value, Failure> {
    let message = request.message;
    let none = Content::default();
    let content = message.request.content.as_deref().unwrap_or(&none);
    let text = message.request.text.as_deref().unwrap_or_default();
    let (kind, object) = match message.message_type {
        MessageType::Text => ("text", json!({"body": text})),
        MessageType::Image | MessageType::Video | MessageType::Audio | MessageType::Document | MessageType::Sticker => {
            media(request, content, text, uploaded)?
        }
        MessageType::Location => ("location", location(content)),
        MessageType::Contact => ("contacts", content.contacts.iter().flatten().map(card).collect()),
        MessageType::Buttons => ("interactive", interactive("button", None, text, content, buttons(content))),
        MessageType::List => ("interactive", interactive("list", None, text, content, list(content))),
        MessageType::CtaUrl => ("interactive", interactive("cta_url", header(content), text, content, cta(content))),
        MessageType::Reaction => ("reaction", reaction(content)?),
        MessageType::Template => ("template", template::message(&message.request, content)?),
    };
    Ok(json!({
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": message.to.trim_start_matches('+'),
        "type": kind,
        kind: object,
        "biz_opaque_callback_data": callback_data(message.id, request.attempt),
    }))
}

fn refused(what: &str) -> Failure {
    Failure::own(FailureCode::ContentRejected, what)
}

fn media(request: &SendRequest<'_>, content: &Content, text: &str, uploaded: Option<&str>) -> Result<(&'static str, Value), Failure> {
    let message_type = request.message.message_type;
    let name = media_name(message_type).unwrap_or_default();
    let id = uploaded.map(str::to_owned).or_else(|| content.media_id.clone()).map(Source::Id);
    let source = id.or_else(|| content.media_url.clone().map(Source::Link));
    let mut object = source.ok_or_else(|| refused("there is neither mediaUrl nor mediaId nor an attachment"))?.json();
    if !text.is_empty() {
        if matches!(message_type, MessageType::Audio | MessageType::Sticker) {
            return Err(refused("WhatsApp shows no text with audio and stickers; send the text as a separate message"));
        }
        object.insert("caption".to_owned(), text.into());
    }
    let attached = || uploaded.and(request.attachments.first()).map(|attachment| attachment.filename.clone());
    let linked = || object.get("link").and_then(Value::as_str).and_then(link::filename);
    let filename = content.filename.clone().or_else(attached).or_else(linked);
    if let Some(filename) = filename.filter(|_| message_type == MessageType::Document) {
        object.insert("filename".to_owned(), filename.into());
    }
    Ok((name, object.into()))
}

/// An object of these fields, without those that are absent.
fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect::<Map<_, _>>().into()
}

fn text_value(text: Option<&String>) -> Option<Value> {
    text.filter(|text| !text.is_empty()).map(|text| text.clone().into())
}

fn location(content: &Content) -> Value {
    object([
        ("latitude", content.latitude.map(Value::from)),
        ("longitude", content.longitude.map(Value::from)),
        ("name", text_value(content.location_name.as_ref())),
        ("address", text_value(content.location_address.as_ref())),
    ])
}

/// Besides the formatted name WhatsApp wants one of its parts.
fn card(card: &Card) -> Value {
    let phones: Vec<_> = card.phones.iter().map(|phone| json!({"phone": phone})).collect();
    json!({"name": {"formatted_name": card.name, "first_name": card.name}, "phones": phones})
}

fn interactive(kind: &str, header: Option<Value>, text: &str, content: &Content, action: Value) -> Value {
    object([
        ("type", Some(kind.into())),
        ("header", header),
        ("body", Some(json!({"text": text}))),
        ("footer", text_value(content.footer_text.as_ref()).map(|text| json!({"text": text}))),
        ("action", Some(action)),
    ])
}

fn buttons(content: &Content) -> Value {
    let buttons = content.buttons.iter().flatten();
    let buttons: Vec<_> = buttons.map(|b| json!({"type": "reply", "reply": {"id": b.id, "title": b.title}})).collect();
    json!({"buttons": buttons})
}

fn list(content: &Content) -> Value {
    let sections: Vec<_> = content.sections.iter().flatten().map(section).collect();
    json!({"button": content.list_button, "sections": sections})
}

fn section(section: &Section) -> Value {
    let rows = section.rows.iter().map(|row| {
        object([
            ("id", Some(row.id.clone().into())),
            ("title", Some(row.title.clone().into())),
            ("description", text_value(row.description.as_ref())),
        ])
    });
    object([("title", text_value(Some(&section.title))), ("rows", Some(rows.collect()))])
}

/// The header, of the type that is said, or a text if none is.
fn header(content: &Content) -> Option<Value> {
    let link = |kind| Some((kind, link::media(kind, content.cta_header_media_url.as_ref()?)));
    let (kind, value) = match content.cta_header_type.unwrap_or(CtaHeaderType::Text) {
        CtaHeaderType::Text => ("text", text_value(content.cta_header_text.as_ref())?),
        CtaHeaderType::Image => link("image")?,
        CtaHeaderType::Video => link("video")?,
        CtaHeaderType::Document => link("document")?,
    };
    Some(json!({"type": kind, kind: value}))
}

fn cta(content: &Content) -> Value {
    json!({"name": "cta_url", "parameters": {"display_text": content.cta_display_text, "url": content.cta_url}})
}

fn reaction(content: &Content) -> Result<Value, Failure> {
    let id = content.react_to_message_id.as_deref().unwrap_or_default();
    if id.is_empty() || id.parse::<MessageId>().is_ok() {
        return Err(refused("a reaction needs WhatsApp's own id of the message, such as wamid.…; this one has none"));
    }
    Ok(json!({"message_id": id, "emoji": content.emoji.as_deref().unwrap_or_default()}))
}
