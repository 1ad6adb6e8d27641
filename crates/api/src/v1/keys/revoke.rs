//! `DELETE /v1/keys/{id}`.

use nuncio_domain::KeyId;

use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

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
