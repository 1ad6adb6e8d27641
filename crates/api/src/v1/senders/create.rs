//! `POST /v1/senders`.

use nuncio_core::senders::{CreateSender, SenderView};

use crate::error_schemas::repeated;
use crate::extract::{Body, Call, IdempotencyKey};
use crate::reply::{Reply, Result};

repeated! {
    /// The sender that an idempotency key was used for.
    SenderConflict: sender of SenderView
}

/// Create a sender
///
/// With `webhookUrl`, the response contains the webhook's signing secret, which is not shown again. In the test environment every channel
/// of the new sender is simulated; in the live environment, connect its channels next.
#[utoipa::path(
    post, path = "/v1/senders", tag = "Senders", request_body = CreateSender, params(IdempotencyKey),
    responses(
        (status = 201, description = "The new sender.", body = SenderView, links(
            ("get" = (operation_id = "get_sender", parameters(("id" = "$response.body#/id")))),
            ("update" = (operation_id = "update_sender", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "delete_sender", parameters(("id" = "$response.body#/id")))),
        )),
        (status = 409, description = "The phone number belongs to another sender, or the idempotency key was used before. Codes: `conflict`, `idempotency_conflict`, `idempotency_key_reused`.", body = SenderConflict),
    ),
)]
pub(crate) async fn create_sender(
    Call(core, caller): Call,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Body { value, .. }: Body<CreateSender>,
) -> Result<Reply<SenderView>> {
    Ok(Reply::created(core.senders().create(&caller, value, idempotency_key.as_deref()).await?))
}
