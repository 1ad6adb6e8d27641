//! `PATCH /v1/contacts/{id}`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::contacts::{ContactView, UpdateContact};

use crate::error::ErrorBody;
use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// Change a contact
#[utoipa::path(
    patch, path = "/v1/contacts/{id}", tag = "Contacts", request_body = UpdateContact,
    params(("id" = String, Path, description = "The contact.", example = "con_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 200, description = "The contact as it is now.", body = ContactView),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_contact(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateContact>,
) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().update(&caller, &id, value).await?))
}
