//! `DELETE /v1/templates/{id}`.

use nuncio_domain::TemplateId;

use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

/// Delete a template
///
/// Messages that were made from it are not touched. What WhatsApp knows of it stays there.
#[utoipa::path(
    delete, path = "/v1/templates/{id}", tag = "Templates",
    params(("id" = TemplateId, Path, description = "The template.")),
    responses((status = 204, description = "It is gone.")),
)]
pub(crate) async fn delete_template(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.templates().delete(&caller, &id).await?;
    Ok(NoContent)
}
