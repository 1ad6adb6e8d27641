//! The webhook of an environment.

use nuncio_core::webhooks::{ExpireOld, PutWebhook, WebhookView};
use nuncio_domain::Redacted;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, OptionalBody};
use crate::reply::{NoContent, Reply, Result};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(get_webhook, put_webhook, delete_webhook)).routes(routes!(rotate_webhook_secret))
}

/// Get the webhook of the environment
///
/// The environment's webhook, for events without a sender. Each sender has a separate one.
#[utoipa::path(
    get, path = "/v1/webhook", tag = "Webhooks",
    responses(
        (status = 200, description = "The webhook.", body = WebhookView),
        (status = 404, description = "The environment has no webhook. Code: `not_found`.", body = ErrorBody),
    ),
)]
pub(crate) async fn get_webhook(Call(core, caller): Call) -> Result<Reply<WebhookView>> {
    Ok(Reply::ok(core.webhooks().get(&caller).await?))
}

/// Set the webhook of the environment
///
/// It gets events without a sender; those of messages, conversations and broadcasts always have one. Replaces an existing one, but keeps its
/// signing secret. If there was none, the response contains the secret, which is not shown again.
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
        (status = 404, description = "The environment has no webhook. Code: `not_found`.", body = ErrorBody),
    ),
)]
pub(crate) async fn delete_webhook(Call(core, caller): Call) -> Result<NoContent> {
    core.webhooks().delete(&caller).await?;
    Ok(NoContent)
}

/// How to rotate a signing secret.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RotateSecret {
    /// When the old secret expires: with `24h`, the default, it also signs for a day; with `now`, at once.
    pub(crate) expire_old: Option<ExpireOld>,
}

/// A signing secret.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookSecret)]
pub(crate) struct SecretBody {
    /// The secret, which is not shown again.
    #[schema(example = "<SIGNING_SECRET>")]
    secret: String,
}

impl From<Redacted<String>> for SecretBody {
    fn from(secret: Redacted<String>) -> Self {
        Self { secret: secret.expose().clone() }
    }
}

/// Rotate the signing secret of the environment's webhook
///
/// The new secret is not shown again. The old one also signs for 24 hours, unless `expireOld` is `now`. The body is optional.
#[utoipa::path(
    post, path = "/v1/webhook/secret", tag = "Webhooks", request_body = RotateSecret,
    responses((status = 200, description = "The new secret.", body = SecretBody)),
)]
pub(crate) async fn rotate_webhook_secret(
    Call(core, caller): Call,
    OptionalBody(body): OptionalBody<RotateSecret>,
) -> Result<Reply<SecretBody>> {
    Ok(Reply::ok(core.webhooks().rotate_secret(&caller, body.expire_old.unwrap_or_default()).await?.into()))
}
