//! The settings of a WhatsApp account: their description, and what becomes of them.

use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_channel_meta::{self as meta, Access, Secrets, digits, number};
use nuncio_domain::{ConnectionId, FieldError, TenantId};

/// Where the Graph API is.
const BASE_URL: &str = "https://graph.facebook.com";

const fn setting(name: &'static str, kind: FieldKind, help: &'static str) -> Field {
    Field { name, kind, secret: false, required: false, help }
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
    meta::window("most messages under way at once; default 40"),
    meta::timeout_seconds(),
    setting("base_url", FieldKind::Text, "where the Graph API is; default https://graph.facebook.com"),
    meta::api_version(),
    Field {
        secret: true,
        required: true,
        ..setting(
            "access_token",
            FieldKind::Text,
            "token of a system user with whatsapp_business_messaging and whatsapp_business_management",
        )
    },
    meta::app_secret(),
    meta::verify_token(),
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
    /// The way to Meta.
    pub(crate) access: Access,
    /// What proves that Meta calls.
    pub(crate) secrets: Secrets,
}

impl Config {
    /// Reads the settings of `account`, or tells all their faults.
    pub(crate) fn read(account: &Account) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let phone_number_id = digits(&mut settings, "phone_number_id").unwrap_or_default();
        let (waba_id, app_id) = (digits(&mut settings, "waba_id"), digits(&mut settings, "app_id"));
        let access = Access::read(&mut settings, account, BASE_URL);
        let config = Self {
            connection: account.id,
            tenant: account.tenant,
            phone_number_id,
            waba_id,
            app_id,
            mark_read: settings.flag("mark_read").unwrap_or(false),
            window: number(&settings, "window", 40) as usize,
            access,
            secrets: Secrets::read(&settings),
        };
        settings.finish()?;
        Ok(config)
    }
}
