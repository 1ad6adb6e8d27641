//! Actions without parameters: pause, resume, cancel, escalate, retry the review.

use nuncio_domain::BroadcastId;

use super::get::BroadcastBody;
use crate::error_schemas::ErrorBody;
use crate::extract::{Call, NoBody, Path};
use crate::reply::{Reply, Result};

/// Pause a broadcast
///
/// Attempts in flight still complete. Messages that no provider has yet return to the broadcast, and are sent once it is resumed.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/pause", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn pause_broadcast(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().pause(&caller, &id).await?.into()))
}

/// Resume a broadcast
///
/// Continues where it was paused.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/resume", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn resume_broadcast(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().resume(&caller, &id).await?.into()))
}

/// Cancel a broadcast
///
/// Recipients without a message are skipped, and messages that no provider has yet are cancelled.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/cancel", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn cancel_broadcast(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().cancel(&caller, &id).await?.into()))
}

/// Escalate a rejected broadcast
///
/// Requests a human review of a broadcast that the automated review rejected.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/escalate", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn escalate_broadcast(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().escalate(&caller, &id).await?.into()))
}

/// Retry the review of a broadcast
///
/// For a rejected broadcast whose content was edited. A broadcast is reviewed at most three times.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/retry-review", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses(
        (status = 200, description = "The broadcast.", body = BroadcastBody),
        (status = 400, description = "The broadcast cannot be reviewed again. Codes: `review_attempts_exhausted`, `sender_not_configured`, `template_not_approved`.", body = ErrorBody),
        (status = 402, description = "The balance does not cover it. Code: `insufficient_balance`.", body = ErrorBody),
    ),
)]
pub(crate) async fn retry_broadcast_review(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().retry_review(&caller, &id).await?.into()))
}
