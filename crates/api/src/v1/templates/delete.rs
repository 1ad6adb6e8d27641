//! `DELETE /v1/templates/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use crate::extract::{Auth, Path};
use crate::reply::{NoContent, Result};

/// Delete a template
///
/// Messages that were made from it are not touched. What WhatsApp knows of it stays there.
#[utoipa::path(
    delete, path = "/v1/templates/{id}", tag = "Templates",
    params(("id" = String, Path, description = "The template.", example = "tpl_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 204, description = "It is gone.")),
)]
pub(crate) async fn delete_template(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<NoContent> {
    core.templates().delete(&caller, &id).await?;
    Ok(NoContent)
}
