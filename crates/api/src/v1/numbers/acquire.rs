//! `POST /v1/phone-numbers`.

use nuncio_core::numbers::{AcquireNumber, PhoneNumberView};

use super::get::PhoneNumberBody;
use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey};
use crate::reply::{Reply, Result};

repeated! {
    /// The phone number that an idempotency key was used for.
    PhoneNumberConflict: phone_number of PhoneNumberView
}

/// Acquire a phone number
///
/// Assigns a number of the inventory to this environment, and charges the setup and the first month.
#[utoipa::path(
    post, path = "/v1/phone-numbers", tag = "Phone numbers", request_body = AcquireNumber, params(IdempotencyKey),
    responses(
        (status = 201, description = "The acquired number.", body = PhoneNumberBody, links(
            ("get" = (operation_id = "get_phone_number", parameters(("id" = "$response.body#/phoneNumber/id")))),
            ("update" = (operation_id = "update_phone_number", parameters(("id" = "$response.body#/phoneNumber/id")))),
            ("release" = (operation_id = "release_phone_number", parameters(("id" = "$response.body#/phoneNumber/id")))),
        )),
        (status = 402, description = "The balance does not cover it. Code: `insufficient_balance`.", body = ErrorBody),
        (status = 404, description = "The inventory has no such number. Code: `not_found`.", body = ErrorBody),
        (status = 409, description = "The number is taken, or the idempotency key was used before. Codes: `conflict`, `idempotency_conflict`, `idempotency_key_reused`.", body = PhoneNumberConflict),
    ),
)]
pub(crate) async fn acquire_phone_number(
    Call(core, caller): Call,
    IdempotencyKey(key): IdempotencyKey,
    Body { value: asked, .. }: Body<AcquireNumber>,
) -> Result<Reply<PhoneNumberBody>> {
    Ok(Reply::created(core.numbers().acquire(&caller, asked, key.as_deref()).await?.into()))
}
