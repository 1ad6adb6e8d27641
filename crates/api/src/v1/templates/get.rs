//! `GET /v1/templates/{id}`.

use nuncio_core::templates::TemplateView;
use nuncio_domain::TemplateId;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result};

/// Get a template
#[utoipa::path(
    get, path = "/v1/templates/{id}", tag = "Templates",
    params(("id" = TemplateId, Path, description = "The template.")),
    responses((status = 200, description = "The template.", body = TemplateView)),
)]
pub(crate) async fn get_template(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<TemplateView>> {
    Ok(Reply::ok(core.templates().get(&caller, &id).await?))
}
