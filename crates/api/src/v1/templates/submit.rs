//! `POST /v1/templates/{id}/submit`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::templates::{SubmitTemplate, TemplateView};

use crate::error::ErrorBody;
use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// Submit a template
///
/// Submits it to the WhatsApp account of a sender. The decision arrives as the event `template.status_changed`.
#[utoipa::path(
    post, path = "/v1/templates/{id}/submit", tag = "Templates", request_body = SubmitTemplate,
    params(("id" = String, Path, description = "The template.", example = "tpl_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 202, description = "The template, pending.", body = TemplateView),
        (status = 400, description = "The request is wrong, or the sender has no WhatsApp account that takes templates. Code: `sender_not_configured`.", body = ErrorBody),
    ),
)]
pub(crate) async fn submit_template(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value, .. }: Body<SubmitTemplate>,
) -> Result<Reply<TemplateView>> {
    Ok(Reply::accepted(core.templates().submit(&caller, &id, value).await?))
}
