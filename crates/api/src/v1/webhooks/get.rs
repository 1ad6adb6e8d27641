//! `GET /v1/webhooks/deliveries/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use super::DeliveryBody;
use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Read a webhook delivery
#[utoipa::path(
    get, path = "/v1/webhooks/deliveries/{id}", tag = "Webhooks", params(("id" = String, Path, description = "The delivery.")),
    responses((status = 200, description = "The delivery.", body = DeliveryBody)),
)]
pub(crate) async fn get_webhook_delivery(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
) -> Result<Reply<DeliveryBody>> {
    Ok(Reply::ok(core.webhooks().get_delivery(&caller, &id).await?.into()))
}
