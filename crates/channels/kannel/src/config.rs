//! Settings of a Kannel account.

use nuncio_channel::{Account, Field, FieldKind, Services, Settings};
use nuncio_channel_http::{Endpoint, from, timeout_seconds, window};
use nuncio_domain::{FieldError, Redacted};
use nuncio_net::Network;

/// Every setting and secret of kind `kannel`.
pub(crate) static FIELDS: &[Field] = &[
    Field::required("url", FieldKind::Text, "URL of the gateway's sendsms, such as http://127.0.0.1:13013/cgi-bin/sendsms"),
    Field::required("username", FieldKind::Text, "username of the gateway's group sendsms-user"),
    Field::optional(
        "method",
        FieldKind::OneOf(&["get", "post"]),
        "get (the default), or post: with X-Kannel headers, so that no proxy logs the password",
    ),
    Field::optional("smsc", FieldKind::Text, "smsc-id of the connection that sends the messages; default the gateway's choice"),
    Field::optional("account", FieldKind::Text, "account that the gateway writes to its log"),
    from(),
    Field::optional(
        "numbers",
        FieldKind::OneOf(&["plus", "digits"]),
        "how numbers are written: plus (+34600111222, the default) or digits (34600111222)",
    ),
    Field::optional("receipts", FieldKind::OneOf(&["all", "final", "none"]), "receipts to request; default all"),
    window("most messages in flight at once; default 20"),
    timeout_seconds(),
    Field::secret("password", "password of the gateway's group sendsms-user"),
    Field::secret(
        "callback_secret",
        "a secret of your choice, at least 16 characters: receipts are signed with it, and get-url or post-url contains it",
    ),
];

/// Checked settings.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) endpoint: Endpoint,
    pub(crate) url: String,
    pub(crate) post: bool,
    pub(crate) username: String,
    pub(crate) password: Redacted<String>,
    pub(crate) callback_secret: Redacted<String>,
    pub(crate) smsc: Option<String>,
    pub(crate) account: Option<String>,
    pub(crate) from: Option<String>,
    /// Whether numbers start with `+`.
    pub(crate) plus: bool,
    /// Receipts to request, as the gateway's mask; 0 for none.
    pub(crate) dlr_mask: u8,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors.
    pub(crate) fn read(net: &Network, account: &Account, services: &Services) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        settings.check_text("callback_secret", |text| text.len() >= 16, "at least 16 characters, so that it cannot be guessed");
        // Each becomes the value of a header.
        for name in ["username", "smsc", "account", "from", "password"] {
            settings.check_text(name, |text| !text.contains(char::is_control), "a single line without control characters");
        }
        let config = Self {
            endpoint: Endpoint::read(&settings, net, crate::KIND, account, services, 20),
            url: settings.base_url("url", "http://127.0.0.1:13013/cgi-bin/sendsms"),
            post: settings.text("method") == Some("post"),
            username: settings.string("username").unwrap_or_default(),
            password: settings.secret("password"),
            callback_secret: settings.secret("callback_secret"),
            smsc: settings.string("smsc"),
            account: settings.string("account"),
            from: settings.string("from"),
            plus: settings.text("numbers") != Some("digits"),
            dlr_mask: match settings.text("receipts") {
                Some("none") => 0,
                Some("final") => 1 | 2 | 16,
                _ => 31,
            },
        };
        settings.finish().map(|()| config)
    }
}
