//! Webhook deliveries.

use nuncio_core::webhooks::{DeliveryView, ListDeliveries};
use nuncio_domain::{DeliveryId, EventId, SenderId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::{Call, NoBody, Path, Query};
use crate::reply::{Reply, Result, named, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list_webhook_deliveries))
        .routes(routes!(get_webhook_delivery))
        .routes(routes!(replay_webhook_delivery))
        .routes(routes!(test_sender_webhook))
        .routes(routes!(test_webhook))
}

page! {
    /// A page of deliveries.
    WebhookDeliveryPage of DeliveryView
}

/// List webhook deliveries
///
/// Newest event first.
#[utoipa::path(
    get, path = "/v1/webhooks/deliveries", tag = "Webhooks", params(ListDeliveries),
    responses((status = 200, description = "A page of deliveries.", body = WebhookDeliveryPage)),
)]
pub(crate) async fn list_webhook_deliveries(
    Call(core, caller): Call,
    Query(list): Query<ListDeliveries>,
) -> Result<Reply<WebhookDeliveryPage>> {
    Ok(Reply::ok(core.webhooks().list_deliveries(&caller, &list).await?.into()))
}

named! {
    /// A delivery under its name.
    DeliveryBody as WebhookDeliveryResponse: delivery of DeliveryView
}

/// Get a webhook delivery
#[utoipa::path(
    get, path = "/v1/webhooks/deliveries/{id}", tag = "Webhooks", params(("id" = DeliveryId, Path, description = "The delivery.")),
    responses((status = 200, description = "The delivery.", body = DeliveryBody)),
)]
pub(crate) async fn get_webhook_delivery(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<DeliveryBody>> {
    Ok(Reply::ok(core.webhooks().get_delivery(&caller, &id).await?.into()))
}

/// Replay a webhook delivery
///
/// Posts the event again, whatever the status of the delivery, with the same id and a full series of retries.
#[utoipa::path(
    post, path = "/v1/webhooks/deliveries/{id}/replay", tag = "Webhooks", params(("id" = DeliveryId, Path, description = "The delivery.")),
    responses((status = 202, description = "The delivery, pending.", body = DeliveryBody)),
)]
pub(crate) async fn replay_webhook_delivery(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<DeliveryBody>> {
    Ok(Reply::accepted(core.webhooks().replay_delivery(&caller, &id).await?.into()))
}

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
