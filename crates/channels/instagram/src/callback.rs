//! Reads callbacks: messages, choices, reactions and read receipts. Pure.
//!
//! Sources: <https://developers.facebook.com/docs/instagram-platform/webhooks/examples>,
//! <https://developers.facebook.com/docs/messenger-platform/instagram/features/webhook>

use nuncio_channel::{CallError, CallbackRequest, Inbound, Media, ParsedCallback, ProviderEvent};
use nuncio_channel_meta::proved;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Button, Content};
use nuncio_domain::{MessageType, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::config::Config;

pub(crate) fn read(config: &Config, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
    match proved(&config.secrets, call)? {
        Some(verification) => Ok(verification),
        None => Ok(events(config, call)?.into()),
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    object: String,
    #[serde(borrow, default)]
    entry: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(default)]
    id: String,
    /// Read one by one: one that cannot be read must not affect the others.
    #[serde(borrow, default)]
    messaging: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Event<'a> {
    sender: Party,
    timestamp: Option<i64>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    reaction: Option<Reaction>,
    read: Option<Read>,
    postback: Option<Postback>,
}

#[derive(Deserialize)]
struct Party {
    id: String,
}

/// The fields that every message must have.
#[derive(Deserialize)]
struct Head {
    mid: String,
    #[serde(default)]
    is_echo: bool,
    #[serde(default)]
    is_deleted: bool,
}

/// The content of a message.
#[derive(Deserialize, Default)]
struct Body<'a> {
    text: Option<String>,
    quick_reply: Option<QuickReply>,
    reply_to: Option<ReplyTo>,
    /// Read one by one, too.
    #[serde(borrow, default)]
    attachments: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct QuickReply {
    payload: String,
}

#[derive(Deserialize)]
struct ReplyTo {
    mid: Option<String>,
}

#[derive(Deserialize)]
struct Attachment {
    #[serde(rename = "type", default)]
    kind: String,
    payload: Option<Payload>,
}

#[derive(Deserialize, Default)]
struct Payload {
    url: Option<String>,
    title: Option<String>,
}

#[derive(Deserialize)]
struct Reaction {
    mid: String,
    #[serde(default)]
    action: String,
    emoji: Option<String>,
}

#[derive(Deserialize)]
struct Read {
    mid: String,
}

#[derive(Deserialize)]
struct Postback {
    mid: Option<String>,
    #[serde(default)]
    title: String,
    #[serde(default)]
    payload: String,
}

fn events(config: &Config, call: &CallbackRequest<'_>) -> Result<Vec<ProviderEvent>, CallError> {
    // The error's own text would quote the message.
    let envelope: Envelope<'_> = serde_json::from_slice(call.body)
        .map_err(|e| CallError::malformed(format!("not a callback of Meta (line {}, column {})", e.line(), e.column())))?;
    if envelope.object != "instagram" {
        return Ok(Vec::new());
    }
    // All accounts of an app can share one callback URL.
    let ours = envelope.entry.into_iter().filter(|entry| entry.id == config.account_id);
    Ok(ours.flat_map(|entry| entry.messaging).filter_map(|raw| event(config, call.now, raw.get())).collect())
}

fn event(config: &Config, now: Timestamp, json: &str) -> Option<ProviderEvent> {
    let event: Event<'_> = serde_json::from_str(json).ok()?;
    let from = event.sender.id;
    // The account's own messages are echoed: nuncio sent them, or they were written in the app.
    if from.is_empty() || from == config.account_id || !from.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let context = EventContext { config, from, at: event.timestamp.map_or(now, Timestamp::from_millis) };
    if let Some(read) = event.read {
        return Some(context.read(read, json));
    }
    let said = event.message.and_then(|raw| context.message(raw.get()));
    let said = said.or_else(|| event.postback.map(|postback| context.postback(postback)));
    said.or_else(|| event.reaction.map(|reaction| context.reaction(reaction))).map(ProviderEvent::Inbound)
}

/// What the events of one sender share.
struct EventContext<'a> {
    config: &'a Config,
    from: String,
    at: Timestamp,
}

impl EventContext<'_> {
    fn inbound(&self, id: String, text: String) -> Inbound {
        Inbound::text(self.config.graph.endpoint.origin, id, self.from.clone(), text, self.at)
    }

    fn read(&self, read: Read, raw: &str) -> ProviderEvent {
        let target = self.config.graph.endpoint.origin.reference(read.mid);
        ProviderEvent::Receipt { target, kind: ReceiptKind::Read, at: self.at, raw: Some(raw.to_owned()) }
    }

    fn message(&self, json: &str) -> Option<Inbound> {
        let head: Head = serde_json::from_str(json).ok()?;
        if head.is_echo || head.is_deleted || head.mid.is_empty() {
            return None;
        }
        // A message whose content cannot be read is still reported, because it opens the conversation.
        let Body { text, quick_reply, reply_to, attachments }: Body<'_> = serde_json::from_str(json).unwrap_or_default();
        let mut inbound = self.inbound(head.mid, text.unwrap_or_default());
        inbound.replies_to = reply_to.and_then(|to| to.mid);
        inbound.content = quick_reply.map(|reply| pressed(reply.payload, &inbound.text));
        let attachments = attachments.into_iter().flatten().filter_map(|raw| serde_json::from_str(raw.get()).ok());
        attachments.for_each(|attachment| attach(&mut inbound, attachment));
        Some(inbound)
    }

    /// A postback without an id is identified by its time.
    fn postback(&self, postback: Postback) -> Inbound {
        let Postback { mid, title, payload } = postback;
        let id = mid.unwrap_or_else(|| format!("postback:{}:{}", self.from, self.at.millis()));
        let content = pressed(payload, &title);
        Inbound { content: Some(content), ..self.inbound(id, title) }
    }

    /// A reaction has no id, and a message can get one, lose it and get another.
    fn reaction(&self, reaction: Reaction) -> Inbound {
        let Reaction { mid, action, emoji } = reaction;
        let mut inbound = self.inbound(format!("{action}:{}:{mid}", self.at.millis()), String::new());
        let emoji = if action == "unreact" { String::new() } else { emoji.unwrap_or_default() };
        inbound.message_type = MessageType::Reaction;
        inbound.content = Some(Box::new(Content { emoji: Some(emoji), react_to_message_id: Some(mid), ..Content::default() }));
        inbound
    }
}

fn pressed(id: String, title: &str) -> Box<Content> {
    let button = Button { id, title: title.to_owned() };
    Box::new(Content { buttons: Some(vec![button]), ..Content::default() })
}

/// Files are media. Everything else that is shared, such as a mention in a story, a post or a reel, is reported as its title and URL.
fn attach(inbound: &mut Inbound, attachment: Attachment) {
    let Attachment { kind, payload } = attachment;
    let Payload { url, title } = payload.unwrap_or_default();
    let (message_type, usual) = match kind.as_str() {
        "image" => (MessageType::Image, "image/jpeg"),
        "video" => (MessageType::Video, "video/mp4"),
        "audio" => (MessageType::Audio, "audio/mp4"),
        "file" => (MessageType::Document, "application/octet-stream"),
        _ => {
            let lines = [Some(std::mem::take(&mut inbound.text)), title, url];
            inbound.text = lines.into_iter().flatten().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
            return;
        }
    };
    let Some(reference) = url else { return };
    if inbound.media.is_empty() {
        inbound.message_type = message_type;
    }
    inbound.media.push(Media { reference, filename: None, content_type: usual.to_owned(), content_id: None, bytes: None });
}
