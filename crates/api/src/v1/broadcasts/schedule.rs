//! `PATCH /v1/broadcasts/{id}/schedule`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::broadcasts::ScheduleBroadcast;

use super::BroadcastBody;
use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// Reschedule a broadcast
///
/// While it is scheduled.
#[utoipa::path(
    patch, path = "/v1/broadcasts/{id}/schedule", tag = "Broadcasts", request_body = ScheduleBroadcast, params(("id" = String, Path, description = "The broadcast.", example = "brd_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn schedule_broadcast(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value, .. }: Body<ScheduleBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().schedule(&caller, &id, value).await?.into()))
}
