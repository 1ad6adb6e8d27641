//! `POST`, `GET` and `DELETE /v1/broadcasts/{id}/contacts`.

use nuncio_core::broadcasts::{
    AddBroadcastContacts, AddedContacts, BroadcastContactView, ListBroadcastContacts, SelectContacts, SelectedContacts,
};
use nuncio_domain::{BroadcastContactId, BroadcastId};

use super::BroadcastConflict;
use crate::extract::{Body, Call, IdempotencyKey, Path, Query};
use crate::reply::{NoContent, Reply, Result, page};

page! {
    /// A page of recipients.
    BroadcastContactPage of BroadcastContactView
}

/// Add recipients to a broadcast
///
/// Only for a draft; at most 1000 per call. Existing recipients are counted and skipped; those that the channel cannot reach, or that
/// lack a variable of the template, are listed in `errors`.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/contacts", tag = "Broadcasts", request_body = AddBroadcastContacts, params(("id" = BroadcastId, Path, description = "The broadcast."), IdempotencyKey),
    responses(
        (status = 201, description = "The number of added recipients, and why others were not added.", body = AddedContacts),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = BroadcastConflict),
    ),
)]
pub(crate) async fn add_broadcast_contacts(
    Call(core, caller): Call,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<AddBroadcastContacts>,
) -> Result<Reply<AddedContacts>> {
    Ok(Reply::created(core.broadcasts().add_contacts(&caller, &id, value, key.as_deref()).await?))
}

/// Add contacts to a broadcast
///
/// Only for a draft. Every contact that matches the filter becomes a recipient, with the address that the broadcast's channel reaches.
/// `smart` prefers a phone number to an email address. Contacts are stored page by page; if the request is interrupted, send it again:
/// those already added count as duplicates.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/contacts/select", tag = "Broadcasts", request_body = SelectContacts,
    params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 201, description = "The number of added recipients, and why others were not added.", body = SelectedContacts)),
)]
pub(crate) async fn select_broadcast_contacts(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<SelectContacts>,
) -> Result<Reply<SelectedContacts>> {
    Ok(Reply::created(core.broadcasts().select_contacts(&caller, &id, value).await?))
}

/// List the recipients of a broadcast
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/contacts", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast."), ListBroadcastContacts),
    responses((status = 200, description = "A page of recipients.", body = BroadcastContactPage)),
)]
pub(crate) async fn list_broadcast_contacts(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Query(list): Query<ListBroadcastContacts>,
) -> Result<Reply<BroadcastContactPage>> {
    Ok(Reply::ok(core.broadcasts().list_contacts(&caller, &id, &list).await?.into()))
}

/// Remove a recipient from a broadcast
///
/// Only for a draft.
#[utoipa::path(
    delete, path = "/v1/broadcasts/{id}/contacts/{contactId}", tag = "Broadcasts",
    params(("id" = BroadcastId, Path, description = "The broadcast."), ("contactId" = BroadcastContactId, Path, description = "The recipient.")),
    responses((status = 204, description = "Removed.")),
)]
pub(crate) async fn delete_broadcast_contact(Call(core, caller): Call, Path((id, contact)): Path<(String, String)>) -> Result<NoContent> {
    core.broadcasts().delete_contact(&caller, &id, &contact).await?;
    Ok(NoContent)
}
