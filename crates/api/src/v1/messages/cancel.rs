//! `POST /v1/messages/{id}/cancel`.

use nuncio_domain::MessageId;

use super::get::MessageBody;
use crate::extract::{Call, NoBody, Path};
use crate::reply::{Reply, Result};

/// Cancel a message
///
/// Cancels a message that no provider has yet. For any other, the response is 400 with its status.
#[utoipa::path(
    post, path = "/v1/messages/{id}/cancel", tag = "Messages",
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The message, cancelled.", body = MessageBody)),
)]
pub(crate) async fn cancel_message(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<MessageBody>> {
    Ok(Reply::ok(core.messages().cancel(&caller, &id).await?.into()))
}
