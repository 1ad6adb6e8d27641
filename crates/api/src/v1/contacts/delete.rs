//! `DELETE /v1/contacts/{id}`.

use nuncio_domain::ContactId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

/// Erase a contact
///
/// Takes personal data out of everything that is kept: identifiers, names, the content of messages, attachments, events. Messages that
/// were not sent yet are cancelled. Identifiers, statuses, times and costs of messages stay. Opt-outs stay in force.
#[utoipa::path(
    delete, path = "/v1/contacts/{id}", tag = "Contacts",
    params(("id" = ContactId, Path, description = "The contact.")),
    responses(
        (status = 204, description = "The contact is gone."),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn delete_contact(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.contacts().delete(&caller, &id).await?;
    Ok(NoContent)
}
