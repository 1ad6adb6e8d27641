//! `GET /v1/contacts/phone/{e164}`.

use nuncio_core::contacts::ContactView;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result};

/// Get the contact with a phone number
#[utoipa::path(
    get, path = "/v1/contacts/phone/{e164}", tag = "Contacts",
    params(("e164" = String, Path, description = "The phone number, in E.164 form.", example = "+34600111222")),
    responses((status = 200, description = "The contact.", body = ContactView)),
)]
pub(crate) async fn get_contact_by_phone(Call(core, caller): Call, Path(e164): Path<String>) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().get_by_phone(&caller, &e164).await?))
}
