//! `POST /v1/senders/{id}/webhook/secret`.

use nuncio_domain::SenderId;

use crate::extract::{Call, OptionalBody, Path};
use crate::reply::{Reply, Result};
use crate::v1::webhook::{RotateSecret, SecretBody};

/// Rotate the signing secret of a sender's webhook
///
/// The new secret is not shown again. The old one also signs for 24 hours, unless `expireOld` is `now`. The body is optional.
/// Needs `senders:write` in addition to `webhooks:write`.
#[utoipa::path(
    post, path = "/v1/senders/{id}/webhook/secret", tag = "Webhooks", request_body = RotateSecret,
    params(("id" = SenderId, Path, description = "The sender.")),
    responses((status = 200, description = "The new secret.", body = SecretBody)),
)]
pub(crate) async fn rotate_sender_webhook_secret(
    Call(core, caller): Call,
    Path(id): Path<String>,
    OptionalBody(body): OptionalBody<RotateSecret>,
) -> Result<Reply<SecretBody>> {
    Ok(Reply::ok(core.webhooks().rotate_sender_secret(&caller, &id, body.expire_old.unwrap_or_default()).await?.into()))
}
