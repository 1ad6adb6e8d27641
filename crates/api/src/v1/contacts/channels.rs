//! `/v1/contacts/{id}/channels`.

use nuncio_core::contacts::{AddChannel, ContactChannelIn, ContactChannelView, UpdateContactChannel};
use nuncio_domain::{ContactChannelId, ContactId};

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey, NoBody, Path};
use crate::reply::{NoContent, Reply, Result, named};

named! {
    /// A contact channel under its name.
    ChannelBody as ContactChannelResponse: channel of ContactChannelView
}

repeated! {
    /// The channel that an idempotency key was used for.
    ContactChannelConflict: channel of ContactChannelView
}

/// Add a channel to a contact
#[utoipa::path(
    post, path = "/v1/contacts/{id}/channels", tag = "Contacts", request_body = ContactChannelIn,
    params(("id" = ContactId, Path, description = "The contact."), IdempotencyKey),
    responses(
        (status = 201, description = "The channel.", body = ChannelBody),
        (status = 400, description = "The request is invalid, or the identifier belongs to another contact. Code: `duplicate_identifier`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before, or the contact was merged. Codes: `idempotency_conflict`, `idempotency_key_reused`, `conflict`.", body = ContactChannelConflict),
    ),
)]
pub(crate) async fn add_contact_channel(
    Call(core, caller): Call,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<AddChannel>,
) -> Result<Reply<ChannelBody>> {
    Ok(Reply::created(core.contacts().add_channel(&caller, &id, value, key.as_deref()).await?.into()))
}

/// Change a channel of a contact
#[utoipa::path(
    patch, path = "/v1/contacts/{id}/channels/{channelId}", tag = "Contacts", request_body = UpdateContactChannel,
    params(
        ("id" = ContactId, Path, description = "The contact."),
        ("channelId" = ContactChannelId, Path, description = "The channel."),
    ),
    responses(
        (status = 200, description = "The channel as it is now.", body = ChannelBody),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_contact_channel(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
    Body { value, .. }: Body<UpdateContactChannel>,
) -> Result<Reply<ChannelBody>> {
    Ok(Reply::ok(core.contacts().update_channel(&caller, &id, &channel, value).await?.into()))
}

/// Remove a channel of a contact
///
/// The last channel cannot be removed. An identifier without a channel can be used for another contact.
#[utoipa::path(
    delete, path = "/v1/contacts/{id}/channels/{channelId}", tag = "Contacts",
    params(
        ("id" = ContactId, Path, description = "The contact."),
        ("channelId" = ContactChannelId, Path, description = "The channel."),
    ),
    responses(
        (status = 204, description = "Removed."),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn remove_contact_channel(Call(core, caller): Call, Path((id, channel)): Path<(String, String)>) -> Result<NoContent> {
    core.contacts().remove_channel(&caller, &id, &channel).await?;
    Ok(NoContent)
}

/// Make a channel the primary one of its type
#[utoipa::path(
    post, path = "/v1/contacts/{id}/channels/{channelId}/primary", tag = "Contacts",
    params(
        ("id" = ContactId, Path, description = "The contact."),
        ("channelId" = ContactChannelId, Path, description = "The channel."),
    ),
    responses(
        (status = 200, description = "The channel as it is now.", body = ChannelBody),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn make_contact_channel_primary(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
    _: NoBody,
) -> Result<Reply<ChannelBody>> {
    Ok(Reply::ok(core.contacts().make_channel_primary(&caller, &id, &channel).await?.into()))
}
