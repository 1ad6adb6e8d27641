use nuncio_core::contacts::{
    AddChannel, ContactChannelIn, ContactChannelView, ContactView, CreateContact, ListContacts, MergeContacts, UpdateContact,
    UpdateContactChannel,
};
use nuncio_core::messages::ListContactMessages;
use nuncio_domain::{ContactChannelId, ContactId};

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey, NoBody, Path, Query};
use crate::reply::{NoContent, Reply, Result, named, page};
use crate::routes::{Routes, routes};
use crate::v1::messages::MessagePage;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create_contact, list_contacts))
        .routes(routes!(get_contact, update_contact, delete_contact))
        .routes(routes!(get_contact_by_phone))
        .routes(routes!(list_contact_messages))
        .routes(routes!(merge_contacts))
        .routes(routes!(dismiss_merge_suggestion))
        .routes(routes!(add_contact_channel))
        .routes(routes!(update_contact_channel, remove_contact_channel))
        .routes(routes!(make_contact_channel_primary))
}

repeated! {
    /// The contact that an idempotency key was used for.
    ContactConflict: contact of ContactView
}

/// Create a contact
///
/// An identifier belongs to one contact, across sms, whatsapp and voice. Everyone you wrote to, or who wrote to you, is already a contact:
/// for an identifier in use, the response is 400 `duplicate_identifier` with `details.contactId`.
#[utoipa::path(
    post, path = "/v1/contacts", tag = "Contacts", request_body = CreateContact, params(IdempotencyKey),
    responses(
        (status = 201, description = "The contact.", body = ContactView, links(
            ("get" = (operation_id = "get_contact", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "delete_contact", parameters(("id" = "$response.body#/id")))),
        )),
        (status = 400, description = "The request is invalid, or an identifier belongs to another contact. Code: `duplicate_identifier`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = ContactConflict),
    ),
)]
pub(crate) async fn create_contact(
    Call(core, caller): Call,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<CreateContact>,
) -> Result<Reply<ContactView>> {
    Ok(Reply::created(core.contacts().create(&caller, value, key.as_deref()).await?))
}

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

/// Change a contact
#[utoipa::path(
    patch, path = "/v1/contacts/{id}", tag = "Contacts", request_body = UpdateContact,
    params(("id" = ContactId, Path, description = "The contact.")),
    responses(
        (status = 200, description = "The contact as it is now.", body = ContactView),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_contact(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateContact>,
) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().update(&caller, &id, value).await?))
}

/// Erase a contact
///
/// Removes personal data from everything that is stored: identifiers, names, the content of messages, attachments, events. Messages not
/// yet sent are cancelled. Ids, statuses, times and costs of messages are kept. Opt-outs remain in force.
#[utoipa::path(
    delete, path = "/v1/contacts/{id}", tag = "Contacts",
    params(("id" = ContactId, Path, description = "The contact.")),
    responses(
        (status = 204, description = "Erased."),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn delete_contact(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.contacts().delete(&caller, &id).await?;
    Ok(NoContent)
}

/// Get the contact with a phone number
#[utoipa::path(
    get, path = "/v1/contacts/phone/{e164}", tag = "Contacts",
    params(("e164" = String, Path, description = "The phone number, in E.164 form.", example = "+34600111222")),
    responses((status = 200, description = "The contact.", body = ContactView)),
)]
pub(crate) async fn get_contact_by_phone(Call(core, caller): Call, Path(e164): Path<String>) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().get_by_phone(&caller, &e164).await?))
}

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

/// Merge another contact into this one
///
/// Moves all channels and messages of the source to the target, with their metrics. The target keeps its fields; those it lacks are taken
/// from the source. Lists no longer contain the source; reading it returns the target. Repeating the same merge changes nothing.
#[utoipa::path(
    post, path = "/v1/contacts/{id}/merge", tag = "Contacts", request_body = MergeContacts,
    params(("id" = ContactId, Path, description = "The contact that stays.")),
    responses(
        (status = 200, description = "The target as it is now.", body = ContactView),
        (status = 409, description = "One of the two was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn merge_contacts(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<MergeContacts>,
) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().merge(&caller, &id, value).await?))
}

/// Dismiss a suggested merge
///
/// The contact in `suggestedMergeWith` is not suggested again. Without a suggestion, nothing changes.
#[utoipa::path(
    delete, path = "/v1/contacts/{id}/merge-suggestion", tag = "Contacts",
    params(("id" = ContactId, Path, description = "The contact.")),
    responses(
        (status = 204, description = "Dismissed."),
        (status = 409, description = "The contact was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn dismiss_merge_suggestion(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.contacts().dismiss_merge_suggestion(&caller, &id).await?;
    Ok(NoContent)
}

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
