//! `POST /v1/suppressions`.

use nuncio_core::suppressions::{CreateSuppression, Suppressed, SuppressionView};

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey};
use crate::reply::{Reply, Result};

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
