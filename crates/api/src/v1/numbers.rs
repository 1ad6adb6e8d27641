use nuncio_core::numbers::{AcquireNumber, AvailableNumberView, ListAvailable, ListNumbers, PhoneNumberView, UpdateNumber};
use nuncio_domain::PhoneNumberId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey, Path, Query};
use crate::reply::{NoContent, Reply, Result, named, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(acquire_phone_number, list_phone_numbers))
        .routes(routes!(list_available_phone_numbers))
        .routes(routes!(get_phone_number, update_phone_number, release_phone_number))
}

/// Numbers that can be acquired.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AvailablePhoneNumbers {
    /// Lowest first.
    items: Vec<AvailableNumberView>,
}

/// Search for phone numbers
///
/// Available numbers of the inventory, without pages: to find others, narrow the search.
#[utoipa::path(
    get, path = "/v1/phone-numbers/available", tag = "Phone numbers", params(ListAvailable),
    responses((status = 200, description = "Numbers that can be acquired.", body = AvailablePhoneNumbers)),
)]
pub(crate) async fn list_available_phone_numbers(
    Call(core, caller): Call,
    Query(list): Query<ListAvailable>,
) -> Result<Reply<AvailablePhoneNumbers>> {
    Ok(Reply::ok(AvailablePhoneNumbers { items: core.numbers().available(&caller, &list).await? }))
}

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

page! {
    /// A page of phone numbers.
    PhoneNumberPage of PhoneNumberView
}

/// List phone numbers
///
/// The numbers that this environment holds, newest first.
#[utoipa::path(
    get, path = "/v1/phone-numbers", tag = "Phone numbers", params(ListNumbers),
    responses((status = 200, description = "A page of phone numbers.", body = PhoneNumberPage)),
)]
pub(crate) async fn list_phone_numbers(Call(core, caller): Call, Query(list): Query<ListNumbers>) -> Result<Reply<PhoneNumberPage>> {
    Ok(Reply::ok(core.numbers().list(&caller, &list).await?.into()))
}

named! {
    /// A phone number under its name.
    PhoneNumberBody as PhoneNumberResponse: phone_number of PhoneNumberView
}

/// Get a phone number
#[utoipa::path(
    get, path = "/v1/phone-numbers/{id}", tag = "Phone numbers",
    params(("id" = PhoneNumberId, Path, description = "The phone number.")),
    responses((status = 200, description = "The phone number.", body = PhoneNumberBody)),
)]
pub(crate) async fn get_phone_number(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<PhoneNumberBody>> {
    Ok(Reply::ok(core.numbers().get(&caller, &id).await?.into()))
}

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

/// Release a phone number
///
/// Returns it to the inventory, where others can acquire it. The payment for the current month is not refunded.
#[utoipa::path(
    delete, path = "/v1/phone-numbers/{id}", tag = "Phone numbers",
    params(("id" = PhoneNumberId, Path, description = "The phone number.")),
    responses(
        (status = 204, description = "Released."),
        (status = 409, description = "The number is assigned to a sender or reserved for an invitation. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn release_phone_number(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.numbers().release(&caller, &id).await?;
    Ok(NoContent)
}
