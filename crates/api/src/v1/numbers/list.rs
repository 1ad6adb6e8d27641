//! `GET /v1/phone-numbers`.

use nuncio_core::numbers::{ListNumbers, PhoneNumberView};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

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
