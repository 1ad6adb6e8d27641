//! `/v1/senders/{id}/channels/{channel}`: the provider account that carries a channel.

use axum::extract::State;
use nuncio_core::senders::ConnectionView;
use nuncio_core::{Core, PutConnection};
use nuncio_domain::Channel;

use crate::extract::{Auth, Body, Path};
use crate::reply::{NoContent, Reply, Result};

/// Get the provider account of a channel
///
/// Without its secrets, which nobody can read again.
#[utoipa::path(
    get, path = "/v1/senders/{id}/channels/{channel}", tag = "Senders",
    params(
        ("id" = String, Path, description = "The sender.", example = "snd_01hgw2bbg0e9tatjpp9vyrkcyk"),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses((status = 200, description = "The provider account.", body = ConnectionView)),
)]
pub(crate) async fn get_sender_channel(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path((id, channel)): Path<(String, String)>,
) -> Result<Reply<ConnectionView>> {
    Ok(Reply::ok(core.get_channel(&caller, &id, &channel).await?))
}

/// Set the provider account of a channel
///
/// In place of the one that it has. Settings and throttle are replaced whole; secrets that are left out keep their value while `kind`
/// stays the same. Nothing is sent to the provider to try it out. In the test world `kind` must be `sim`.
#[utoipa::path(
    put, path = "/v1/senders/{id}/channels/{channel}", tag = "Senders", request_body = PutConnection,
    params(
        ("id" = String, Path, description = "The sender.", example = "snd_01hgw2bbg0e9tatjpp9vyrkcyk"),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses(
        (status = 200, description = "The provider account, in place of another one.", body = ConnectionView),
        (status = 201, description = "The provider account; there was none.", body = ConnectionView),
    ),
)]
pub(crate) async fn put_sender_channel(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path((id, channel)): Path<(String, String)>,
    Body { value, .. }: Body<PutConnection>,
) -> Result<Reply<ConnectionView>> {
    let (connection, is_new) = core.put_channel(&caller, &id, &channel, value).await?;
    Ok(if is_new { Reply::created(connection) } else { Reply::ok(connection) })
}

/// Remove the provider account of a channel
///
/// Messages that wait for it stay as they are until they are cancelled.
#[utoipa::path(
    delete, path = "/v1/senders/{id}/channels/{channel}", tag = "Senders",
    params(
        ("id" = String, Path, description = "The sender.", example = "snd_01hgw2bbg0e9tatjpp9vyrkcyk"),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses((status = 204, description = "It is gone.")),
)]
pub(crate) async fn delete_sender_channel(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path((id, channel)): Path<(String, String)>,
) -> Result<NoContent> {
    core.delete_channel(&caller, &id, &channel).await?;
    Ok(NoContent)
}
