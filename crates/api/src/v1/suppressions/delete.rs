//! `DELETE /v1/suppressions/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use crate::extract::{Auth, Path};
use crate::reply::{NoContent, Result};

/// Lift a suppression
#[utoipa::path(
    delete, path = "/v1/suppressions/{id}", tag = "Suppressions",
    params(("id" = String, Path, description = "The suppression.", example = "sup_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 204, description = "The suppression is lifted.")),
)]
pub(crate) async fn delete_suppression(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<NoContent> {
    core.suppressions().delete(&caller, &id).await?;
    Ok(NoContent)
}
