use nuncio_core::suppressions::{CreateSuppression, ListSuppressions, Suppressed, SuppressionView};
use nuncio_domain::SuppressionId;

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey, Path, Query};
use crate::reply::{NoContent, Reply, Result, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(create_suppression, list_suppressions)).routes(routes!(delete_suppression))
}

repeated! {
    /// The suppression that an idempotency key was used for.
    SuppressionConflict: suppression of SuppressionView
}

/// Suppress a recipient
///
/// Messages to a suppressed recipient are not sent: they fail with `recipient_suppressed`. A phone number is suppressed for sms, whatsapp
/// and voice. Only an opt-out can be limited to one sender.
#[utoipa::path(
    post, path = "/v1/suppressions", tag = "Suppressions", request_body = CreateSuppression, params(IdempotencyKey),
    responses(
        (status = 201, description = "The suppression.", body = SuppressionView),
        (status = 200, description = "The suppression, which already existed.", body = SuppressionView),
        (status = 404, description = "No such sender in this environment. Code: `not_found`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = SuppressionConflict),
    ),
)]
pub(crate) async fn create_suppression(
    Call(core, caller): Call,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<CreateSuppression>,
) -> Result<Reply<SuppressionView>> {
    Ok(match core.suppressions().create(&caller, value, key.as_deref()).await? {
        Suppressed::Made(view) => Reply::created(view),
        Suppressed::Known(view) => Reply::ok(view),
    })
}

page! {
    /// A page of suppressions.
    SuppressionPage of SuppressionView
}

/// List suppressions
///
/// Newest first. With `identifier`, also those of an erased person.
#[utoipa::path(
    get, path = "/v1/suppressions", tag = "Suppressions", params(ListSuppressions),
    responses((status = 200, description = "A page of suppressions.", body = SuppressionPage)),
)]
pub(crate) async fn list_suppressions(Call(core, caller): Call, Query(list): Query<ListSuppressions>) -> Result<Reply<SuppressionPage>> {
    Ok(Reply::ok(core.suppressions().list(&caller, &list).await?.into()))
}

/// Lift a suppression
#[utoipa::path(
    delete, path = "/v1/suppressions/{id}", tag = "Suppressions",
    params(("id" = SuppressionId, Path, description = "The suppression.")),
    responses((status = 204, description = "The suppression is lifted.")),
)]
pub(crate) async fn delete_suppression(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.suppressions().delete(&caller, &id).await?;
    Ok(NoContent)
}
