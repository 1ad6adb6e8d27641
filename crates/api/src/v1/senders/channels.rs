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
/// Secrets are not returned.
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
/// Replaces an existing one. Settings and throttle are replaced entirely; omitted secrets keep their value if `kind` and `settings` are unchanged.
/// The account is not tested. In the test environment `kind` must be `sim`.
///
/// Email to the address in `from` is received once the address is verified; see `inboundAddress`.
#[utoipa::path(
    put, path = "/v1/senders/{id}/channels/{channel}", tag = "Senders", request_body = PutConnection,
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses(
        (status = 200, description = "The provider account, which replaced another.", body = ConnectionView),
        (status = 201, description = "The new provider account.", body = ConnectionView),
        (status = 409, description = "Another environment receives email to the address in `from`. Code: `conflict`.", body = ErrorBody),
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
/// Messages that wait for it go by their fallback, or fail.
#[utoipa::path(
    delete, path = "/v1/senders/{id}/channels/{channel}", tag = "Senders",
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel."),
    ),
    responses((status = 204, description = "Removed.")),
)]
pub(crate) async fn delete_sender_channel(Call(core, caller): Call, Path((id, channel)): Path<(String, String)>) -> Result<NoContent> {
    core.senders().delete_channel(&caller, &id, &channel).await?;
    Ok(NoContent)
}

/// Result of the test of a provider account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConnectionTest {
    /// Whether the provider accepted the login.
    ok: bool,
    /// The provider's response, or the error.
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
    responses((status = 200, description = "The result, even if the provider rejected the login.", body = ConnectionTest)),
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

/// Email a code to the inbound address
///
/// The code is valid for 15 minutes, and a new one replaces it. Limits: one per minute and 5 per day for an address, and 20 addresses per
/// day. The response is 400 if the operator has not configured a mail server for codes.
#[utoipa::path(
    post, path = "/v1/senders/{id}/channels/{channel}/verification", tag = "Senders",
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel; only `email` has an inbound address."),
    ),
    responses(
        (status = 202, description = "The code was sent, or the address is already verified.", body = SentCodeView),
        (status = 409, description = "Another environment receives email to the address, or too many codes were sent. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn request_sender_channel_code(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
    _: NoBody,
) -> Result<Reply<SentCodeView>> {
    Ok(Reply::accepted(core.senders().request_address_code(&caller, &id, &channel).await?))
}

/// Verify the inbound address by its code
///
/// Email to the address is received from then on, if the sender has `emailReceivingEnabled`. After 5 wrong codes, request a new one.
#[utoipa::path(
    post, path = "/v1/senders/{id}/channels/{channel}/verify", tag = "Senders", request_body = EnterCode,
    params(
        ("id" = SenderId, Path, description = "The sender."),
        ("channel" = Channel, Path, description = "The channel; only `email` has an inbound address."),
    ),
    responses(
        (status = 200, description = "The address is verified.", body = InboundAddressView),
        (status = 409, description = "Another environment receives email to the address. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn verify_sender_channel(
    Call(core, caller): Call,
    Path((id, channel)): Path<(String, String)>,
    Body { value, .. }: Body<EnterCode>,
) -> Result<Reply<InboundAddressView>> {
    Ok(Reply::ok(core.senders().verify_address(&caller, &id, &channel, &value).await?))
}
