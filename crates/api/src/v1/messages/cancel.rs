//! `POST /v1/messages/{id}/cancel`.

use axum::extract::State;
use nuncio_core::Core;

use super::MessageBody;
use crate::extract::{Auth, NoBody, Path};
use crate::reply::{Reply, Result};

/// Cancel a message
///
/// Cancels a message that no provider has yet. Any other answers 400 with its status.
#[utoipa::path(
    post, path = "/v1/messages/{id}/cancel", tag = "Messages",
    params(("id" = String, Path, description = "The message.", example = "msg_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The message, cancelled.", body = MessageBody)),
)]
pub(crate) async fn cancel_message(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    _: NoBody,
) -> Result<Reply<MessageBody>> {
    Ok(Reply::ok(core.messages().cancel(&caller, &id).await?.into()))
}
