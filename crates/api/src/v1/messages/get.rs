//! `GET /v1/messages/{id}`.

use nuncio_core::messages::MessageView;
use nuncio_domain::MessageId;

use crate::budget::Lease;
use crate::extract::{Call, Path};
use crate::reply::{Reply, Result, named};

named! {
    /// A message under its name.
    MessageBody as MessageResponse: message of MessageView
}

/// Get a message
///
/// Its status, and its attempts so far.
#[utoipa::path(
    get, path = "/v1/messages/{id}", tag = "Messages",
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The message.", body = MessageBody)),
)]
pub(crate) async fn get_message(Call(core, caller): Call, Path(id): Path<String>, lease: Lease) -> Result<Reply<MessageBody>> {
    let view = core.messages().get(&caller, &id, |bytes| lease.grow_to_read(bytes)).await?;
    Ok(Reply::ok(view.into()))
}
