//! `GET /v1/broadcasts/{id}/progress`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::broadcasts::BroadcastProgress;

use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Get the progress of a broadcast
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/progress", tag = "Broadcasts", params(("id" = String, Path, description = "The broadcast.", example = "brd_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "How far it is.", body = BroadcastProgress)),
)]
pub(crate) async fn get_broadcast_progress(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
) -> Result<Reply<BroadcastProgress>> {
    Ok(Reply::ok(core.broadcasts().progress(&caller, &id).await?))
}
