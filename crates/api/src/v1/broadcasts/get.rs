//! `GET /v1/broadcasts/{id}`.

use nuncio_core::broadcasts::BroadcastView;
use nuncio_domain::BroadcastId;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result, named};

named! {
    /// A broadcast under its name.
    BroadcastBody as BroadcastResponse: broadcast of BroadcastView
}

/// Get a broadcast
///
/// Includes the number of recipients by status, always exact.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn get_broadcast(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().get(&caller, &id).await?.into()))
}
