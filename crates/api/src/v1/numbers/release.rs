//! `DELETE /v1/phone-numbers/{id}`.

use nuncio_domain::PhoneNumberId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

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
