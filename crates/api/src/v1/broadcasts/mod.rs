mod compose;
mod contacts;
mod import;
mod results;

use nuncio_core::broadcasts::{
    BroadcastProgress, BroadcastStatistics, BroadcastView, CreateBroadcast, ListBroadcasts, ScheduleBroadcast, SendBroadcast,
    UpdateBroadcast,
};
use nuncio_core::messages::SendOptions;
use nuncio_domain::BroadcastId;

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey, Lenient, NoBody, OptionalBody, Path, Query, ServiceSender};
use crate::reply::{NoContent, Reply, Result, named, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create_broadcast, list_broadcasts))
        .routes(routes!(get_broadcast, update_broadcast, delete_broadcast))
        .routes(routes!(contacts::add_broadcast_contacts, contacts::list_broadcast_contacts))
        .routes(routes!(contacts::delete_broadcast_contact))
        .routes(routes!(contacts::select_broadcast_contacts))
        .routes(routes!(import::import_broadcast_contacts))
        .routes(routes!(send_broadcast))
        .routes(routes!(schedule_broadcast))
        .routes(routes!(get_broadcast_progress))
        .routes(routes!(get_broadcast_statistics))
        .routes(routes!(compose::preview_broadcast))
        .routes(routes!(compose::test_broadcast))
        .routes(routes!(compose::clone_broadcast))
        .routes(routes!(compose::estimate_broadcast))
        .routes(routes!(results::export_broadcast_results))
        .routes(routes!(pause_broadcast))
        .routes(routes!(resume_broadcast))
        .routes(routes!(cancel_broadcast))
        .routes(routes!(escalate_broadcast))
        .routes(routes!(retry_broadcast_review))
}

repeated! {
    /// The broadcast that an idempotency key was used for.
    BroadcastConflict: broadcast of BroadcastView
}

/// Create a broadcast
///
/// Creates a draft without recipients. The limits of its channel apply to its content, as for a message. Without `senderId`, it is sent by
/// the sender in `Service-Sender`, or by the default sender. The two must not differ.
#[utoipa::path(
    post, path = "/v1/broadcasts", tag = "Broadcasts", request_body = CreateBroadcast, params(ServiceSender, IdempotencyKey),
    responses(
        (status = 201, description = "The broadcast, a draft.", body = BroadcastBody, links(
            ("get" = (operation_id = "get_broadcast", parameters(("id" = "$response.body#/broadcast/id")))),
            ("add" = (operation_id = "add_broadcast_contacts", parameters(("id" = "$response.body#/broadcast/id")))),
            ("send" = (operation_id = "send_broadcast", parameters(("id" = "$response.body#/broadcast/id")))),
        )),
        (status = 400, description = "The request is invalid, or there is no default sender. Code: `sender_not_configured`.", body = ErrorBody),
        (status = 404, description = "No such sender or template in this environment. Code: `not_found`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = BroadcastConflict),
    ),
)]
pub(crate) async fn create_broadcast(
    Call(core, caller): Call,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Lenient(lenient): Lenient,
    ServiceSender(sender): ServiceSender,
    Body { value, .. }: Body<CreateBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    let options = SendOptions { sender, idempotency_key, lenient, ..SendOptions::default() };
    Ok(Reply::created(core.broadcasts().create(&caller, value, options).await?.into()))
}

page! {
    /// A page of broadcasts.
    BroadcastPage of BroadcastView
}

/// List broadcasts
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/broadcasts", tag = "Broadcasts", params(ListBroadcasts),
    responses((status = 200, description = "A page of broadcasts.", body = BroadcastPage)),
)]
pub(crate) async fn list_broadcasts(Call(core, caller): Call, Query(list): Query<ListBroadcasts>) -> Result<Reply<BroadcastPage>> {
    Ok(Reply::ok(core.broadcasts().list(&caller, &list).await?.into()))
}

named! {
    /// A broadcast under its name.
    BroadcastBody as BroadcastResponse: broadcast of BroadcastView
}

/// Get a broadcast
///
/// Includes the number of recipients by status, always exact.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn get_broadcast(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().get(&caller, &id).await?.into()))
}

/// Edit a broadcast
///
/// Only for a draft or a rejected broadcast. A rejected broadcast whose content was edited can be reviewed again.
#[utoipa::path(
    patch, path = "/v1/broadcasts/{id}", tag = "Broadcasts", request_body = UpdateBroadcast, params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses(
        (status = 200, description = "The broadcast.", body = BroadcastBody),
        (status = 400, description = "The request is invalid, or the broadcast is neither a draft nor rejected. Code: `broadcast_not_editable`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Lenient(lenient): Lenient,
    Body { value, .. }: Body<UpdateBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().update(&caller, &id, value, lenient).await?.into()))
}

/// Delete a broadcast
///
/// Only for a draft. Its recipients are deleted too.
#[utoipa::path(
    delete, path = "/v1/broadcasts/{id}", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 204, description = "Deleted.")),
)]
pub(crate) async fn delete_broadcast(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.broadcasts().delete(&caller, &id).await?;
    Ok(NoContent)
}

/// Send a broadcast
///
/// The content is reviewed first. If it passes, the broadcast is sent at once, or at its scheduled time.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/send", tag = "Broadcasts", request_body = SendBroadcast, params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses(
        (status = 202, description = "The broadcast, waiting for its review.", body = BroadcastBody),
        (status = 400, description = "The request is invalid, or the broadcast cannot be sent. Codes: `no_contacts`, `sender_not_configured`, `template_not_approved`.", body = ErrorBody),
        (status = 402, description = "The balance does not cover it. Code: `insufficient_balance`.", body = ErrorBody),
    ),
)]
pub(crate) async fn send_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    OptionalBody(command): OptionalBody<SendBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::accepted(core.broadcasts().send(&caller, &id, command).await?.into()))
}

/// Reschedule a broadcast
///
/// Only for a scheduled broadcast.
#[utoipa::path(
    patch, path = "/v1/broadcasts/{id}/schedule", tag = "Broadcasts", request_body = ScheduleBroadcast, params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn schedule_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<ScheduleBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().schedule(&caller, &id, value).await?.into()))
}

/// Get the progress of a broadcast
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/progress", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The progress.", body = BroadcastProgress)),
)]
pub(crate) async fn get_broadcast_progress(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<BroadcastProgress>> {
    Ok(Reply::ok(core.broadcasts().progress(&caller, &id).await?))
}

/// Get the statistics of a broadcast
///
/// Results by channel, country and failure reason, and the clicks on its links. Reads all recipients, which takes some seconds for a
/// million; *Get the progress of a broadcast* is cheap.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/statistics", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The statistics.", body = BroadcastStatistics)),
)]
pub(crate) async fn get_broadcast_statistics(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<BroadcastStatistics>> {
    Ok(Reply::ok(core.broadcasts().statistics(&caller, &id).await?))
}

/// Pause a broadcast
///
/// Attempts in flight still complete. Messages that no provider has yet return to the broadcast, and are sent once it is resumed.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/pause", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn pause_broadcast(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().pause(&caller, &id).await?.into()))
}

/// Resume a broadcast
///
/// Continues where it was paused.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/resume", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn resume_broadcast(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().resume(&caller, &id).await?.into()))
}

/// Cancel a broadcast
///
/// Recipients without a message are skipped, and messages that no provider has yet are cancelled.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/cancel", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn cancel_broadcast(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().cancel(&caller, &id).await?.into()))
}

/// Escalate a rejected broadcast
///
/// Requests a human review of a broadcast that the automated review rejected.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/escalate", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses((status = 200, description = "The broadcast.", body = BroadcastBody)),
)]
pub(crate) async fn escalate_broadcast(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().escalate(&caller, &id).await?.into()))
}

/// Retry the review of a broadcast
///
/// For a rejected broadcast whose content was edited. A broadcast is reviewed at most three times.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/retry-review", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses(
        (status = 200, description = "The broadcast.", body = BroadcastBody),
        (status = 400, description = "The broadcast cannot be reviewed again. Codes: `review_attempts_exhausted`, `sender_not_configured`, `template_not_approved`.", body = ErrorBody),
        (status = 402, description = "The balance does not cover it. Code: `insufficient_balance`.", body = ErrorBody),
    ),
)]
pub(crate) async fn retry_broadcast_review(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::ok(core.broadcasts().retry_review(&caller, &id).await?.into()))
}
