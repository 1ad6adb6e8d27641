//! `POST /v1/webhook/secret`.

use axum::extract::State;
use nuncio_core::Core;

use super::{RotateSecret, SecretBody};
use crate::extract::{Auth, OptionalBody};
use crate::reply::{Reply, Result};

/// Rotate the signing secret of the environment's webhook
///
/// The new secret is shown this once. The old one signs too for 24 hours, unless `expireOld` is `now`. The body may be left out.
#[utoipa::path(
    post, path = "/v1/webhook/secret", tag = "Webhooks", request_body = RotateSecret,
    responses((status = 200, description = "The new secret.", body = SecretBody)),
)]
pub(crate) async fn rotate_webhook_secret(
    State(core): State<Core>,
    Auth(caller): Auth,
    OptionalBody(body): OptionalBody<RotateSecret>,
) -> Result<Reply<SecretBody>> {
    Ok(Reply::ok(core.webhooks().rotate_secret(&caller, body.expire_old.unwrap_or_default()).await?.into()))
}
