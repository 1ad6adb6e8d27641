//! The webhook of a world.

mod config;
mod secret;

use nuncio_core::webhooks::ExpireOld;
use nuncio_domain::Redacted;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(config::get_webhook, config::put_webhook, config::delete_webhook))
        .routes(routes!(secret::rotate_webhook_secret))
}

/// How to rotate a signing secret.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RotateSecret {
    /// What becomes of the present one: `24h`, the default, lets it sign too for a day; `now` ends it.
    #[serde(default)]
    pub(crate) expire_old: Option<ExpireOld>,
}

/// A signing secret.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookSecret)]
pub(crate) struct SecretBody {
    /// It is not shown again.
    #[schema(example = "<SIGNING_SECRET>")]
    secret: String,
}

impl From<Redacted<String>> for SecretBody {
    fn from(secret: Redacted<String>) -> Self {
        Self { secret: secret.expose().clone() }
    }
}
