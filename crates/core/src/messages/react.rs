//! `POST /v1/messages/{id}/reactions`.

use nuncio_domain::message::{Content, Direction, Status};
use nuncio_domain::{Error, ErrorCode, MessageId, MessageType, Permission, RequestedChannel, Result};
use nuncio_store::Operation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::command::SendMessage;
use super::routing::carries;
use super::send::SendOptions;
use super::view::MessageView;
use crate::{Caller, Core, StoreResultExt as _, parse_id};

/// A reaction to a message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReactToMessage)]
pub struct React {
    /// The emoji; empty takes the reaction back where the channel can.
    #[schema(max_length = 16, example = "👍")]
    pub emoji: String,
}

impl Core {
    /// Sends a reaction to whom a message went to or came from, by its sender and channel.
    pub async fn react_to_message(&self, caller: &Caller, id: &str, command: React, header: Option<String>) -> Result<MessageView> {
        caller.require(Permission::MessagesSend)?;
        let id: MessageId = parse_id(id, "message")?;
        let mut tx = self.inner.store.read().await.or_fail()?;
        let message = tx.lookup_messages(caller.tenant, &[id]).await.or_fail()?.pop().ok_or_else(|| Error::not_found("message"))?;
        drop(tx);
        let channel = message.state.route.channel;
        if !carries(channel, MessageType::Reaction) {
            let what = format!("channel {channel} carries no reactions; whatsapp, telegram and instagram do");
            return Err(Error::new(ErrorCode::InvalidRequest, what));
        }
        let there = [Status::Sent, Status::Delivered, Status::Read, Status::Received];
        if !there.contains(&message.state.status) {
            let allowed = there.map(Status::as_str);
            let what = "only a message that was sent or received can be reacted to";
            return Err(Error::wrong_state(what, message.state.status.as_str(), &allowed));
        }
        let to = if message.direction == Direction::Inbound { message.from } else { message.to };
        if to.is_empty() {
            return Err(Error::new(ErrorCode::InvalidRequest, "the contact was erased, so nobody is there to get a reaction"));
        }
        let content = Content { emoji: Some(command.emoji), react_to_message_id: Some(id.to_string()), ..Content::default() };
        let command = SendMessage {
            channel: Some(RequestedChannel::Only(channel)),
            message_type: Some(MessageType::Reaction),
            content: Some(Box::new(content)),
            fallback_enabled: Some(false),
            ..SendMessage::to(to)
        };
        let options = SendOptions { sender: Some(message.sender.to_string()), idempotency_key: header, lenient: false };
        self.send(caller, command, options, Operation::React).await
    }
}
