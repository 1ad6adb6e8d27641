//! `GET /v1/phone-numbers/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use super::PhoneNumberBody;
use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Get a phone number
#[utoipa::path(
    get, path = "/v1/phone-numbers/{id}", tag = "Phone numbers",
    params(("id" = String, Path, description = "The phone number.", example = "num_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The phone number.", body = PhoneNumberBody)),
)]
pub(crate) async fn get_phone_number(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
) -> Result<Reply<PhoneNumberBody>> {
    Ok(Reply::ok(core.numbers().get(&caller, &id).await?.into()))
}
