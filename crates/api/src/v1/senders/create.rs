//! `POST /v1/senders`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::senders::{CreateSender, SenderView};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{Code, Details, ErrorObject};
use crate::extract::{Auth, Body, IdempotencyKey};
use crate::original::Original;
use crate::reply::{Reply, Result};

/// The phone number is another sender's, or the idempotency key was used before.
#[derive(Serialize, ToSchema)]
pub(crate) struct SenderConflict {
    /// With an idempotency key that was used: the original sender, unless it was deleted since.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Original<SenderView>>)]
    sender: Option<SenderView>,
    /// `idempotency_conflict` if the request is the same, `idempotency_key_reused` if it is another,
    /// `conflict` if the number is taken.
    #[schema(value_type = Code)]
    code: &'static str,
    /// In words.
    message: String,
    details: Details,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

/// Make a sender
///
/// With `webhookUrl`, the answer has the secret that signs its posts: it is shown this once. In the test world every channel of the new
/// sender is simulated; in the live world, connect its channels next.
#[utoipa::path(
    post, path = "/v1/senders", tag = "Senders", request_body = CreateSender, params(IdempotencyKey),
    responses(
        (status = 201, description = "The new sender.", body = SenderView, links(
            ("get" = (operation_id = "get_sender", parameters(("id" = "$response.body#/id")))),
            ("update" = (operation_id = "update_sender", parameters(("id" = "$response.body#/id")))),
            ("delete" = (operation_id = "delete_sender", parameters(("id" = "$response.body#/id")))),
        )),
        (status = 409, description = "The phone number is another sender's, or the idempotency key was used before. Codes: `conflict`, `idempotency_conflict`, `idempotency_key_reused`.", body = SenderConflict),
    ),
)]
pub(crate) async fn create_sender(
    State(core): State<Core>,
    Auth(caller): Auth,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Body { value, .. }: Body<CreateSender>,
) -> Result<Reply<SenderView>> {
    Ok(Reply::created(core.create_sender(&caller, value, idempotency_key.as_deref()).await?))
}
