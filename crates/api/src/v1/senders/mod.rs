mod channels;
mod profile;

use nuncio_core::senders::{CreateSender, ListSenders, SenderView, UpdateSender};
use nuncio_domain::SenderId;

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey, OptionalBody, Path, Query};
use crate::reply::{NoContent, Reply, Result, page};
use crate::routes::{Routes, routes};
use crate::v1::webhook::{RotateSecret, SecretBody};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list_senders, create_sender))
        .routes(routes!(get_sender, update_sender, delete_sender))
        .routes(routes!(channels::get_sender_channel, channels::put_sender_channel, channels::delete_sender_channel))
        .routes(routes!(channels::test_sender_channel))
        .routes(routes!(channels::request_sender_channel_code))
        .routes(routes!(channels::verify_sender_channel))
        .routes(routes!(profile::get_sender_profile, profile::update_sender_profile))
        .routes(routes!(profile::set_sender_profile_picture))
        .routes(routes!(rotate_sender_webhook_secret))
}

repeated! {
    /// The sender that an idempotency key was used for.
    SenderConflict: sender of SenderView
}

/// Create a sender
///
/// With `webhookUrl`, the response contains the webhook's signing secret, which is not shown again. In the test environment every channel
/// of the new sender is simulated; in the live environment, connect its channels next.
#[utoipa::path(
    post, path = "/v1/senders", tag = "Senders", request_body = CreateSender, params(IdempotencyKey),
    responses(
        (status = 201, description = "The new sender.", body = SenderView, links(
            ("get" = (operation_id = "get_sender", parameters(("id" = "$response.body#/id")))),
            ("update" = (operation_id = "update_sender", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "delete_sender", parameters(("id" = "$response.body#/id")))),
        )),
        (status = 409, description = "The phone number belongs to another sender, or the idempotency key was used before. Codes: `conflict`, `idempotency_conflict`, `idempotency_key_reused`.", body = SenderConflict),
    ),
)]
pub(crate) async fn create_sender(
    Call(core, caller): Call,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Body { value, .. }: Body<CreateSender>,
) -> Result<Reply<SenderView>> {
    Ok(Reply::created(core.senders().create(&caller, value, idempotency_key.as_deref()).await?))
}

page! {
    /// A page of senders.
    SenderPage of SenderView
}

/// List senders
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/senders", tag = "Senders", params(ListSenders),
    responses((status = 200, description = "A page of senders.", body = SenderPage)),
)]
pub(crate) async fn list_senders(Call(core, caller): Call, Query(list): Query<ListSenders>) -> Result<Reply<SenderPage>> {
    Ok(Reply::ok(core.senders().list(&caller, &list).await?.into()))
}

/// Get a sender
#[utoipa::path(
    get, path = "/v1/senders/{id}", tag = "Senders",
    params(("id" = SenderId, Path, description = "The sender.")),
    responses((status = 200, description = "The sender.", body = SenderView)),
)]
pub(crate) async fn get_sender(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<SenderView>> {
    Ok(Reply::ok(core.senders().get(&caller, &id).await?))
}

/// Change a sender
///
/// Absent fields stay unchanged. If this sets the sender's first webhook, the response contains its signing secret, not shown again.
#[utoipa::path(
    patch, path = "/v1/senders/{id}", tag = "Senders", request_body = UpdateSender,
    params(("id" = SenderId, Path, description = "The sender.")),
    responses(
        (status = 200, description = "The sender as it is now.", body = SenderView),
        (status = 409, description = "The phone number belongs to another sender. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_sender(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateSender>,
) -> Result<Reply<SenderView>> {
    Ok(Reply::ok(core.senders().update(&caller, &id, value).await?))
}

/// Delete a sender
///
/// Its connections, webhook and profile are deleted too; its messages stay readable. For the default sender, and one with messages still
/// to be sent, the response is 400; `details.reason` is `default_sender` or `queued_messages`, also for a
/// broadcast that can still send.
#[utoipa::path(
    delete, path = "/v1/senders/{id}", tag = "Senders",
    params(("id" = SenderId, Path, description = "The sender.")),
    responses((status = 204, description = "Deleted.")),
)]
pub(crate) async fn delete_sender(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.senders().delete(&caller, &id).await?;
    Ok(NoContent)
}

/// Rotate the signing secret of a sender's webhook
///
/// The new secret is not shown again. The old one also signs for 24 hours, unless `expireOld` is `now`. The body is optional.
/// Needs `senders:write` in addition to `webhooks:write`.
#[utoipa::path(
    post, path = "/v1/senders/{id}/webhook/secret", tag = "Webhooks", request_body = RotateSecret,
    params(("id" = SenderId, Path, description = "The sender.")),
    responses((status = 200, description = "The new secret.", body = SecretBody)),
)]
pub(crate) async fn rotate_sender_webhook_secret(
    Call(core, caller): Call,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<RotateSecret>,
) -> Result<Reply<SecretBody>> {
    Ok(Reply::ok(core.webhooks().rotate_sender_secret(&caller, &id, body.expire_old.unwrap_or_default()).await?.into()))
}
