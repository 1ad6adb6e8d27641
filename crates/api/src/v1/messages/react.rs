//! `POST /v1/messages/{id}/reactions`.

use nuncio_core::messages::React;
use nuncio_domain::MessageId;

use super::get::MessageBody;
use super::send::MessageConflict;
use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, IdempotencyKey, Path};
use crate::reply::{Reply, Result};

/// React to a message
///
/// Sends an emoji as a message of type `reaction`, to the contact of the message, with the same sender and channel. WhatsApp, Telegram
/// and Instagram support reactions.
#[utoipa::path(
    post, path = "/v1/messages/{id}/reactions", tag = "Messages", request_body = React,
    params(("id" = MessageId, Path, description = "The message to react to."), IdempotencyKey),
    responses(
        (status = 202, description = "The reaction was accepted.", body = MessageBody),
        (status = 400, description = "The request is invalid, or the reaction cannot be sent. Codes: `whatsapp_window_closed`, `window_closed`, `sender_not_configured`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = MessageConflict),
        (status = 402, description = "The reaction can cost more than is available. Code: `insufficient_balance`.", body = ErrorBody),
        (status = 507, description = "The environment's storage quota leaves no room for it. Code: `storage_quota_exceeded`.", body = ErrorBody),
    ),
)]
pub(crate) async fn react_to_message(
    Call(core, caller): Call,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<React>,
) -> Result<Reply<MessageBody>> {
    Ok(Reply::accepted(core.messages().react(&caller, &id, value, key).await?.into()))
}
