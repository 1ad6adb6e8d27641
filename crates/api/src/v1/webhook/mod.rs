//! The webhook of an environment.

mod config;
mod secret;

pub(crate) use secret::{RotateSecret, SecretBody};

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(config::get_webhook, config::put_webhook, config::delete_webhook))
        .routes(routes!(secret::rotate_webhook_secret))
}
