//! `DELETE /v1/keys/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use crate::extract::{Auth, Path};
use crate::reply::{NoContent, Result};

/// Revoke an API key
///
/// Every node refuses the key within a second, permanently. A key may revoke itself. Keys that it created stay valid.
#[utoipa::path(
    delete, path = "/v1/keys/{id}", tag = "Account",
    params(("id" = String, Path, description = "The id of the key (`key_…`).", example = "key_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 204, description = "It is revoked.")),
)]
pub(crate) async fn revoke_key(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<NoContent> {
    core.keys().withdraw(&caller, &id).await?;
    Ok(NoContent)
}
