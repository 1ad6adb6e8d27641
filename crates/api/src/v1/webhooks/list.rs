//! `GET /v1/webhooks/deliveries`.

use nuncio_core::webhooks::{DeliveryView, ListDeliveries};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

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
