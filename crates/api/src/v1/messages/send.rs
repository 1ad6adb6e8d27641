//! `POST /v1/messages`.

use axum::response::{IntoResponse as _, Response};
use nuncio_core::messages::{MessageView, Plan, SendMessage, SendOptions};
use nuncio_domain::limits;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::MessageBody;
use crate::error_details::{IdempotencyCode, NoDetails, whole_or_reference};
use crate::error_schemas::{ErrorBody, ErrorObject};
use crate::extract::{Body, Call, IdempotencyKey, Lenient, Query, ServiceSender};
use crate::reply::{Reply, Result};

/// Query of a request to send.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct SendQuery {
    /// Only return how the message would be sent. Nothing is stored or sent.
    dry_run: bool,
}

/// How a message would be sent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagePlanResponse)]
pub(crate) struct PlanBody {
    plan: Plan,
}

/// The message that an idempotency key was used for.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessageConflict {
    /// The original message.
    #[schema(schema_with = whole_or_reference::<MessageView>)]
    message: MessageView,
    /// `idempotency_conflict` if the request is the same, `idempotency_key_reused` if it differs.
    #[schema(value_type = IdempotencyCode)]
    code: &'static str,
    details: NoDetails,
    error: ErrorObject,
}

/// Send a message
///
/// A 202 means that the message is stored, and will be sent or fail with a reason, even if the server crashes.
/// A repeated idempotency key sends nothing: the response is 409 with the original message.
#[utoipa::path(
    post, path = "/v1/messages", tag = "Messages", request_body = SendMessage,
    params(SendQuery, ServiceSender, IdempotencyKey),
    responses(
        (status = 202, description = "The message was accepted.", body = MessageBody, links(
            ("get" = (operation_id = "get_message", parameters(("id" = "$response.body#/message/id")))),
            ("cancel" = (operation_id = "cancel_message", parameters(("id" = "$response.body#/message/id")))),
            ("resolve" = (operation_id = "resolve_message", parameters(("id" = "$response.body#/message/id")))),
        )),
        (status = 200, description = "With `dryRun`: how the message would be sent.", body = PlanBody),
        (status = 400, description = "The request is invalid, or the message cannot be sent this way. Codes: `whatsapp_window_closed`, `window_closed`, `sender_not_configured`, `template_not_approved`.", body = ErrorBody),
        (status = 402, description = "The message can cost more than is available. Code: `insufficient_balance`.", body = ErrorBody),
        (status = 404, description = "No such sender or template in this environment. Code: `not_found`.", body = ErrorBody),
        (status = 409, description = "The idempotency key was used before. Codes: `idempotency_conflict`, `idempotency_key_reused`.", body = MessageConflict),
        (status = 507, description = "The environment's storage quota leaves no room for the message. Code: `storage_quota_exceeded`.", body = ErrorBody),
    ),
)]
pub(crate) async fn send_message(
    Call(core, caller): Call,
    Lenient(lenient): Lenient,
    IdempotencyKey(idempotency_key): IdempotencyKey,
    ServiceSender(sender): ServiceSender,
    Query(query): Query<SendQuery>,
    Body { value: command, .. }: Body<SendMessage, { limits::MESSAGE_BODY_BYTES }>,
) -> Result<Response> {
    let options = SendOptions { sender, idempotency_key, lenient, ..SendOptions::default() };
    if query.dry_run {
        let plan = core.messages().plan(&caller, command, options).await?;
        return Ok(Reply::ok(PlanBody { plan }).into_response());
    }
    let message = core.messages().send(&caller, command, options).await?;
    Ok(Reply::accepted(MessageBody::from(message)).into_response())
}
