//! `PATCH /v1/contacts/{id}`.

use nuncio_core::contacts::{ContactView, UpdateContact};
use nuncio_domain::ContactId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// Change a contact
#[utoipa::path(
    patch, path = "/v1/contacts/{id}", tag = "Contacts", request_body = UpdateContact,
    params(("id" = ContactId, Path, description = "The contact.")),
    responses(
        (status = 200, description = "The contact as it is now.", body = ContactView),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_contact(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateContact>,
) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().update(&caller, &id, value).await?))
}
