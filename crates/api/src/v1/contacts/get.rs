//! `GET /v1/contacts/{id}`.

use nuncio_core::contacts::ContactView;
use nuncio_domain::ContactId;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result};

/// Get a contact
///
/// For a contact that was merged into another, this returns the other, with the requested id in `mergedFrom`.
#[utoipa::path(
    get, path = "/v1/contacts/{id}", tag = "Contacts",
    params(("id" = ContactId, Path, description = "The contact.")),
    responses((status = 200, description = "The contact.", body = ContactView)),
)]
pub(crate) async fn get_contact(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().get(&caller, &id).await?))
}
