//! Shared code of SMS adapters.

use std::borrow::Cow;

use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{MessageType, plain};

use crate::SendRequest;

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
