//! `GET /v1/webhooks/deliveries/{id}`.

use nuncio_core::webhooks::DeliveryView;
use nuncio_domain::DeliveryId;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result, named};

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
