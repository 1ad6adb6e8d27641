//! Shared code of SMS adapters.

use std::borrow::Cow;

use nuncio_domain::address::sms_sender;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{MessageType, Timestamp, plain};

use crate::{Inbound, Origin, SendRequest};

/// Message types that an SMS can carry, as text where necessary.
pub static MESSAGE_TYPES: &[MessageType] = &[
    MessageType::Text,
    MessageType::Image,
    MessageType::Video,
    MessageType::Audio,
    MessageType::Document,
    MessageType::Location,
    MessageType::Contact,
    MessageType::Buttons,
    MessageType::List,
    MessageType::CtaUrl,
    MessageType::Template,
];

/// Returns the text of a message with its links and choices written out. Fails for types not in [`MESSAGE_TYPES`].
pub fn text<'a>(request: &SendRequest<'a>) -> Result<Cow<'a, str>, Failure> {
    let message = request.message;
    if !MESSAGE_TYPES.contains(&message.message_type) {
        let why = format!("an SMS cannot carry a message of type {}", message.message_type);
        return Err(Failure::own(FailureCode::ContentRejected, why));
    }
    Ok(plain::text(message.message_type, message.request.text.as_deref(), message.request.content.as_deref()))
}

/// Returns an inbound SMS. `from` and `to` are numbers, short codes or names as the provider writes them; `to` can be empty. `None` without an
/// author.
pub fn inbound(origin: Origin, id: String, [from, to]: [&str; 2], text: String, at: Timestamp) -> Option<Inbound> {
    let from = sms_sender(from, None);
    let to = Some(sms_sender(to, None)).filter(|to| !to.is_empty());
    (!from.is_empty()).then(|| Inbound { to, ..Inbound::text(origin, id, from, text, at) })
}
