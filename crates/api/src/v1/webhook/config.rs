//! `/v1/webhook`.

use nuncio_core::webhooks::{PutWebhook, WebhookView};

use crate::extract::{Body, Call};
use crate::reply::{NoContent, Reply, Result};

/// Get the webhook of the environment
///
/// The environment's webhook, for events without a sender. Each sender has a separate one.
#[utoipa::path(
    get, path = "/v1/webhook", tag = "Webhooks",
    responses(
        (status = 200, description = "The webhook.", body = WebhookView),
        (status = 404, description = "The environment has no webhook. Code: `not_found`.", body = crate::error_schemas::ErrorBody),
    ),
)]
pub(crate) async fn get_webhook(Call(core, caller): Call) -> Result<Reply<WebhookView>> {
    Ok(Reply::ok(core.webhooks().get(&caller).await?))
}

/// Set the webhook of the environment
///
/// Replaces an existing one, but keeps its signing secret. If there was none, the response contains the secret, which is not shown again.
#[utoipa::path(
    put, path = "/v1/webhook", tag = "Webhooks", request_body = PutWebhook,
    responses(
        (status = 200, description = "The webhook, which replaced another.", body = WebhookView),
        (status = 201, description = "The new webhook with its secret.", body = WebhookView),
    ),
)]
pub(crate) async fn put_webhook(Call(core, caller): Call, Body { value, .. }: Body<PutWebhook>) -> Result<Reply<WebhookView>> {
    let (webhook, is_new) = core.webhooks().put(&caller, value).await?;
    Ok(if is_new { Reply::created(webhook) } else { Reply::ok(webhook) })
}

/// Remove the webhook of the environment
#[utoipa::path(
    delete, path = "/v1/webhook", tag = "Webhooks",
    responses(
        (status = 204, description = "Removed."),
        (status = 404, description = "The environment has no webhook. Code: `not_found`.", body = crate::error_schemas::ErrorBody),
    ),
)]
pub(crate) async fn delete_webhook(Call(core, caller): Call) -> Result<NoContent> {
    core.webhooks().delete(&caller).await?;
    Ok(NoContent)
}
