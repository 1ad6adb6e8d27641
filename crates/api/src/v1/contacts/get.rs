//! `GET /v1/contacts/{id}`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::contacts::ContactView;

use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Get a contact
///
/// For a contact that was merged into another, this returns the other, with the requested id in `mergedFrom`.
#[utoipa::path(
    get, path = "/v1/contacts/{id}", tag = "Contacts",
    params(("id" = String, Path, description = "The contact.", example = "con_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The contact.", body = ContactView)),
)]
pub(crate) async fn get_contact(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().get(&caller, &id).await?))
}
