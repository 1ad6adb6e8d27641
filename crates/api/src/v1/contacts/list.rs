//! `GET /v1/contacts`.

use nuncio_core::contacts::{ContactView, ListContacts};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

page! {
    /// A page of contacts.
    ContactPage of ContactView
}

/// List contacts
///
/// Newest first. With `phoneNumber`, at most the one contact with that number.
#[utoipa::path(
    get, path = "/v1/contacts", tag = "Contacts", params(ListContacts),
    responses((status = 200, description = "A page of contacts.", body = ContactPage)),
)]
pub(crate) async fn list_contacts(Call(core, caller): Call, Query(list): Query<ListContacts>) -> Result<Reply<ContactPage>> {
    Ok(Reply::ok(core.contacts().list(&caller, &list).await?.into()))
}
