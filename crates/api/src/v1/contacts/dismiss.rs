//! `DELETE /v1/contacts/{id}/merge-suggestion`.

use axum::extract::State;
use nuncio_core::Core;

use crate::error::ErrorBody;
use crate::extract::{Auth, Path};
use crate::reply::{NoContent, Result};

/// Turn down a suggested merge
///
/// The contact that `suggestedMergeWith` names now is not suggested again. Without a suggestion nothing happens.
#[utoipa::path(
    delete, path = "/v1/contacts/{id}/merge-suggestion", tag = "Contacts",
    params(("id" = String, Path, description = "The contact.", example = "con_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 204, description = "It is not suggested any more."),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn dismiss_merge_suggestion(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<NoContent> {
    core.contacts().dismiss_merge_suggestion(&caller, &id).await?;
    Ok(NoContent)
}
