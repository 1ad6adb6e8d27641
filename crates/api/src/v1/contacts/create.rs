//! `POST /v1/contacts`.

use nuncio_core::contacts::{ContactView, CreateContact};

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey};
use crate::reply::{Reply, Result};

repeated! {
    /// The contact that an idempotency key was used for.
    ContactConflict: contact of ContactView
}

/// Create a contact
///
/// An identifier belongs to one contact, across sms, whatsapp and voice. Everyone you wrote to, or who wrote to you, is already a contact:
/// for an identifier in use, the response is 400 `duplicate_identifier` with `details.contactId`.
#[utoipa::path(
    post, path = "/v1/contacts", tag = "Contacts", request_body = CreateContact, params(IdempotencyKey),
    responses(
        (status = 201, description = "The contact.", body = ContactView, links(
            ("get" = (operation_id = "get_contact", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "delete_contact", parameters(("id" = "$response.body#/id")))),
        )),
        (status = 400, description = "The request is invalid, or an identifier belongs to another contact. Code: `duplicate_identifier`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = ContactConflict),
    ),
)]
pub(crate) async fn create_contact(
    Call(core, caller): Call,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<CreateContact>,
) -> Result<Reply<ContactView>> {
    Ok(Reply::created(core.contacts().create(&caller, value, key.as_deref()).await?))
}
