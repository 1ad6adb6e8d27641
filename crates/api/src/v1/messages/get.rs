//! `GET /v1/messages/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use super::MessageBody;
use crate::budget::Lease;
use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Get a message
///
/// Its status, and its attempts so far.
#[utoipa::path(
    get, path = "/v1/messages/{id}", tag = "Messages",
    params(("id" = String, Path, description = "The message.", example = "msg_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The message.", body = MessageBody)),
)]
pub(crate) async fn get_message(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    lease: Lease,
) -> Result<Reply<MessageBody>> {
    let view = core.messages().get(&caller, &id, |bytes| lease.grow_to_read(bytes)).await?;
    Ok(Reply::ok(view.into()))
}
