//! `GET /v1/phone-numbers/available`.

use nuncio_core::numbers::{AvailableNumberView, ListAvailable};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result};

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
