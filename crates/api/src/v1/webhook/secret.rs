//! `POST /v1/webhook/secret`.

use nuncio_core::webhooks::ExpireOld;
use nuncio_domain::Redacted;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::extract::{Call, OptionalBody};
use crate::reply::{Reply, Result};

/// How to rotate a signing secret.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RotateSecret {
    /// When the old secret expires: with `24h`, the default, it also signs for a day; with `now`, at once.
    pub(crate) expire_old: Option<ExpireOld>,
}

/// A signing secret.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookSecret)]
pub(crate) struct SecretBody {
    /// The secret, which is not shown again.
    #[schema(example = "<SIGNING_SECRET>")]
    secret: String,
}

impl From<Redacted<String>> for SecretBody {
    fn from(secret: Redacted<String>) -> Self {
        Self { secret: secret.expose().clone() }
    }
}

/// Rotate the signing secret of the environment's webhook
///
/// The new secret is not shown again. The old one also signs for 24 hours, unless `expireOld` is `now`. The body is optional.
#[utoipa::path(
    post, path = "/v1/webhook/secret", tag = "Webhooks", request_body = RotateSecret,
    responses((status = 200, description = "The new secret.", body = SecretBody)),
)]
pub(crate) async fn rotate_webhook_secret(
    Call(core, caller): Call,
    OptionalBody(body): OptionalBody<RotateSecret>,
) -> Result<Reply<SecretBody>> {
    Ok(Reply::ok(core.webhooks().rotate_secret(&caller, body.expire_old.unwrap_or_default()).await?.into()))
}
