//! `POST /v1/keys`.

use nuncio_core::{CreateApiKey, KeyView};

use crate::error_schemas::repeated;
use crate::extract::{Body, Call, IdempotencyKey};
use crate::reply::{Reply, Result};

repeated! {
    /// The API key that an idempotency key was used for, without the key itself.
    ApiKeyConflict: api_key of KeyView
}

/// Create an API key
///
/// For the environment of the key that makes the request. Only this response contains the new key. A key cannot have permissions that the
/// key that creates it lacks: the response is 403.
#[utoipa::path(
    post, path = "/v1/keys", tag = "Account", request_body = CreateApiKey, params(IdempotencyKey),
    responses(
        (status = 201, description = "The new key.", body = KeyView, links(
            ("revoke" = (operation_id = "revoke_key", parameters(("id" = "$response.body#/id")))),
        )),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = ApiKeyConflict),
    ),
)]
pub(crate) async fn create_key(
    Call(core, caller): Call,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Body { value, .. }: Body<CreateApiKey>,
) -> Result<Reply<KeyView>> {
    Ok(Reply::created(core.keys().issue(&caller, value, idempotency_key.as_deref()).await?))
}
