//! `PATCH /v1/templates/{id}`.

use nuncio_core::templates::{TemplateView, UpdateTemplate};
use nuncio_domain::TemplateId;

use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// Change a template
///
/// Raises `version` and leads back to `draft`. Of a template that WhatsApp approved, messages are made from the approved version, by every
/// channel, until the new one is submitted and approved; then from that. A `pending` template cannot be changed.
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
