//! `PATCH /v1/senders/{id}`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::senders::{SenderView, UpdateSender};

use crate::error::ErrorBody;
use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// Change a sender
///
/// What is left out stays. If this sets the sender's first webhook, the answer has its signing secret, this once.
#[utoipa::path(
    patch, path = "/v1/senders/{id}", tag = "Senders", request_body = UpdateSender,
    params(("id" = String, Path, description = "The sender.", example = "snd_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 200, description = "The sender as it is now.", body = SenderView),
        (status = 409, description = "The phone number is another sender's. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_sender(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateSender>,
) -> Result<Reply<SenderView>> {
    Ok(Reply::ok(core.senders().update(&caller, &id, value).await?))
}
