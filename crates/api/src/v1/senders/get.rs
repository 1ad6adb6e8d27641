//! `GET /v1/senders/{id}`.

use nuncio_core::senders::SenderView;
use nuncio_domain::SenderId;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result};

/// Get a sender
#[utoipa::path(
    get, path = "/v1/senders/{id}", tag = "Senders",
    params(("id" = SenderId, Path, description = "The sender.")),
    responses((status = 200, description = "The sender.", body = SenderView)),
)]
pub(crate) async fn get_sender(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<SenderView>> {
    Ok(Reply::ok(core.senders().get(&caller, &id).await?))
}
