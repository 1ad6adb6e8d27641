//! `POST /v1/senders/{id}/webhook/test` and `POST /v1/webhook/test`.

use nuncio_domain::{DeliveryId, EventId, SenderId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::{Call, NoBody, Path};
use crate::reply::{Reply, Result};

/// The test of a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WebhookTest)]
pub(crate) struct WebhookTested {
    /// The event.
    event_id: EventId,
    /// Its delivery, which will contain the endpoint's response.
    delivery_id: DeliveryId,
}

/// Test a sender's webhook
///
/// Posts an event of type `webhook.test`, whatever event types the webhook selects.
#[utoipa::path(
    post, path = "/v1/senders/{id}/webhook/test", tag = "Webhooks", params(("id" = SenderId, Path, description = "The sender.")),
    responses((status = 202, description = "The event will be posted.", body = WebhookTested)),
)]
pub(crate) async fn test_sender_webhook(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<WebhookTested>> {
    let (event_id, delivery_id) = core.webhooks().test(&caller, Some(&id)).await?;
    Ok(Reply::accepted(WebhookTested { event_id, delivery_id }))
}

/// Test the environment's webhook
///
/// Posts an event of type `webhook.test`, whatever event types the webhook selects.
#[utoipa::path(
    post, path = "/v1/webhook/test", tag = "Webhooks",
    responses((status = 202, description = "The event will be posted.", body = WebhookTested)),
)]
pub(crate) async fn test_webhook(Call(core, caller): Call, _: NoBody) -> Result<Reply<WebhookTested>> {
    let (event_id, delivery_id) = core.webhooks().test(&caller, None).await?;
    Ok(Reply::accepted(WebhookTested { event_id, delivery_id }))
}
