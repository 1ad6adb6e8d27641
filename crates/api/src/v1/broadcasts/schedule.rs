//! `PATCH /v1/broadcasts/{id}/schedule`.

use nuncio_core::broadcasts::ScheduleBroadcast;
use nuncio_domain::BroadcastId;

use super::get::BroadcastBody;
use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// Reschedule a broadcast
///
/// Only for a scheduled broadcast.
#[utoipa::path(
    patch, path = "/v1/broadcasts/{id}/schedule", tag = "Broadcasts", request_body = ScheduleBroadcast, params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn schedule_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<ScheduleBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().schedule(&caller, &id, value).await?.into()))
}
