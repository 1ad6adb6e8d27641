//! `DELETE /v1/contacts/{id}`.

use nuncio_domain::ContactId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

/// Erase a contact
///
/// Removes personal data from everything that is stored: identifiers, names, the content of messages, attachments, events. Messages not
/// yet sent are cancelled. Ids, statuses, times and costs of messages are kept. Opt-outs remain in force.
#[utoipa::path(
    delete, path = "/v1/contacts/{id}", tag = "Contacts",
    params(("id" = ContactId, Path, description = "The contact.")),
    responses(
        (status = 204, description = "Erased."),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn delete_contact(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.contacts().delete(&caller, &id).await?;
    Ok(NoContent)
}
