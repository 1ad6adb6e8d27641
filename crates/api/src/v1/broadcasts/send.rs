//! `POST /v1/broadcasts/{id}/send`.

use nuncio_core::broadcasts::SendBroadcast;
use nuncio_domain::BroadcastId;

use super::get::BroadcastBody;
use crate::error_schemas::ErrorBody;
use crate::extract::{Call, OptionalBody, Path};
use crate::reply::{Reply, Result};

/// Send a broadcast
///
/// The content is reviewed first. If it passes, the broadcast is sent at once, or at its scheduled time.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/send", tag = "Broadcasts", request_body = SendBroadcast, params(("id" = BroadcastId, Path, description = "The broadcast.")),
    responses(
        (status = 202, description = "The broadcast, waiting for its review.", body = BroadcastBody),
        (status = 400, description = "The request is invalid, or the broadcast cannot be sent. Codes: `no_contacts`, `sender_not_configured`, `template_not_approved`.", body = ErrorBody),
        (status = 402, description = "The balance does not cover it. Code: `insufficient_balance`.", body = ErrorBody),
    ),
)]
pub(crate) async fn send_broadcast(
    Call(core, caller): Call,
    Path(id): Path<String>,
    OptionalBody(command): OptionalBody<SendBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    Ok(Reply::accepted(core.broadcasts().send(&caller, &id, command).await?.into()))
}
