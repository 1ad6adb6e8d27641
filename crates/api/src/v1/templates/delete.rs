//! `DELETE /v1/templates/{id}`.

use nuncio_domain::TemplateId;

use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

/// Delete a template
///
/// Existing messages are not affected. WhatsApp keeps its copy.
#[utoipa::path(
    delete, path = "/v1/templates/{id}", tag = "Templates",
    params(("id" = TemplateId, Path, description = "The template.")),
    responses((status = 204, description = "Deleted.")),
)]
pub(crate) async fn delete_template(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.templates().delete(&caller, &id).await?;
    Ok(NoContent)
}
