//! `/v1/senders/{id}/channels/{channel}`: the provider account that carries a channel.

use nuncio_core::senders::ConnectionView;
use nuncio_core::{EnterCode, InboundAddressView, PutConnection, SentCodeView};
use nuncio_domain::{Channel, SenderId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, NoBody, Path};
use crate::reply::{NoContent, Reply, Result};

/// Get the provider account of a channel
///
/// Without its secrets, which cannot be read.
#[utoipa::path(
    get, path = "/v1/senders/{id}/channels/{channel}", tag = "Senders",
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses((status = 200, description = "The provider account.", body = ConnectionView)),
)]
pub(crate) async fn get_sender_channel(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
) -> Result<Reply<ConnectionView>> {
    Ok(Reply::ok(core.senders().get_channel(&caller, &id, &channel).await?))
}

/// Set the provider account of a channel
///
/// In place of the one that it has. Settings and throttle are replaced whole; secrets that are left out keep their value while `kind`
/// stays the same. Nothing is sent to the provider to try it out. In the test environment `kind` must be `sim`.
///
/// Email to the address in `from` comes in once the address is verified; see `inboundAddress`.
#[utoipa::path(
    put, path = "/v1/senders/{id}/channels/{channel}", tag = "Senders", request_body = PutConnection,
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses(
        (status = 200, description = "The provider account, in place of another one.", body = ConnectionView),
        (status = 201, description = "The provider account; there was none.", body = ConnectionView),
        (status = 409, description = "Email to the address in `from` comes to another environment. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn put_sender_channel(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
    Body { value, .. }: Body<PutConnection>,
) -> Result<Reply<ConnectionView>> {
    let (connection, is_new) = core.senders().put_channel(&caller, &id, &channel, value).await?;
    Ok(if is_new { Reply::created(connection) } else { Reply::ok(connection) })
}

/// Remove the provider account of a channel
///
/// Messages that wait for it stay as they are until they are cancelled.
#[utoipa::path(
    delete, path = "/v1/senders/{id}/channels/{channel}", tag = "Senders",
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses((status = 204, description = "It is gone.")),
)]
pub(crate) async fn delete_sender_channel(Call(core, caller): Call, Path((id, channel)): Path<(String, String)>) -> Result<NoContent> {
    core.senders().delete_channel(&caller, &id, &channel).await?;
    Ok(NoContent)
}

/// The result of a test of a provider account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConnectionTest {
    /// Whether the provider accepted the login.
    ok: bool,
    /// What the provider answered, or what is wrong.
    message: String,
}

/// Test the provider account of a channel
///
/// Connects to the provider and logs in, without sending a message.
#[utoipa::path(
    post, path = "/v1/senders/{id}/channels/{channel}/test", tag = "Senders",
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses((status = 200, description = "The result, also when the provider refused the login.", body = ConnectionTest)),
)]
pub(crate) async fn test_sender_channel(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
    _: NoBody,
) -> Result<Reply<ConnectionTest>> {
    let (ok, message) = match core.senders().check_channel(&caller, &id, &channel).await? {
        Ok(message) => (true, message),
        Err(message) => (false, message),
    };
    Ok(Reply::ok(ConnectionTest { ok, message }))
}

/// Mail a code to the inbound address
///
/// It is good for 15 minutes, and a new one replaces it. At most one a minute and 5 a day go to an address, and to 20 addresses a day.
/// Answers 400 if the operator has set up no mail server for codes.
#[utoipa::path(
    post, path = "/v1/senders/{id}/channels/{channel}/verification", tag = "Senders",
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel; only `email` has an inbound address."),
    ),
    responses(
        (status = 202, description = "The code is on its way, or the address is verified already.", body = SentCodeView),
        (status = 409, description = "Email to the address comes to another environment, or too many codes were mailed. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn request_sender_channel_code(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
) -> Result<Reply<SentCodeView>> {
    Ok(Reply::accepted(core.senders().request_address_code(&caller, &id, &channel).await?))
}

/// Verify the inbound address by its code
///
/// Email to the address comes in from then on, if the sender has `emailReceivingEnabled`. After 5 wrong codes a new one is needed.
#[utoipa::path(
    post, path = "/v1/senders/{id}/channels/{channel}/verify", tag = "Senders", request_body = EnterCode,
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel; only `email` has an inbound address."),
    ),
    responses(
        (status = 200, description = "The address is verified.", body = InboundAddressView),
        (status = 409, description = "Email to the address comes to another environment. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn verify_sender_channel(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
    Body { value, .. }: Body<EnterCode>,
) -> Result<Reply<InboundAddressView>> {
    Ok(Reply::ok(core.senders().verify_address(&caller, &id, &channel, &value).await?))
}
