//! `GET /v1/broadcasts/{id}/progress` and `…/statistics`.

use nuncio_core::broadcasts::{BroadcastProgress, BroadcastStatistics};
use nuncio_domain::BroadcastId;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result};

/// Get the progress of a broadcast
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/progress", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The progress.", body = BroadcastProgress)),
)]
pub(crate) async fn get_broadcast_progress(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<BroadcastProgress>> {
    Ok(Reply::ok(core.broadcasts().progress(&caller, &id).await?))
}

/// Get the statistics of a broadcast
///
/// Results by channel, country and failure reason, and the clicks on its links. Reads all recipients, which takes some seconds for a
/// million; *Get the progress of a broadcast* is cheap.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/statistics", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The statistics.", body = BroadcastStatistics)),
)]
pub(crate) async fn get_broadcast_statistics(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<BroadcastStatistics>> {
    Ok(Reply::ok(core.broadcasts().statistics(&caller, &id).await?))
}
