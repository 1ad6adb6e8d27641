//! `POST /v1/messages/{id}/resolve`.

use nuncio_domain::MessageId;
use nuncio_domain::lifecycle::Resolution;
use serde::Deserialize;
use utoipa::ToSchema;

use super::get::MessageBody;
use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// What to do with a held message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolveMessage {
    /// `resend` sends it (again), `sent` treats it as sent, `failed` gives it up.
    action: Resolution,
}

/// Resolve a held message
///
/// For a message that waits for a human decision: one that has a `heldReason`.
#[utoipa::path(
    post, path = "/v1/messages/{id}/resolve", tag = "Messages", request_body = ResolveMessage,
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The message as it is now.", body = MessageBody)),
)]
pub(crate) async fn resolve_message(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<ResolveMessage>,
) -> Result<Reply<MessageBody>> {
    Ok(Reply::ok(core.messages().resolve(&caller, &id, value.action).await?.into()))
}
