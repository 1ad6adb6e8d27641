//! `DELETE /v1/contacts/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use crate::error::ErrorBody;
use crate::extract::{Auth, Path};
use crate::reply::{NoContent, Result};

/// Erase a contact
///
/// Takes personal data out of everything that is kept: identifiers, names, the content of messages, attachments, events. Messages that
/// were not sent yet are cancelled. Identifiers, statuses, times and costs of messages stay. Opt-outs stay in force.
#[utoipa::path(
    delete, path = "/v1/contacts/{id}", tag = "Contacts",
    params(("id" = String, Path, description = "The contact.", example = "con_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 204, description = "The contact is gone."),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn delete_contact(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<NoContent> {
    core.contacts().delete(&caller, &id).await?;
    Ok(NoContent)
}
