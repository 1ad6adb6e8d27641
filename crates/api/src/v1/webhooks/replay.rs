//! `POST /v1/webhooks/deliveries/{id}/replay`.

use nuncio_domain::DeliveryId;

use super::get::DeliveryBody;
use crate::extract::{Call, NoBody, Path};
use crate::reply::{Reply, Result};

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
