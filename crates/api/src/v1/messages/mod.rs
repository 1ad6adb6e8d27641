mod attachments;
mod batch;
mod send;

pub(crate) use attachments::download;
pub(crate) use send::MessageConflict;

use nuncio_core::messages::{ListMessages, MessageView, React, ReceiptView, StrayReceiptView};
use nuncio_domain::MessageId;
use nuncio_domain::lifecycle::Resolution;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::budget::Lease;
use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, IdempotencyKey, NoBody, Path, Query};
use crate::reply::{Reply, Result, named, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(send::send_message, list_messages))
        .routes(routes!(batch::send_messages))
        .routes(routes!(get_message))
        .routes(routes!(cancel_message))
        .routes(routes!(resolve_message))
        .routes(routes!(react_to_message))
        .routes(routes!(attachments::list_message_attachments))
        .routes(routes!(list_message_receipts))
        .routes(routes!(list_stray_receipts))
}

named! {
    /// A message under its name.
    MessageBody as MessageResponse: message of MessageView
}

/// Get a message
///
/// Its status, and its attempts so far.
#[utoipa::path(
    get, path = "/v1/messages/{id}", tag = "Messages",
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The message.", body = MessageBody)),
)]
pub(crate) async fn get_message(Call(core, caller): Call, Path(id): Path<String>, lease: Lease) -> Result<Reply<MessageBody>> {
    let view = core.messages().get(&caller, &id, |bytes| lease.grow_to_read(bytes)).await?;
    Ok(Reply::ok(view.into()))
}

page! {
    /// A page of messages.
    MessagePage of MessageView
}

/// List messages
///
/// Newest first. `to`, `contactId`, `idempotencyKey`, `heldReason` and `status=failed` are indexed. With others, a request reads at most 10,000
/// messages: its page can be short or empty and still have a `nextCursor`.
#[utoipa::path(
    get, path = "/v1/messages", tag = "Messages", params(ListMessages),
    responses((status = 200, description = "A page of messages.", body = MessagePage)),
)]
pub(crate) async fn list_messages(Call(core, caller): Call, Query(list): Query<ListMessages>) -> Result<Reply<MessagePage>> {
    Ok(Reply::ok(core.messages().list(&caller, &list).await?.into()))
}

/// Cancel a message
///
/// Cancels a message that no provider has yet. For any other, the response is 400 with its status.
#[utoipa::path(
    post, path = "/v1/messages/{id}/cancel", tag = "Messages",
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The message, cancelled.", body = MessageBody)),
)]
pub(crate) async fn cancel_message(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<MessageBody>> {
    Ok(Reply::ok(core.messages().cancel(&caller, &id).await?.into()))
}

/// What to do with a held message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolveMessage {
    /// `resend` sends it (again), `sent` treats it as sent, `failed` gives it up.
    action: Resolution,
}

/// Resolve a held message
///
/// For a message that waits for a human decision: one that has a `heldReason`.
#[utoipa::path(
    post, path = "/v1/messages/{id}/resolve", tag = "Messages", request_body = ResolveMessage,
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The message as it is now.", body = MessageBody)),
)]
pub(crate) async fn resolve_message(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<ResolveMessage>,
) -> Result<Reply<MessageBody>> {
    Ok(Reply::ok(core.messages().resolve(&caller, &id, value.action).await?.into()))
}

/// React to a message
///
/// Sends an emoji as a message of type `reaction`, to the contact of the message, with the same sender and channel. WhatsApp, Telegram
/// and Instagram support reactions.
#[utoipa::path(
    post, path = "/v1/messages/{id}/reactions", tag = "Messages", request_body = React,
    params(("id" = MessageId, Path, description = "The message to react to."), IdempotencyKey),
    responses(
        (status = 202, description = "The reaction was accepted.", body = MessageBody),
        (status = 400, description = "The request is invalid, or the reaction cannot be sent. Codes: `whatsapp_window_closed`, `window_closed`, `sender_not_configured`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = MessageConflict),
        (status = 402, description = "The reaction can cost more than is available. Code: `insufficient_balance`.", body = ErrorBody),
        (status = 507, description = "The environment's storage quota leaves no room for it. Code: `storage_quota_exceeded`.", body = ErrorBody),
    ),
)]
pub(crate) async fn react_to_message(
    Call(core, caller): Call,
    Path(id): Path<String>,
    IdempotencyKey(key): IdempotencyKey,
    Body { value, .. }: Body<React>,
) -> Result<Reply<MessageBody>> {
    Ok(Reply::accepted(core.messages().react(&caller, &id, value, key).await?.into()))
}

/// The receipts of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptList {
    items: Vec<ReceiptView>,
}

/// Receipts that match no message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StrayReceiptList {
    items: Vec<StrayReceiptView>,
}

/// List the receipts of a message
///
/// The receipts as sent by the providers, oldest first; at most 100.
#[utoipa::path(
    get, path = "/v1/messages/{id}/receipts", tag = "Messages",
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The receipts.", body = ReceiptList)),
)]
pub(crate) async fn list_message_receipts(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<ReceiptList>> {
    Ok(Reply::ok(ReceiptList { items: core.messages().list_receipts(&caller, &id).await? }))
}

/// List receipts without a message
///
/// Receipts that match no message, newest first; at most 100. The server tries to match them for a day; after that they remain here.
#[utoipa::path(
    get, path = "/v1/stray-receipts", tag = "Messages",
    responses((status = 200, description = "The receipts.", body = StrayReceiptList)),
)]
pub(crate) async fn list_stray_receipts(Call(core, caller): Call) -> Result<Reply<StrayReceiptList>> {
    Ok(Reply::ok(StrayReceiptList { items: core.messages().list_stray_receipts(&caller).await? }))
}
