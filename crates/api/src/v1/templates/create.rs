//! `POST /v1/templates`.

use nuncio_core::templates::{CreateTemplate, TemplateView};

use crate::error_schemas::repeated;
use crate::extract::{Body, Call, IdempotencyKey};
use crate::reply::{Reply, Result};

repeated! {
    /// The template that an idempotency key was used for.
    TemplateConflict: template of TemplateView
}

/// Create a template
///
/// Every channel except WhatsApp can send it at once, as text. For WhatsApp it must be submitted and approved.
#[utoipa::path(
    post, path = "/v1/templates", tag = "Templates", request_body = CreateTemplate, params(IdempotencyKey),
    responses(
        (status = 201, description = "The template, a draft.", body = TemplateView, links(
            ("get" = (operation_id = "get_template", parameters(("id" = "$response.body#/id")))),
        )),
        (status = 409, description = "Name and language are taken, or the idempotency key was used before. Codes: `conflict`, `idempotency_conflict`, `idempotency_key_reused`.", body = TemplateConflict),
    ),
)]
pub(crate) async fn create_template(
    Call(core, caller): Call,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<CreateTemplate>,
) -> Result<Reply<TemplateView>> {
    Ok(Reply::created(core.templates().create(&caller, value, key).await?))
}
