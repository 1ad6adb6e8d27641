//! `POST /v1/templates`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::templates::{CreateTemplate, TemplateView};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{Code, Details, ErrorObject};
use crate::extract::{Auth, Body, IdempotencyKey};
use crate::original::Original;
use crate::reply::{Reply, Result};

/// Why a template was not made: the key was used before, and here is what for; or name and language are taken.
#[derive(Serialize, ToSchema)]
pub(crate) struct TemplateConflict {
    /// The original template, if the key was used before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Original<TemplateView>>)]
    template: Option<TemplateView>,
    /// `idempotency_conflict` if the request is the same, `idempotency_key_reused` if it is another, `conflict` if the name is taken.
    #[schema(value_type = Code)]
    code: &'static str,
    /// In words.
    message: String,
    details: Details,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

/// Make a template
///
/// Every channel but WhatsApp can send it at once: there it becomes text. For WhatsApp it has to be submitted and approved.
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
    State(core): State<Core>,
    Auth(caller): Auth,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<CreateTemplate>,
) -> Result<Reply<TemplateView>> {
    Ok(Reply::created(core.create_template(&caller, value, key).await?))
}
