//! The webhook of an environment.

mod config;
mod secret;

pub(crate) use secret::{RotateSecret, SecretBody};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(config::get_webhook, config::put_webhook, config::delete_webhook))
        .routes(routes!(secret::rotate_webhook_secret))
}
