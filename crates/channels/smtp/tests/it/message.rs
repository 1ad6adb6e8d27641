//! A message to send.

use std::sync::Arc;

use nuncio_domain::message::{Detail, Direction, Message, Route, State, Status, Wait};
use nuncio_domain::{Channel, MessageType, TenantId, Timestamp};

/// 2026-11-21T10:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000);

/// An empty text message to ada@example.net.
pub(crate) fn message() -> Message {
    let route = Route { channel: Channel::Email, connection: "cnx_01kahy0000e0000000000000aa".parse().unwrap(), provider: "smtp".into() };
    Message {
        tenant: TenantId(1),
        id: "msg_01kahy0000e0000000000000ab".parse().unwrap(),
        direction: Direction::Outbound,
        message_type: MessageType::Text,
        to: "ada@example.net".into(),
        from: String::new(),
        sender: "snd_01kahy0000e0000000000000ac".parse().unwrap(),
        address: "adr_01kahy0000e0000000000000ad".parse().unwrap(),
        request: Arc::new(serde_json::from_value(serde_json::json!({"requestedChannel": "email", "routing": {"reason": "test"}})).unwrap()),
        state: State {
            status: Status::Queued,
            wait: Wait::Attempt { due_at: NOW },
            fence: 0,
            version: 0,
            expires_at: NOW,
            updated_at: NOW,
            route,
            detail: Detail::default(),
        },
    }
}
