//! Parses inbound messages. Pure, except for warnings.
//!
//! Source: <https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/components>

use std::collections::HashMap;

use nuncio_channel::{Inbound, Media};
use nuncio_channel_http::unix_seconds;
use nuncio_domain::message::{Button, Card, Content, Row, Section};
use nuncio_domain::{MessageType, Timestamp};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::config::Cloud;

/// The author, as shown in the app.
#[derive(Deserialize)]
pub(crate) struct Person {
    #[serde(default)]
    pub(crate) wa_id: String,
    #[serde(default)]
    profile: Profile,
}

#[derive(Deserialize, Default)]
struct Profile {
    name: Option<String>,
}

/// The fields of every message.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    from: String,
    /// Set for people with a user name, who may have no `from`.
    from_user_id: Option<IgnoredAny>,
    id: String,
    #[serde(default)]
    timestamp: String,
    #[serde(rename = "type", default)]
    kind: String,
    context: Option<Context>,
}

/// Content by message type.
#[derive(Deserialize, Default)]
struct MessageContent {
    text: Option<Text>,
    image: Option<File>,
    video: Option<File>,
    audio: Option<File>,
    document: Option<File>,
    sticker: Option<File>,
    location: Option<Location>,
    contacts: Option<Vec<Contact>>,
    interactive: Option<Interactive>,
    button: Option<TemplateButton>,
    reaction: Option<Reaction>,
}

#[derive(Deserialize)]
struct Text {
    body: String,
}

#[derive(Deserialize)]
struct File {
    id: String,
    #[serde(default)]
    mime_type: String,
    filename: Option<String>,
    caption: Option<String>,
}

#[derive(Deserialize)]
struct Location {
    latitude: f64,
    longitude: f64,
    name: Option<String>,
    address: Option<String>,
}

#[derive(Deserialize)]
struct Contact {
    #[serde(default)]
    name: ContactName,
    #[serde(default)]
    phones: Vec<Phone>,
}

#[derive(Deserialize, Default)]
struct ContactName {
    #[serde(default)]
    formatted_name: String,
}

#[derive(Deserialize)]
struct Phone {
    phone: Option<String>,
    wa_id: Option<String>,
}

#[derive(Deserialize)]
struct Interactive {
    button_reply: Option<Reply>,
    list_reply: Option<Reply>,
    nfm_reply: Option<FormReply>,
}

#[derive(Deserialize)]
struct Reply {
    id: String,
    #[serde(default)]
    title: String,
    description: Option<String>,
}

#[derive(Deserialize)]
struct FormReply {
    #[serde(default)]
    body: String,
}

#[derive(Deserialize)]
struct TemplateButton {
    #[serde(default)]
    payload: String,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Reaction {
    message_id: String,
    #[serde(default)]
    emoji: String,
}

#[derive(Deserialize)]
struct Context {
    id: Option<String>,
}

/// Types that are not messages: notices, and changes of earlier messages.
const NOTICES: [&str; 3] = ["system", "edit", "revoke"];

/// Parses a message. `None` if it is not a message, or has no phone number.
pub(crate) fn read(cloud: &Cloud, now: Timestamp, json: &str, people: &HashMap<String, Person>) -> Option<Inbound> {
    let head: Head = cloud.parse("message", json)?;
    if head.id.is_empty() || NOTICES.contains(&head.kind.as_str()) {
        return None;
    }
    if head.from.is_empty() && head.from_user_id.is_some() {
        let connection = cloud.graph.endpoint.origin.connection;
        cloud.warned.call_once(|| {
            tracing::warn!(%connection, "ignored a WhatsApp message of a person with a user name and no phone number; will ignore others silently");
        });
    }
    if head.from.is_empty() || !head.from.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let person = people.get(&head.from);
    let mut inbound =
        Inbound::text(cloud.graph.endpoint.origin, head.id, number(&head.from), String::new(), unix_seconds(&head.timestamp, now));
    inbound.profile_name = person.and_then(|person| person.profile.name.clone()).filter(|name| !name.is_empty());
    inbound.replies_to = head.context.and_then(|context| context.id);
    // A message whose content cannot be parsed is still reported, because it opens the conversation.
    say(&mut inbound, cloud.parse("content", json).unwrap_or_default());
    Some(inbound)
}

/// The phone number of a WhatsApp id. Ids in Mexico can have a 1 that mobile numbers lost, and ids in Brazil lack the 9 that they got
/// (<https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/send-messages>, "phone number formats").
pub(crate) fn number(wa_id: &str) -> String {
    if let Some(mexican) = wa_id.strip_prefix("521").filter(|rest| rest.len() == 10) {
        return format!("+52{mexican}");
    }
    match wa_id.strip_prefix("55").and_then(|rest| rest.split_at_checked(2)) {
        // Landlines begin with 2 to 5, and keep their eight digits.
        Some((area, mobile)) if mobile.len() == 8 && mobile.starts_with(['6', '7', '8', '9']) => format!("+55{area}9{mobile}"),
        _ => format!("+{wa_id}"),
    }
}

fn say(inbound: &mut Inbound, parts: MessageContent) {
    let MessageContent { text, image, video, audio, document, sticker, location, contacts, interactive, button, reaction } = parts;
    let files = [
        (MessageType::Image, image),
        (MessageType::Video, video),
        (MessageType::Audio, audio),
        (MessageType::Document, document),
        (MessageType::Sticker, sticker),
    ];
    if let Some(text) = text {
        inbound.text = text.body;
    }
    for (message_type, file) in files.into_iter().filter_map(|(message_type, file)| Some((message_type, file?))) {
        inbound.message_type = message_type;
        inbound.text = file.caption.unwrap_or_default();
        let media = Media { reference: file.id, filename: file.filename, content_type: file.mime_type, content_id: None, bytes: None };
        inbound.media.push(media);
    }
    if let Some((title, content)) = interactive.map(choice).or_else(|| button.map(|b| pressed(b.payload, b.text))) {
        inbound.text = title;
        inbound.content = content.map(Box::new);
    }
    if let Some((message_type, content)) = location.map(place).or_else(|| contacts.map(cards)).or_else(|| reaction.map(react)) {
        inbound.message_type = message_type;
        inbound.content = Some(Box::new(content));
    }
}

fn choice(interactive: Interactive) -> (String, Option<Content>) {
    match interactive {
        Interactive { button_reply: Some(button), .. } => pressed(button.id, button.title),
        Interactive { list_reply: Some(Reply { id, title, description }), .. } => {
            let section = Section { title: String::new(), rows: vec![Row { id, title: title.clone(), description }] };
            (title, Some(Content { sections: Some(vec![section]), ..Content::default() }))
        }
        Interactive { nfm_reply: Some(form), .. } => (form.body, None),
        _ => (String::new(), None),
    }
}

fn pressed(id: String, title: String) -> (String, Option<Content>) {
    let button = Button { id, title: title.clone() };
    (title, Some(Content { buttons: Some(vec![button]), ..Content::default() }))
}

fn place(location: Location) -> (MessageType, Content) {
    let content = Content {
        latitude: Some(location.latitude),
        longitude: Some(location.longitude),
        location_name: location.name,
        location_address: location.address,
        ..Content::default()
    };
    (MessageType::Location, content)
}

fn cards(contacts: Vec<Contact>) -> (MessageType, Content) {
    let shown = |phone: Phone| phone.phone.or_else(|| Some(number(&phone.wa_id?)));
    let card =
        |contact: Contact| Card { name: contact.name.formatted_name, phones: contact.phones.into_iter().filter_map(shown).collect() };
    (MessageType::Contact, Content { contacts: Some(contacts.into_iter().map(card).collect()), ..Content::default() })
}

/// No emoji: the reaction was removed.
fn react(reaction: Reaction) -> (MessageType, Content) {
    let Reaction { message_id, emoji } = reaction;
    (MessageType::Reaction, Content { react_to_message_id: Some(message_id), emoji: Some(emoji), ..Content::default() })
}
