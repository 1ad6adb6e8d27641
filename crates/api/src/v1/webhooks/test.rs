//! `POST /v1/senders/{id}/webhook/test` and `POST /v1/webhook/test`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_domain::{DeliveryId, EventId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::{Auth, NoBody, Path};
use crate::reply::{Reply, Result};

/// What was sent to try a webhook out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookTest)]
pub(crate) struct WebhookTested {
    /// The event.
    #[schema(value_type = String)]
    event_id: EventId,
    /// Its delivery, which tells what the endpoint answered.
    #[schema(value_type = String)]
    delivery_id: DeliveryId,
}

/// Try a sender's webhook out
///
/// Posts an event of type `webhook.test`, whatever events the webhook asks for.
#[utoipa::path(
    post, path = "/v1/senders/{id}/webhook/test", tag = "Webhooks", params(("id" = String, Path, description = "The sender.")),
    responses((status = 202, description = "The event will be posted.", body = WebhookTested)),
)]
pub(crate) async fn test_sender_webhook(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    _: NoBody,
) -> Result<Reply<WebhookTested>> {
    let (event_id, delivery_id) = core.webhooks().test(&caller, Some(&id)).await?;
    Ok(Reply::accepted(WebhookTested { event_id, delivery_id }))
}

/// Try the environment's webhook out
///
/// Posts an event of type `webhook.test`, whatever events the webhook asks for.
#[utoipa::path(
    post, path = "/v1/webhook/test", tag = "Webhooks",
    responses((status = 202, description = "The event will be posted.", body = WebhookTested)),
)]
pub(crate) async fn test_webhook(State(core): State<Core>, Auth(caller): Auth, _: NoBody) -> Result<Reply<WebhookTested>> {
    let (event_id, delivery_id) = core.webhooks().test(&caller, None).await?;
    Ok(Reply::accepted(WebhookTested { event_id, delivery_id }))
}
