//! `POST /v1/templates/{id}/submit`.

use nuncio_core::templates::{SubmitTemplate, TemplateView};
use nuncio_domain::TemplateId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// Submit a template
///
/// Submits it to the WhatsApp account of a sender. The decision arrives as the event `template.status_changed`.
#[utoipa::path(
    post, path = "/v1/templates/{id}/submit", tag = "Templates", request_body = SubmitTemplate,
    params(("id" = TemplateId, Path, description = "The template.")),
    responses(
        (status = 202, description = "The template, pending.", body = TemplateView),
        (status = 400, description = "The request is invalid, or the sender has no WhatsApp account that supports templates. Code: `sender_not_configured`.", body = ErrorBody),
    ),
)]
pub(crate) async fn submit_template(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<SubmitTemplate>,
) -> Result<Reply<TemplateView>> {
    Ok(Reply::accepted(core.templates().submit(&caller, &id, value).await?))
}
