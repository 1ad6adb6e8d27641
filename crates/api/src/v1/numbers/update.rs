//! `PATCH /v1/phone-numbers/{id}`.

use nuncio_core::numbers::UpdateNumber;
use nuncio_domain::PhoneNumberId;

use super::get::PhoneNumberBody;
use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// Update a phone number
///
/// Names it, and assigns it to a sender. A number belongs to at most one sender. A sender without a `phoneNumber` gets this one, and
/// loses it when the number is unassigned.
#[utoipa::path(
    patch, path = "/v1/phone-numbers/{id}", tag = "Phone numbers", request_body = UpdateNumber,
    params(("id" = PhoneNumberId, Path, description = "The phone number.")),
    responses(
        (status = 200, description = "The phone number as it is now.", body = PhoneNumberBody),
        (status = 409, description = "The number belongs to another sender or is reserved for an invitation. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_phone_number(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value: asked, .. }: Body<UpdateNumber>,
) -> Result<Reply<PhoneNumberBody>> {
    Ok(Reply::ok(core.numbers().update(&caller, &id, asked).await?.into()))
}
