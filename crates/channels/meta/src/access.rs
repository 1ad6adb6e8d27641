//! The settings that accounts of every channel have.

use std::time::Duration;

use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_domain::Redacted;
use nuncio_net::Url;

/// The version of the Graph API that is spoken unless the account says otherwise.
const VERSION: &str = "v23.0";

/// Setting `api_version`.
pub const fn api_version() -> Field {
    optional("api_version", FieldKind::Text, "version of the Graph API; default v23.0")
}

/// Setting `timeout_seconds`, 1 to 300.
pub const fn timeout_seconds() -> Field {
    optional("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for an answer; default 30")
}

/// Setting `window`, 1 to 500.
pub const fn window(help: &'static str) -> Field {
    optional("window", FieldKind::Integer(1, 500), help)
}

/// Secret `app_secret`.
pub const fn app_secret() -> Field {
    secret("app_secret", "the app's secret, from App settings > Basic: proves that a callback comes from Meta")
}

/// Secret `verify_token`.
pub const fn verify_token() -> Field {
    secret("verify_token", "a word of your own, given to Meta together with the callback address")
}

const fn optional(name: &'static str, kind: FieldKind, help: &'static str) -> Field {
    Field { name, kind, secret: false, required: false, help }
}

const fn secret(name: &'static str, help: &'static str) -> Field {
    Field { name, kind: FieldKind::Text, secret: true, required: true, help }
}

/// How the Graph API is reached.
#[derive(Clone, Debug)]
pub struct Access {
    /// Base and version, with no slash at the end.
    pub root: String,
    /// The token.
    pub token: Redacted<String>,
    /// Longest wait for an answer.
    pub timeout: Duration,
    /// Whether it may lead into the operator's own network.
    pub trusted: bool,
}

impl Access {
    /// Reads `base_url`, `api_version`, `timeout_seconds` and `access_token` of `account`. Faults are left in `settings`.
    pub fn read(settings: &mut Settings<'_>, account: &Account, default_base: &str) -> Self {
        let root = root(settings, default_base);
        let token = text(settings, "access_token");
        if token.expose().bytes().any(|b| !b.is_ascii_graphic()) {
            settings.fault("secrets.access_token", "must be visible ASCII without spaces; copy it again");
        }
        let timeout = Duration::from_secs(number(settings, "timeout_seconds", 30).into());
        Self { root, token, timeout, trusted: account.trusted }
    }
}

/// What proves that Meta calls.
#[derive(Clone, Debug)]
pub struct Secrets {
    /// The app's secret.
    pub app_secret: Redacted<String>,
    /// What Meta says when it tries the callback address.
    pub verify_token: Redacted<String>,
}

impl Secrets {
    /// Reads `app_secret` and `verify_token`.
    pub fn read(settings: &Settings<'_>) -> Self {
        Self { app_secret: text(settings, "app_secret"), verify_token: text(settings, "verify_token") }
    }
}

fn text(settings: &Settings<'_>, name: &str) -> Redacted<String> {
    Redacted::new(settings.text(name).unwrap_or_default().to_owned())
}

/// A number that is not negative, or `default`.
pub fn number(settings: &Settings<'_>, name: &str, default: u32) -> u32 {
    settings.integer(name).and_then(|n| u32::try_from(n).ok()).unwrap_or(default)
}

/// An id of the Graph API: digits. They become parts of paths. A fault is left in `settings`.
pub fn digits(settings: &mut Settings<'_>, name: &str) -> Option<String> {
    let id = settings.text(name)?;
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
        settings.fault(&format!("settings.{name}"), format!("{id:?} is wrong; must be the id that Meta shows, which has digits only"));
    }
    Some(id.to_owned())
}

fn root(settings: &mut Settings<'_>, default: &str) -> String {
    let base = settings.text("base_url").unwrap_or(default).trim_end_matches('/');
    if !Url::parse(base).is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.query().is_none() && url.fragment().is_none()) {
        settings.fault("settings.base_url", format!("must be an address such as {default}"));
    }
    let version = settings.text("api_version").unwrap_or(VERSION);
    let numbers = version.strip_prefix('v').unwrap_or_default();
    if numbers.is_empty() || !numbers.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        settings.fault("settings.api_version", format!("{version:?} is wrong; must be such as {VERSION}"));
    }
    format!("{base}/{version}")
}
