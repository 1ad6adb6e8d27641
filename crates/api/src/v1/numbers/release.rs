//! `DELETE /v1/phone-numbers/{id}`.

use nuncio_domain::PhoneNumberId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

/// Release a phone number
///
/// Gives it back to the inventory, where others can acquire it. What was paid for the present month stays paid.
#[utoipa::path(
    delete, path = "/v1/phone-numbers/{id}", tag = "Phone numbers",
    params(("id" = PhoneNumberId, Path, description = "The phone number.")),
    responses(
        (status = 204, description = "It was released."),
        (status = 409, description = "The number is assigned to a sender or reserved for an invitation. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn release_phone_number(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.numbers().release(&caller, &id).await?;
    Ok(NoContent)
}
