use nuncio_core::templates::{CreateTemplate, ListTemplates, SubmitTemplate, TemplateView, UpdateTemplate};
use nuncio_domain::TemplateId;

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey, Path, Query};
use crate::reply::{NoContent, Reply, Result, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create_template, list_templates))
        .routes(routes!(get_template, update_template, delete_template))
        .routes(routes!(submit_template))
}

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

page! {
    /// A page of templates.
    TemplatePage of TemplateView
}

/// List templates
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/templates", tag = "Templates", params(ListTemplates),
    responses((status = 200, description = "A page of templates.", body = TemplatePage)),
)]
pub(crate) async fn list_templates(Call(core, caller): Call, Query(list): Query<ListTemplates>) -> Result<Reply<TemplatePage>> {
    Ok(Reply::ok(core.templates().list(&caller, &list).await?.into()))
}

/// Get a template
#[utoipa::path(
    get, path = "/v1/templates/{id}", tag = "Templates",
    params(("id" = TemplateId, Path, description = "The template.")),
    responses((status = 200, description = "The template.", body = TemplateView)),
)]
pub(crate) async fn get_template(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<TemplateView>> {
    Ok(Reply::ok(core.templates().get(&caller, &id).await?))
}

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
