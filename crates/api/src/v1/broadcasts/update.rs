//! `PATCH /v1/broadcasts/{id}`.

use nuncio_core::broadcasts::UpdateBroadcast;
use nuncio_domain::BroadcastId;

use super::get::BroadcastBody;
use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, Lenient, Path};
use crate::reply::{Reply, Result};

/// Edit a broadcast
///
/// Only for a draft or a rejected broadcast. A rejected broadcast whose content was edited can be reviewed again.
#[utoipa::path(
    patch, path = "/v1/broadcasts/{id}", tag = "Broadcasts", request_body = UpdateBroadcast, params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses(
        (status = 200, description = "The broadcast.", body = BroadcastBody),
        (status = 400, description = "The request is invalid, or the broadcast is neither a draft nor rejected. Code: `broadcast_not_editable`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Lenient(lenient): Lenient,
    Body { value, .. }: Body<UpdateBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().update(&caller, &id, value, lenient).await?.into()))
}
