//! `PATCH /v1/templates/{id}`.

use nuncio_core::templates::{TemplateView, UpdateTemplate};
use nuncio_domain::TemplateId;

use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// Change a template
///
/// Increments `version` and sets the status to `draft`. If WhatsApp approved the template, messages on every channel use the approved
/// version until the new one is submitted and approved. A `pending` template cannot be changed.
#[utoipa::path(
    patch, path = "/v1/templates/{id}", tag = "Templates", request_body = UpdateTemplate,
    params(("id" = TemplateId, Path, description = "The template.")),
    responses((status = 200, description = "The template as it is now.", body = TemplateView)),
)]
pub(crate) async fn update_template(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateTemplate>,
) -> Result<Reply<TemplateView>> {
    Ok(Reply::ok(core.templates().update(&caller, &id, value).await?))
}
