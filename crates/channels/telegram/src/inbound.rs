//! Maps updates to events. Pure.

use nuncio_channel::{Inbound, Media, Origin, ProviderEvent};
use nuncio_domain::message::{Button, Card, Content};
use nuncio_domain::{MessageType, Timestamp};

use crate::outbound::reference;
use crate::wire::{self, CallbackQuery, Chat, Message, Reaction, Update, User};

/// The bot that receives the updates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bot {
    pub(crate) origin: Origin,
    /// The bot's user id.
    pub(crate) id: i64,
}

/// What an update contains.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Received {
    pub(crate) event: Option<ProviderEvent>,
    /// The query of a pressed button, which shows progress until the query is answered.
    pub(crate) pressed: Option<String>,
}

impl Bot {
    /// Reads an update received at `now`. Unknown kinds, edited messages and service messages have no event.
    pub(crate) fn read(&self, update: Update, now: Timestamp) -> Received {
        let pressed = update.callback_query.as_ref().map(|query| query.id.clone());
        let inbound = match update {
            Update { message: Some(message), .. } => self.message(message),
            Update { callback_query: Some(query), .. } => self.choice(query, now),
            Update { message_reaction: Some(reaction), update_id, .. } => self.reaction(&reaction, update_id),
            Update { my_chat_member: Some(member), .. } if member.new_chat_member.status == "kicked" => {
                // The bot was blocked, or removed from a group.
                let event = self.origin.opted_out(member.chat.id.to_string(), Some(seconds(member.date)));
                return Received { event: Some(event), pressed };
            }
            _ => None,
        };
        Received { event: inbound.map(ProviderEvent::Inbound), pressed }
    }

    /// A text in `chat`. In a group, replies go to the group, so the group counts as the sender.
    fn inbound(&self, chat: i64, id: String, text: String, at: Timestamp) -> Inbound {
        Inbound::text(self.origin, id, chat.to_string(), text, at)
    }

    fn message(&self, mut message: Message) -> Option<Inbound> {
        let (message_type, content, media) = said(&mut message)?;
        let text = without_bot_name(message.text.or(message.caption).unwrap_or_default());
        let chat = message.chat;
        let mut inbound = self.inbound(chat.id, reference(chat.id, message.message_id), text, seconds(message.date));
        let of_ours = |m: &Message| m.from.as_ref().is_some_and(|from| from.id == self.id);
        inbound.replies_to = message.reply_to_message.filter(|m| of_ours(m)).map(|m| reference(chat.id, m.message_id));
        inbound.profile_name = chat_name(&chat);
        inbound.message_type = message_type;
        inbound.content = content.map(Box::new);
        inbound.media = media;
        Some(inbound)
    }

    /// Parses a pressed button or row. Its title is in the message's keyboard, which very old messages lack.
    fn choice(&self, query: CallbackQuery, now: Timestamp) -> Option<Inbound> {
        let id = query.data?;
        let CallbackQuery { message, from, .. } = query;
        let keys = message.iter().filter_map(|m| m.reply_markup.as_ref()).flat_map(|k| k.inline_keyboard.iter().flatten());
        let title =
            keys.into_iter().find(|key| key.callback_data.as_deref() == Some(&id)).map_or_else(|| id.clone(), |key| key.text.clone());
        let chat = message.as_ref().map_or(from.id, |m| m.chat.id);
        let mut inbound = self.inbound(chat, format!("callback:{}", query.id), title.clone(), now);
        inbound.replies_to = message.as_ref().map(|m| reference(chat, m.message_id));
        inbound.profile_name = message.and_then(|m| chat_name(&m.chat)).or_else(|| user_name(&from));
        inbound.content = Some(Box::new(Content { buttons: Some(vec![Button { id, title }]), ..Content::default() }));
        Some(inbound)
    }

    /// Returns the added emoji; empty if none is left. Custom emojis are ignored.
    fn reaction(&self, reaction: &Reaction, update: i64) -> Option<Inbound> {
        let old: Vec<_> = reaction.old_reaction.iter().filter_map(|r| r.emoji.as_ref()).collect();
        let added = reaction.new_reaction.iter().filter_map(|r| r.emoji.as_ref()).find(|emoji| !old.contains(emoji));
        let emoji = match added {
            Some(emoji) => emoji.clone(),
            None if reaction.new_reaction.is_empty() => String::new(),
            None => return None,
        };
        let chat = &reaction.chat;
        let mut inbound = self.inbound(chat.id, format!("update:{update}"), String::new(), seconds(reaction.date));
        inbound.message_type = MessageType::Reaction;
        inbound.profile_name = chat_name(chat);
        let react_to = Some(reference(chat.id, reaction.message_id));
        inbound.content = Some(Box::new(Content { emoji: Some(emoji), react_to_message_id: react_to, ..Content::default() }));
        Some(inbound)
    }
}

fn seconds(unix: i64) -> Timestamp {
    Timestamp::from_millis(unix.saturating_mul(1_000))
}

fn chat_name(chat: &Chat) -> Option<String> {
    chat.title.clone().or_else(|| full_name(chat.first_name.as_deref(), chat.last_name.as_deref()))
}

fn user_name(user: &User) -> Option<String> {
    full_name(Some(&user.first_name), user.last_name.as_deref())
}

fn full_name(first: Option<&str>, last: Option<&str>) -> Option<String> {
    let parts: Vec<_> = [first, last].into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Removes the bot's name from a command. Clients complete commands in groups: `/stop@AcmeBot`.
fn without_bot_name(mut text: String) -> String {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    if let Some(at) = text[..end].find('@').filter(|_| text.starts_with('/')) {
        text.replace_range(at..end, "");
    }
    text
}

/// Returns the type of a message and its content beyond text; `None` for service messages and unsupported types.
fn said(message: &mut Message) -> Option<(MessageType, Option<Content>, Vec<Media>)> {
    // A venue's location and an animation's document are repeated at the top level.
    if let Some((message_type, media)) = media(message) {
        return Some((message_type, None, vec![media]));
    }
    if let Some(venue) = message.venue.take() {
        let content = Content { location_name: Some(venue.title), location_address: Some(venue.address), ..position(&venue.location) };
        return Some((MessageType::Location, Some(content), Vec::new()));
    }
    if let Some(location) = message.location.take() {
        return Some((MessageType::Location, Some(position(&location)), Vec::new()));
    }
    if let Some(contact) = message.contact.take() {
        let name = full_name(Some(&contact.first_name), contact.last_name.as_deref()).unwrap_or_default();
        let cards = vec![Card { name, phones: vec![contact.phone_number] }];
        return Some((MessageType::Contact, Some(Content { contacts: Some(cards), ..Content::default() }), Vec::new()));
    }
    message.text.is_some().then_some((MessageType::Text, None, Vec::new()))
}

fn position(location: &wire::Location) -> Content {
    Content { latitude: Some(location.latitude), longitude: Some(location.longitude), ..Content::default() }
}

fn media(message: &mut Message) -> Option<(MessageType, Media)> {
    use MessageType::{Audio, Document, Image, Sticker, Video};
    let largest = message.photo.drain(..).max_by_key(|size| size.width);
    let (message_type, media, usual) = [
        (Image, largest, "image/jpeg"),
        (Video, message.animation.take(), "video/mp4"),
        (Video, message.video.take(), "video/mp4"),
        (Video, message.video_note.take(), "video/mp4"),
        (Audio, message.audio.take(), "audio/mpeg"),
        (Audio, message.voice.take(), "audio/ogg"),
        (Document, message.document.take(), "application/octet-stream"),
        (Sticker, message.sticker.take(), "image/webp"),
    ]
    .into_iter()
    .find_map(|(message_type, media, usual)| media.map(|media| (message_type, media, usual)))?;
    let usual = match (media.is_animated, media.is_video) {
        (true, _) => "application/x-tgsticker",
        (_, true) => "video/webm",
        _ => usual,
    };
    let content_type = media.mime_type.unwrap_or_else(|| usual.to_owned());
    Some((message_type, Media { reference: media.file_id, filename: media.file_name, content_type, content_id: None, bytes: None }))
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;
