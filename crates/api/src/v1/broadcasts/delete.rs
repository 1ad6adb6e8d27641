//! `DELETE /v1/broadcasts/{id}`.

use nuncio_domain::BroadcastId;

use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

/// Delete a broadcast
///
/// Only for a draft. Its recipients are deleted too.
#[utoipa::path(
    delete, path = "/v1/broadcasts/{id}", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 204, description = "Deleted.")),
)]
pub(crate) async fn delete_broadcast(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.broadcasts().delete(&caller, &id).await?;
    Ok(NoContent)
}
