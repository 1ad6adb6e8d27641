//! Settings that all channels share.

use nuncio_channel::{Field, FieldKind, Settings};
use nuncio_domain::Redacted;

/// Default version of the Graph API.
const VERSION: &str = "v23.0";

/// Setting `api_version`.
pub const fn api_version() -> Field {
    Field::optional("api_version", FieldKind::Text, "version of the Graph API; default v23.0")
}

pub const fn app_secret() -> Field {
    Field::secret("app_secret", "the app's secret, from App settings > Basic: verifies that a callback comes from Meta")
}

/// Secret `verify_token`.
pub const fn verify_token() -> Field {
    Field::secret("verify_token", "a word of your choice that you give to Meta together with the callback URL")
}

/// Secrets that verify callbacks.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// The app's secret.
    pub app_secret: Redacted<String>,
    /// The word that Meta sends when it verifies the callback URL.
    pub verify_token: Redacted<String>,
}

impl Secrets {
    /// Reads `app_secret` and `verify_token`.
    pub fn read(settings: &Settings<'_>) -> Self {
        Self { app_secret: settings.secret("app_secret"), verify_token: settings.secret("verify_token") }
    }
}

/// An id of the Graph API: digits. It becomes part of a path. Errors are added to `settings`.
pub fn digits(settings: &mut Settings<'_>, name: &str) -> Option<String> {
    settings.check_text(name, |id| id.bytes().all(|b| b.is_ascii_digit()), "the id that Meta shows, which consists of digits");
    settings.string(name)
}

/// The URL of the API with its version, without a slash at its end. Errors are added to `settings`.
pub(crate) fn root(settings: &mut Settings<'_>, default: &str) -> String {
    let base = settings.base_url("base_url", default);
    let version = settings.text("api_version").unwrap_or(VERSION);
    let numbers = version.strip_prefix('v').unwrap_or_default();
    if numbers.is_empty() || !numbers.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        settings.error("api_version", format!("{version:?} is wrong; must look like {VERSION}"));
    }
    format!("{base}/{version}")
}
