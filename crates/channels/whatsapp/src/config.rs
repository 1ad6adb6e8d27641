//! Settings of a WhatsApp account.

use nuncio_channel::{Account, Field, FieldKind, Origin, Settings};
use nuncio_channel_meta::{self as meta, Access, Secrets, digits};
use nuncio_domain::FieldError;

const BASE_URL: &str = "https://graph.facebook.com";

/// Every setting and secret of kind `whatsapp_cloud`.
pub(crate) static FIELDS: &[Field] = &[
    Field::required("phone_number_id", FieldKind::Text, "Meta's id of the phone number, from WhatsApp > API Setup; not the number itself"),
    Field::optional("waba_id", FieldKind::Text, "id of the WhatsApp Business Account; required for templates"),
    Field::optional(
        "app_id",
        FieldKind::Text,
        "id of the Meta app; required for the profile picture and for templates with a media header",
    ),
    Field::optional("mark_read", FieldKind::Flag, "whether inbound messages are marked as read; default false"),
    meta::window("most messages in flight at once; default 40"),
    meta::timeout_seconds(),
    Field::optional("base_url", FieldKind::Text, "URL of the Graph API; default https://graph.facebook.com"),
    meta::api_version(),
    Field::secret("access_token", "token of a system user with whatsapp_business_messaging and whatsapp_business_management"),
    meta::app_secret(),
    meta::verify_token(),
];

/// Checked settings.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) origin: Origin,
    /// Meta's id of the phone number.
    pub(crate) phone_number_id: String,
    /// Meta's id of the business account.
    pub(crate) waba_id: Option<String>,
    /// Meta's id of the app.
    pub(crate) app_id: Option<String>,
    /// Whether inbound messages are marked as read.
    pub(crate) mark_read: bool,
    pub(crate) window: usize,
    pub(crate) access: Access,
    pub(crate) secrets: Secrets,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors.
    pub(crate) fn read(account: &Account) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let phone_number_id = digits(&mut settings, "phone_number_id").unwrap_or_default();
        let (waba_id, app_id) = (digits(&mut settings, "waba_id"), digits(&mut settings, "app_id"));
        let access = Access::read(&mut settings, account, BASE_URL);
        let config = Self {
            origin: Origin::of(account),
            phone_number_id,
            waba_id,
            app_id,
            mark_read: settings.flag("mark_read").unwrap_or(false),
            window: settings.number("window", 40),
            access,
            secrets: Secrets::read(&settings),
        };
        settings.finish().map(|()| config)
    }
}
