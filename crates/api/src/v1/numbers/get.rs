//! `GET /v1/phone-numbers/{id}`.

use nuncio_core::numbers::PhoneNumberView;
use nuncio_domain::PhoneNumberId;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result, named};

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
