//! `GET /v1/contacts/{id}/messages`.

use nuncio_core::messages::ListContactMessages;
use nuncio_domain::ContactId;

use crate::extract::{Call, Path, Query};
use crate::reply::{Reply, Result};
use crate::v1::messages::MessagePage;

/// Read a conversation
///
/// The messages to and from a contact on all its channels, newest first. For a contact that was merged into another, this returns the
/// messages of the other.
#[utoipa::path(
    get, path = "/v1/contacts/{id}/messages", tag = "Contacts",
    params(("id" = ContactId, Path, description = "The contact."), ListContactMessages),
    responses((status = 200, description = "A page of messages.", body = MessagePage)),
)]
pub(crate) async fn list_contact_messages(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Query(list): Query<ListContactMessages>,
) -> Result<Reply<MessagePage>> {
    Ok(Reply::ok(core.messages().list_of_contact(&caller, &id, &list).await?.into()))
}
