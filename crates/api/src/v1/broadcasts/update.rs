//! `PATCH /v1/broadcasts/{id}`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::broadcasts::UpdateBroadcast;

use super::BroadcastBody;
use crate::error::ErrorBody;
use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// Edit a broadcast
///
/// While it is a draft or rejected. A rejected one whose content was edited can be reviewed again.
#[utoipa::path(
    patch, path = "/v1/broadcasts/{id}", tag = "Broadcasts", request_body = UpdateBroadcast, params(("id" = String, Path, description = "The broadcast.", example = "brd_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 200, description = "The broadcast.", body = BroadcastBody),
        (status = 400, description = "The request is wrong, or the broadcast is neither a draft nor rejected. Code: `broadcast_not_editable`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_broadcast(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().update(&caller, &id, value).await?.into()))
}
