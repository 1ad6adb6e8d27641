//! `PATCH /v1/templates/{id}`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::templates::{TemplateView, UpdateTemplate};

use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// Change a template
///
/// Raises `version` and leads back to `draft`. Of a template that WhatsApp approved, messages are made from the approved version, by every
/// channel, until the new one is submitted and approved; then from that. A `pending` template cannot be changed.
#[utoipa::path(
    patch, path = "/v1/templates/{id}", tag = "Templates", request_body = UpdateTemplate,
    params(("id" = String, Path, description = "The template.", example = "tpl_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The template as it is now.", body = TemplateView)),
)]
pub(crate) async fn update_template(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateTemplate>,
) -> Result<Reply<TemplateView>> {
    Ok(Reply::ok(core.templates().update(&caller, &id, value).await?))
}
