//! `DELETE /v1/suppressions/{id}`.

use nuncio_domain::SuppressionId;

use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

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
