//! Content of a broadcast: as a message, and as a fingerprint for reviews.

use nuncio_domain::broadcast::{Broadcast, BroadcastType};

use crate::base::idempotency;
use crate::messages::SendMessage;

/// Returns a message of the broadcast, without a recipient.
pub(super) fn message(broadcast: &Broadcast) -> SendMessage {
    SendMessage {
        channel: Some(broadcast.channel.requested()),
        message_type: Some(broadcast.message_type.message_type()),
        text: broadcast.body.text.clone(),
        content: broadcast.body.content.clone(),
        ..SendMessage::to(String::new())
    }
}

/// Returns whether the content is a template.
pub(super) fn is_template(broadcast: &Broadcast) -> bool {
    broadcast.message_type == BroadcastType::Template
}

/// Returns a hash of the content that a review covers.
pub(super) fn fingerprint(broadcast: &Broadcast) -> String {
    let body = &broadcast.body;
    let bytes = idempotency::fingerprint(&(&body.text, &body.content, &body.email_subject, &broadcast.html, &body.variables));
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
