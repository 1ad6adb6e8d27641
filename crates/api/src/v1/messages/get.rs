//! `GET /v1/messages/{id}`.

use axum::extract::State;

use super::MessageBody;
use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};
use crate::state::App;

/// Get a message
///
/// Where it stands, and what was tried so far.
#[utoipa::path(
    get, path = "/v1/messages/{id}", tag = "Messages",
    params(("id" = String, Path, description = "The message.", example = "msg_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The message.", body = MessageBody)),
)]
pub(crate) async fn get_message(State(app): State<App>, Auth(caller): Auth, Path(id): Path<String>) -> Result<Reply<MessageBody>> {
    let mut lease = app.budget.lease();
    let view = app.core.get_message(&caller, &id, |bytes| lease.grow_to_read(bytes)).await?;
    Ok(Reply::ok(view.into()))
}
