//! `POST /v1/broadcasts`.

use nuncio_core::broadcasts::{BroadcastView, CreateBroadcast};
use nuncio_core::messages::SendOptions;

use super::get::BroadcastBody;
use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Body, Call, IdempotencyKey, Lenient, ServiceSender};
use crate::reply::{Reply, Result};

repeated! {
    /// The broadcast that an idempotency key was used for.
    BroadcastConflict: broadcast of BroadcastView
}

/// Create a broadcast
///
/// Creates a draft without recipients. The limits of its channel apply to its content, as for a message. Without `senderId`, it is sent by
/// the sender in `Service-Sender`, or by the default sender. The two must not differ.
#[utoipa::path(
    post, path = "/v1/broadcasts", tag = "Broadcasts", request_body = CreateBroadcast, params(ServiceSender, IdempotencyKey),
    responses(
        (status = 201, description = "The broadcast, a draft.", body = BroadcastBody, links(
            ("get" = (operation_id = "get_broadcast", parameters(("id" = "$response.body#/broadcast/id")))),
            ("add" = (operation_id = "add_broadcast_contacts", parameters(("id" = "$response.body#/broadcast/id")))),
            ("send" = (operation_id = "send_broadcast", parameters(("id" = "$response.body#/broadcast/id")))),
        )),
        (status = 400, description = "The request is invalid, or there is no default sender. Code: `sender_not_configured`.", body = ErrorBody),
        (status = 404, description = "No such sender or template in this environment. Code: `not_found`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = BroadcastConflict),
    ),
)]
pub(crate) async fn create_broadcast(
    Call(core, caller): Call,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    Lenient(lenient): Lenient,
    ServiceSender(sender): ServiceSender,
    Body { value, .. }: Body<CreateBroadcast>,
) -> Result<Reply<BroadcastBody>> {
    let options = SendOptions { sender, idempotency_key, lenient, ..SendOptions::default() };
    Ok(Reply::created(core.broadcasts().create(&caller, value, options).await?.into()))
}
