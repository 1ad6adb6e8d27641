use nuncio_core::{CreateApiKey, KeyView, ListKeys};
use nuncio_domain::KeyId;

use crate::error_schemas::repeated;
use crate::extract::{Body, Call, IdempotencyKey, Path, Query};
use crate::reply::{NoContent, Reply, Result, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(list_keys, create_key)).routes(routes!(revoke_key))
}

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

page! {
    /// A page of API keys.
    ApiKeyPage of KeyView
}

/// List API keys
///
/// The keys of this environment, newest first, including expired and revoked ones. The keys themselves are not shown: the server stores only hashes.
#[utoipa::path(
    get, path = "/v1/keys", tag = "Account", params(ListKeys),
    responses((status = 200, description = "A page of API keys.", body = ApiKeyPage)),
)]
pub(crate) async fn list_keys(Call(core, caller): Call, Query(list): Query<ListKeys>) -> Result<Reply<ApiKeyPage>> {
    Ok(Reply::ok(core.keys().page(&caller, &list).await?.into()))
}

/// Revoke an API key
///
/// The response comes after a second, when every node rejects the key, permanently. A key can revoke itself. Keys that it created stay valid.
#[utoipa::path(
    delete, path = "/v1/keys/{id}", tag = "Account",
    params(("id" = KeyId, Path, description = "The id of the key (`key_…`).")),
    responses((status = 204, description = "Revoked.")),
)]
pub(crate) async fn revoke_key(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.keys().withdraw(&caller, &id).await?;
    Ok(NoContent)
}
