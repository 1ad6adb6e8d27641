//! The settings of an Instagram account: their description, and what becomes of them.

use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_channel_meta::{self as meta, Access, Secrets, digits, number};
use nuncio_domain::{ConnectionId, FieldError, TenantId};

/// Whose token speaks for the account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Login {
    /// The account's own: Instagram API with Instagram login.
    Instagram,
    /// That of a Facebook Page which is linked to the account.
    Page,
}

impl Login {
    /// Where the Graph API takes such tokens.
    const fn base_url(self) -> &'static str {
        match self {
            Self::Instagram => "https://graph.instagram.com",
            Self::Page => "https://graph.facebook.com",
        }
    }
}

/// Every setting and secret of kind `instagram`.
pub(crate) static FIELDS: &[Field] = &[
    Field {
        name: "account_id",
        kind: FieldKind::Text,
        secret: false,
        required: true,
        help: "Meta's id of the Instagram professional account, by which callbacks name it; the check tells it",
    },
    Field {
        name: "login",
        kind: FieldKind::OneOf(&["instagram", "page"]),
        secret: false,
        required: false,
        help: "whose token access_token is: instagram (the account's own, default) or page (of the Facebook Page linked to it)",
    },
    meta::window("most messages under way at once; default 20"),
    meta::timeout_seconds(),
    Field {
        name: "base_url",
        kind: FieldKind::Text,
        secret: false,
        required: false,
        help: "where the Graph API is; default https://graph.instagram.com, or https://graph.facebook.com with login=page",
    },
    meta::api_version(),
    Field {
        name: "access_token",
        kind: FieldKind::Text,
        secret: true,
        required: true,
        help: "long-lived token with instagram_business_manage_messages, or instagram_manage_messages with login=page",
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
    /// Meta's id of the account.
    pub(crate) account_id: String,
    /// Whose token it is.
    pub(crate) login: Login,
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
        let login = if settings.text("login") == Some("page") { Login::Page } else { Login::Instagram };
        let config = Self {
            connection: account.id,
            tenant: account.tenant,
            account_id: digits(&mut settings, "account_id").unwrap_or_default(),
            login,
            window: number(&settings, "window", 20) as usize,
            access: Access::read(&mut settings, account, login.base_url()),
            secrets: Secrets::read(&settings),
        };
        settings.finish()?;
        Ok(config)
    }
}
