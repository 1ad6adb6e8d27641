//! `PATCH /v1/phone-numbers/{id}`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::numbers::UpdateNumber;

use super::PhoneNumberBody;
use crate::error::ErrorBody;
use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// Update a phone number
///
/// Names it, and assigns it to a sender. A number belongs to at most one sender. A sender without a `phoneNumber` takes that of the
/// number, and loses it when the number is unassigned.
#[utoipa::path(
    patch, path = "/v1/phone-numbers/{id}", tag = "Phone numbers", request_body = UpdateNumber,
    params(("id" = String, Path, description = "The phone number.", example = "num_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 200, description = "The phone number as it is now.", body = PhoneNumberBody),
        (status = 409, description = "The number belongs to another sender or is reserved for an invitation. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_phone_number(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value: asked, .. }: Body<UpdateNumber>,
) -> Result<Reply<PhoneNumberBody>> {
    Ok(Reply::ok(core.numbers().update(&caller, &id, asked).await?.into()))
}
