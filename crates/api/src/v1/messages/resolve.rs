//! `POST /v1/messages/{id}/resolve`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_domain::lifecycle::Resolution;
use serde::Deserialize;
use utoipa::ToSchema;

use super::MessageBody;
use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// What to do with a held message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolveMessage {
    /// `resend` sends it (again), `sent` believes that it went out, `failed` gives it up.
    action: Resolution,
}

/// Resolve a held message
///
/// Decides about a message that waits for a person: one that has a `heldReason`.
#[utoipa::path(
    post, path = "/v1/messages/{id}/resolve", tag = "Messages", request_body = ResolveMessage,
    params(("id" = String, Path, description = "The message.", example = "msg_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The message as it is now.", body = MessageBody)),
)]
pub(crate) async fn resolve_message(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value, .. }: Body<ResolveMessage>,
) -> Result<Reply<MessageBody>> {
    Ok(Reply::ok(core.messages().resolve(&caller, &id, value.action).await?.into()))
}
