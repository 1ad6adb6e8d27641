//! `PATCH /v1/senders/{id}`.

use nuncio_core::senders::{SenderView, UpdateSender};
use nuncio_domain::SenderId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// Change a sender
///
/// Absent fields stay unchanged. If this sets the sender's first webhook, the response contains its signing secret, not shown again.
#[utoipa::path(
    patch, path = "/v1/senders/{id}", tag = "Senders", request_body = UpdateSender,
    params(("id" = SenderId, Path, description = "The sender.")),
    responses(
        (status = 200, description = "The sender as it is now.", body = SenderView),
        (status = 409, description = "The phone number belongs to another sender. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_sender(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateSender>,
) -> Result<Reply<SenderView>> {
    Ok(Reply::ok(core.senders().update(&caller, &id, value).await?))
}
