//! Operations available only in test environments.

use nuncio_core::PlayInbound;

use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, IdempotencyKey};
use crate::reply::{Reply, Result};
use crate::routes::{Routes, routes};
use crate::v1::messages::{MessageBody, MessageConflict};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(play_inbound))
}

/// Simulate a recipient
///
/// Only in the test environment. A recipient writes, taps a button, reacts or reads, with the same effects as if the provider had reported
/// it: the contact, STOP, START and HELP, events and webhooks. Returns the inbound message, or the message that was read.
#[utoipa::path(
    post, path = "/v1/sandbox/inbound", tag = "Sandbox", request_body = PlayInbound, params(IdempotencyKey),
    responses(
        (status = 202, description = "The inbound message, or the message that was read.", body = MessageBody),
        (status = 400, description = "The request is invalid, or no sender has the channel. Codes: `invalid_request`, `sender_not_configured`.", body = ErrorBody),
        (status = 404, description = "No such message in this environment. Code: `not_found`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = MessageConflict),
    ),
)]
pub(crate) async fn play_inbound(
    Call(core, caller): Call,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<PlayInbound>,
) -> Result<Reply<MessageBody>> {
    Ok(Reply::accepted(core.inbound().play(&caller, value, key.as_deref()).await?.into()))
}
