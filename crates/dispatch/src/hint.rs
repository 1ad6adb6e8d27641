//! Hints: in-memory notes of messages that wait for an attempt.

use nuncio_domain::message::Message;
use nuncio_domain::{ConnectionId, MessageId, TenantId};

/// A message waiting for its next attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint {
    pub tenant: TenantId,
    pub id: MessageId,
    pub fence: i64,
    /// Connection of its next attempt.
    pub connection: ConnectionId,
    /// Whether it yields to others.
    pub bulk: bool,
    /// Bytes of the request that its attempt must load from the spool; 0 if the row holds it all.
    pub bytes: usize,
}

impl Hint {
    /// Names a message that waits for an attempt.
    pub fn of(message: &Message) -> Self {
        Self {
            tenant: message.tenant,
            id: message.id,
            fence: message.state.fence,
            connection: message.state.route.connection,
            bulk: message.state.detail.broadcast.is_some(),
            bytes: message.request.spooled_bytes(),
        }
    }
}
