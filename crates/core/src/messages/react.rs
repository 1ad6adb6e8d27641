//! `POST /v1/messages/{id}/reactions`.

use nuncio_domain::message::{Content, Direction, Message, Status};
use nuncio_domain::{Error, ErrorCode, MessageId, MessageType, Recipient, RequestedChannel, Result, TenantId};
use nuncio_store::{Accept, IdempotentOperation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Messages, command::SendMessage, content, routing::carries, send::SendOptions, view::MessageView};
use crate::base::{Caller, UseCase, parse_id};

/// A reaction to a message.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReactToMessage)]
pub struct React {
    /// Exactly one emoji; empty removes the reaction where the channel supports it.
    #[schema(max_length = 16, example = "👍")]
    pub emoji: String,
}

impl Messages<'_> {
    /// Sends a reaction to the other party of a message, by its sender and channel.
    pub async fn react(&self, caller: &Caller, id: &str, command: React, header: Option<String>) -> Result<MessageView> {
        caller.require(UseCase::ReactToMessage)?;
        let id: MessageId = parse_id(id, "message")?;
        let mut errors = Vec::new();
        content::emoji("emoji", &command.emoji, &mut errors);
        let message = self.target(caller.tenant, id).await?.ok_or_else(|| Error::not_found("message"))?;
        Error::if_any(errors)?;
        let channel = message.state.route.channel;
        if !carries(channel, MessageType::Reaction) {
            let what = format!("channel {channel} does not support reactions; use whatsapp, telegram or instagram");
            return Err(Error::new(ErrorCode::InvalidRequest, what));
        }
        let to = peer(&message).to_owned();
        if to.is_empty() {
            return Err(Error::new(ErrorCode::InvalidRequest, "the contact was erased, so it cannot receive a reaction"));
        }
        let content = Content { emoji: Some(command.emoji), react_to_message_id: Some(id.to_string()), ..Content::default() };
        let command = SendMessage {
            channel: Some(RequestedChannel::Only(channel)),
            message_type: Some(MessageType::Reaction),
            content: Some(Box::new(content)),
            fallback_enabled: Some(false),
            ..SendMessage::to(to)
        };
        let options = SendOptions { sender: Some(message.sender.to_string()), idempotency_key: header, ..SendOptions::default() };
        self.send_as(caller, command, options, IdempotentOperation::React).await
    }

    /// Validates the target of a planned reaction: it must be in this environment and in the same conversation, because providers' message
    /// ids are only valid in one conversation.
    pub(super) async fn check_reaction(&self, planned: &Accept) -> Result<()> {
        const PATH: &str = "content.reactToMessageId";
        let reaction = &planned.message;
        let named = reaction.request.content.as_deref().and_then(|content| content.react_to_message_id.as_deref()).unwrap_or_default();
        let found = match named.parse() {
            Ok(id) => self.target(reaction.tenant, id).await?,
            Err(_) => None,
        };
        let Some(target) = found else {
            let shown: String = named.chars().take(64).collect();
            return Err(Error::not_found("message").at(PATH, format!("{shown:?} is not a message of this environment")));
        };
        let (channel, wanted) = (target.state.route.channel, reaction.state.route.channel);
        if channel != wanted {
            return Err(Error::field(
                PATH,
                format!("{named} is on channel {channel}, but the reaction is on {wanted}; they must be the same"),
            ));
        }
        if Recipient::canonical(channel, peer(&target)).as_ref() != Some(&planned.recipient) {
            return Err(Error::field(PATH, format!("{named} is in a conversation with a recipient other than {}", reaction.to)));
        }
        if target.sender != reaction.sender {
            let what = format!("{named} has sender {}, but the reaction has sender {}; set Service-Sender", target.sender, reaction.sender);
            return Err(Error::field(PATH, what));
        }
        if target.message_type == MessageType::Reaction {
            return Err(Error::field(PATH, format!("{named} is a reaction, which cannot be reacted to")));
        }
        was_exchanged(&target)
    }

    async fn target(&self, tenant: TenantId, id: MessageId) -> Result<Option<Message>> {
        Ok(self.inner.store.read().await?.lookup_messages(tenant, &[id]).await?.pop())
    }
}

/// Returns the other party of a message.
fn peer(message: &Message) -> &str {
    if message.direction == Direction::Inbound { &message.from } else { &message.to }
}

/// Fails unless both parties have the message.
fn was_exchanged(message: &Message) -> Result<()> {
    let there = [Status::Sent, Status::Delivered, Status::Read, Status::Received];
    if there.contains(&message.state.status) {
        return Ok(());
    }
    let what = "only a message that was sent or received can be reacted to";
    Err(Error::wrong_state(what, message.state.status.as_str(), &there.map(Status::as_str)))
}
