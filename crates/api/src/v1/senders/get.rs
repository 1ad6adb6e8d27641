//! `GET /v1/senders/{id}`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::senders::SenderView;

use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Get a sender
#[utoipa::path(
    get, path = "/v1/senders/{id}", tag = "Senders",
    params(("id" = String, Path, description = "The sender.", example = "snd_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The sender.", body = SenderView)),
)]
pub(crate) async fn get_sender(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<Reply<SenderView>> {
    Ok(Reply::ok(core.senders().get(&caller, &id).await?))
}
