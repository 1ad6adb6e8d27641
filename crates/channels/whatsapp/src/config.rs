//! The settings of a WhatsApp account: their description, and what becomes of them.

use std::time::Duration;

use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_domain::{ConnectionId, FieldError, Redacted, TenantId};
use url::Url;

/// The version of the Graph API that this adapter was written for.
const VERSION: &str = "v23.0";
/// Where the Graph API is.
const BASE_URL: &str = "https://graph.facebook.com";

const fn setting(name: &'static str, kind: FieldKind, help: &'static str) -> Field {
    Field { name, kind, secret: false, required: false, help }
}

const fn secret(name: &'static str, help: &'static str) -> Field {
    Field { name, kind: FieldKind::Text, secret: true, required: true, help }
}

/// Every setting and secret of kind `whatsapp_cloud`.
pub(crate) static FIELDS: &[Field] = &[
    Field {
        required: true,
        ..setting("phone_number_id", FieldKind::Text, "Meta's id of the phone number, from WhatsApp > API Setup; not the number itself")
    },
    setting("waba_id", FieldKind::Text, "id of the WhatsApp Business Account; templates need it"),
    setting("app_id", FieldKind::Text, "id of the Meta app; the profile picture and templates with media above them need it"),
    setting("mark_read", FieldKind::Flag, "whether messages are marked as read when they come in; default false"),
    setting("window", FieldKind::Integer(1, 500), "most messages under way at once; default 40"),
    setting("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for an answer; default 30"),
    setting("base_url", FieldKind::Text, "where the Graph API is; default https://graph.facebook.com"),
    setting("api_version", FieldKind::Text, "version of the Graph API; default v23.0"),
    secret("access_token", "token of a system user with whatsapp_business_messaging and whatsapp_business_management"),
    secret("app_secret", "the app's secret, from App settings > Basic: proves that a callback comes from Meta"),
    secret("verify_token", "a word of your own, given to Meta together with the callback address"),
];

/// Checked settings.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The connection.
    pub(crate) connection: ConnectionId,
    /// Its world.
    pub(crate) tenant: TenantId,
    /// Meta's id of the phone number.
    pub(crate) phone_number_id: String,
    /// The business account.
    pub(crate) waba_id: Option<String>,
    /// The app.
    pub(crate) app_id: Option<String>,
    /// Whether inbound messages are marked as read.
    pub(crate) mark_read: bool,
    /// Most attempts at once.
    pub(crate) window: usize,
    /// Longest wait for an answer.
    pub(crate) timeout: Duration,
    /// Base and version, with no slash at the end.
    pub(crate) root: String,
    /// Whether it may lead into the operator's own network.
    pub(crate) trusted: bool,
    /// The token.
    pub(crate) access_token: Redacted<String>,
    /// The app's secret.
    pub(crate) app_secret: Redacted<String>,
    /// What Meta says when it tries the callback address.
    pub(crate) verify_token: Redacted<String>,
}

impl Config {
    /// Reads the settings of `account`, or tells all their faults.
    pub(crate) fn read(account: &Account) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let phone_number_id = id(&mut settings, "phone_number_id").unwrap_or_default();
        let (waba_id, app_id) = (id(&mut settings, "waba_id"), id(&mut settings, "app_id"));
        let root = root(&mut settings);
        let access_token = secret_text(&settings, "access_token");
        if access_token.expose().bytes().any(|b| !b.is_ascii_graphic()) {
            settings.fault("secrets.access_token", "must be visible ASCII without spaces; copy it again");
        }
        let number = |name, default| settings.integer(name).and_then(|n| u32::try_from(n).ok()).unwrap_or(default);
        let (window, timeout) = (number("window", 40), number("timeout_seconds", 30));
        let config = Self {
            connection: account.id,
            tenant: account.tenant,
            phone_number_id,
            waba_id,
            app_id,
            mark_read: settings.flag("mark_read").unwrap_or(false),
            window: window as usize,
            timeout: Duration::from_secs(timeout.into()),
            root,
            trusted: account.trusted,
            access_token,
            app_secret: secret_text(&settings, "app_secret"),
            verify_token: secret_text(&settings, "verify_token"),
        };
        settings.finish()?;
        Ok(config)
    }
}

fn secret_text(settings: &Settings<'_>, name: &str) -> Redacted<String> {
    Redacted::new(settings.text(name).unwrap_or_default().to_owned())
}

/// Ids of the Graph API are digits. They become parts of paths.
fn id(settings: &mut Settings<'_>, name: &str) -> Option<String> {
    let id = settings.text(name)?;
    if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
        settings.fault(&format!("settings.{name}"), format!("{id:?} is wrong; must be the id that Meta shows, which has digits only"));
    }
    Some(id.to_owned())
}

fn root(settings: &mut Settings<'_>) -> String {
    let base = settings.text("base_url").unwrap_or(BASE_URL).trim_end_matches('/');
    if !Url::parse(base).is_ok_and(|url| matches!(url.scheme(), "https" | "http") && url.query().is_none() && url.fragment().is_none()) {
        settings.fault("settings.base_url", format!("must be an address such as {BASE_URL}"));
    }
    let version = settings.text("api_version").unwrap_or(VERSION);
    let numbers = version.strip_prefix('v').unwrap_or_default();
    if numbers.is_empty() || !numbers.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        settings.fault("settings.api_version", format!("{version:?} is wrong; must be such as {VERSION}"));
    }
    format!("{base}/{version}")
}
