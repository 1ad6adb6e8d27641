//! `DELETE /v1/contacts/{id}/merge-suggestion`.

use nuncio_domain::ContactId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

/// Dismiss a suggested merge
///
/// The contact in `suggestedMergeWith` is not suggested again. Without a suggestion, nothing changes.
#[utoipa::path(
    delete, path = "/v1/contacts/{id}/merge-suggestion", tag = "Contacts",
    params(("id" = ContactId, Path, description = "The contact.")),
    responses(
        (status = 204, description = "Dismissed."),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn dismiss_merge_suggestion(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.contacts().dismiss_merge_suggestion(&caller, &id).await?;
    Ok(NoContent)
}
