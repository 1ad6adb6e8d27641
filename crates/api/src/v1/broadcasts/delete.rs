//! `DELETE /v1/broadcasts/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use crate::extract::{Auth, Path};
use crate::reply::{NoContent, Result};

/// Delete a broadcast
///
/// While it is a draft. Its recipients go with it.
#[utoipa::path(
    delete, path = "/v1/broadcasts/{id}", tag = "Broadcasts", params(("id" = String, Path, description = "The broadcast.", example = "brd_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 204, description = "It is gone.")),
)]
pub(crate) async fn delete_broadcast(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<NoContent> {
    core.broadcasts().delete(&caller, &id).await?;
    Ok(NoContent)
}
