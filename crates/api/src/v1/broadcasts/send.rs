//! `POST /v1/broadcasts/{id}/send`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::broadcasts::SendBroadcast;

use super::BroadcastBody;
use crate::error::ErrorBody;
use crate::extract::{Auth, OptionalBody, Path};
use crate::reply::{Reply, Result};

/// Send a broadcast
///
/// Its content is reviewed first. If nothing is found it goes out at once, or at its time.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/send", tag = "Broadcasts", request_body = SendBroadcast, params(("id" = String, Path, description = "The broadcast.", example = "brd_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 202, description = "The broadcast, waiting for its review.", body = BroadcastBody),
        (status = 400, description = "The request is wrong, or the broadcast cannot go out. Codes: `no_contacts`, `sender_not_configured`, `template_not_approved`.", body = ErrorBody),
        (status = 402, description = "The balance does not cover it. Code: `insufficient_balance`.", body = ErrorBody),
    ),
)]
pub(crate) async fn send_broadcast(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    OptionalBody(command): OptionalBody<SendBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::accepted(core.broadcasts().send(&caller, &id, command).await?.into()))
}
