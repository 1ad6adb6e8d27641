//! `GET /v1/broadcasts/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use super::BroadcastBody;
use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Get a broadcast
///
/// With the numbers of its recipients, exact at every moment.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}", tag = "Broadcasts", params(("id" = String, Path, description = "The broadcast.", example = "brd_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn get_broadcast(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().get(&caller, &id).await?.into()))
}
