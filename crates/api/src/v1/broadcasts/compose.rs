//! `POST /v1/broadcasts/{id}/preview`, `/test` and `/clone`, and `GET /v1/broadcasts/{id}/estimate`.

use nuncio_core::broadcasts::{BroadcastEstimate, BroadcastPreview, CloneBroadcast, PreviewBroadcast, TestBroadcast};
use nuncio_domain::BroadcastId;

use super::{BroadcastBody, BroadcastConflict};
use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, IdempotencyKey, OptionalBody, Path};
use crate::reply::{Reply, Result};
use crate::v1::messages::{MessageBody, MessageConflict};

/// Preview a broadcast
///
/// Shows the message that one recipient would get now, with its variables filled in, and how it would be sent. Nothing is stored or sent.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/preview", tag = "Broadcasts", request_body = PreviewBroadcast, params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses(
        (status = 200, description = "The message.", body = BroadcastPreview),
        (status = 400, description = "The message cannot be sent to this recipient, or there is none. Codes: `no_contacts`, `sender_not_configured`, `template_not_approved`, `whatsapp_window_closed`, `window_closed`.", body = ErrorBody),
    ),
)]
pub(crate) async fn preview_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    OptionalBody(asked): OptionalBody<PreviewBroadcast>,
) -> Result<Reply<BroadcastPreview>> {
    Ok(Reply::ok(core.broadcasts().preview(&caller, &id, asked).await?))
}

/// Send a test message of a broadcast
///
/// Sends the content to one recipient, such as yourself, as an ordinary message: it is charged, and does not count in the broadcast.
/// Needs `broadcasts:read` in addition to `messages:send`.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/test", tag = "Broadcasts", request_body = TestBroadcast,
    params(("id" = BroadcastId, Path, description = "The broadcast."), IdempotencyKey),
    responses(
        (status = 202, description = "The message was accepted.", body = MessageBody),
        (status = 400, description = "The message cannot be sent to this recipient. Codes: `sender_not_configured`, `template_not_approved`, `whatsapp_window_closed`, `window_closed`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = MessageConflict),
        (status = 402, description = "The message can cost more than is available. Code: `insufficient_balance`.", body = ErrorBody),
        (status = 507, description = "The environment's storage quota leaves no room for the message. Code: `storage_quota_exceeded`.", body = ErrorBody),
    ),
)]
pub(crate) async fn test_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<TestBroadcast>,
) -> Result<Reply<MessageBody>> {
    Ok(Reply::accepted(core.broadcasts().test(&caller, &id, value, key).await?.into()))
}

/// Copy a broadcast
///
/// Creates a draft with the same content and sender, but without recipients.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/clone", tag = "Broadcasts", request_body = CloneBroadcast,
    params(("id" = BroadcastId, Path, description = "The broadcast."), IdempotencyKey),
    responses(
        (status = 201, description = "The draft.", body = BroadcastBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = BroadcastConflict),
    ),
)]
pub(crate) async fn clone_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    OptionalBody(asked): OptionalBody<CloneBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::created(core.broadcasts().clone(&caller, &id, asked, key).await?.into()))
}

/// Estimate a broadcast
///
/// Channels, SMS segments, cost, duration and unreachable recipients if it were sent now. Evaluates every recipient, which takes some
/// seconds for a million.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/estimate", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The estimate.", body = BroadcastEstimate)),
)]
pub(crate) async fn estimate_broadcast(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<BroadcastEstimate>> {
    Ok(Reply::ok(core.broadcasts().forecast(&caller, &id).await?))
}
