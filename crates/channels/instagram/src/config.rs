//! Settings of an Instagram account.

use nuncio_channel::{Account, Field, FieldKind, Services, Settings};
use nuncio_channel_http::{timeout_seconds, window};
use nuncio_channel_meta::{self as meta, Graph, Secrets, digits};
use nuncio_domain::FieldError;
use nuncio_net::Network;

/// Whose token it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Login {
    /// The account's own: Instagram API with Instagram login.
    Instagram,
    /// That of the Facebook Page linked to the account.
    Page,
}

impl Login {
    /// The API that accepts such tokens.
    const fn base_url(self) -> &'static str {
        match self {
            Self::Instagram => "https://graph.instagram.com",
            Self::Page => "https://graph.facebook.com",
        }
    }
}

/// Every setting and secret of kind `instagram`.
pub(crate) static FIELDS: &[Field] = &[
    Field::required(
        "account_id",
        FieldKind::Text,
        "Meta's id of the Instagram professional account, which callbacks use; the check shows it",
    ),
    Field::optional(
        "login",
        FieldKind::OneOf(&["instagram", "page"]),
        "whose token access_token is: instagram (the account's own, default) or page (of the Facebook Page linked to it)",
    ),
    window("most messages in flight at once; default 20"),
    timeout_seconds(),
    Field::optional(
        "base_url",
        FieldKind::Text,
        "URL of the Graph API; default https://graph.instagram.com, or https://graph.facebook.com with login=page",
    ),
    meta::api_version(),
    Field::secret("access_token", "long-lived token with instagram_business_manage_messages, or instagram_manage_messages with login=page"),
    meta::app_secret(),
    meta::verify_token(),
];

/// Checked settings.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Meta's id of the account.
    pub(crate) account_id: String,
    pub(crate) login: Login,
    pub(crate) graph: Graph,
    pub(crate) secrets: Secrets,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors.
    pub(crate) fn read(net: &Network, account: &Account, services: &Services) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let login = if settings.text("login") == Some("page") { Login::Page } else { Login::Instagram };
        let config = Self {
            account_id: digits(&mut settings, "account_id").unwrap_or_default(),
            login,
            graph: Graph::read(&mut settings, (net, account, services), crate::KIND, login.base_url(), 20),
            secrets: Secrets::read(&settings),
        };
        settings.finish().map(|()| config)
    }
}
