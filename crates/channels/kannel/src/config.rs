//! The settings of a Kannel account: their description, and what becomes of them.

use std::time::Duration;

use nuncio_channel::{Account, Field, FieldKind, Services, Settings};
use nuncio_domain::{Channel, ConnectionId, FieldError, Redacted, TenantId};
use url::Url;

/// The shortest secret that nobody guesses, in characters.
const SECRET: usize = 16;

const fn setting(name: &'static str, kind: FieldKind, help: &'static str) -> Field {
    Field { name, kind, secret: false, required: false, help }
}

const fn secret(name: &'static str, help: &'static str) -> Field {
    Field { name, kind: FieldKind::Text, secret: true, required: true, help }
}

/// Every setting and secret of kind `kannel`.
pub(crate) static FIELDS: &[Field] = &[
    Field { required: true, ..setting("url", FieldKind::Text, "where messages go, such as http://127.0.0.1:13013/cgi-bin/sendsms") },
    Field { required: true, ..setting("username", FieldKind::Text, "username of the gateway's group sendsms-user") },
    setting(
        "method",
        FieldKind::OneOf(&["get", "post"]),
        "get (the default), or post: with X-Kannel headers, so that no proxy logs the password",
    ),
    setting("smsc", FieldKind::Text, "smsc-id of the connection that messages leave by; default the gateway's choice"),
    setting("account", FieldKind::Text, "account that the gateway writes into its log"),
    setting("from", FieldKind::Text, "sender of all messages: a number, a short code or up to 11 letters; default the sender's own number"),
    setting(
        "numbers",
        FieldKind::OneOf(&["plus", "digits"]),
        "how numbers are written: plus (+34600111222, the default) or digits (34600111222)",
    ),
    setting("receipts", FieldKind::OneOf(&["all", "final", "none"]), "receipts to ask for; default all"),
    setting("window", FieldKind::Integer(1, 500), "most messages under way at once; default 20"),
    setting("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for an answer; default 30"),
    secret("password", "password of the gateway's group sendsms-user"),
    secret("callback_secret", "a word of your own, 16 characters at least: receipts are signed with it, and get-url or post-url names it"),
];

/// Checked settings.
#[derive(Debug)]
pub(crate) struct Config {
    /// The connection.
    pub(crate) connection: ConnectionId,
    /// Its world.
    pub(crate) tenant: TenantId,
    /// What it carries.
    pub(crate) channel: Channel,
    /// Where messages go.
    pub(crate) url: String,
    /// Whether they go with POST.
    pub(crate) post: bool,
    /// User name.
    pub(crate) username: String,
    /// Password.
    pub(crate) password: Redacted<String>,
    /// What proves callbacks.
    pub(crate) callback_secret: Redacted<String>,
    /// Where the gateway calls back.
    pub(crate) callback_url: String,
    /// Fixed route.
    pub(crate) smsc: Option<String>,
    /// For the gateway's log.
    pub(crate) account: Option<String>,
    /// Fixed sender.
    pub(crate) from: Option<String>,
    /// Whether numbers begin with `+`.
    pub(crate) plus: bool,
    /// Receipts that are asked for, as the gateway's mask; none when 0.
    pub(crate) dlr_mask: u8,
    /// Most attempts at once.
    pub(crate) window: usize,
    /// Longest wait for an answer.
    pub(crate) timeout: Duration,
    /// Whether it may lead into the operator's own network.
    pub(crate) trusted: bool,
}

impl Config {
    /// Reads the settings of `account`, or tells all their faults.
    pub(crate) fn read(account: &Account, services: &Services) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let url = url(&mut settings);
        let secret = |settings: &Settings<'_>, name| Redacted::new(settings.text(name).unwrap_or_default().to_owned());
        let callback_secret = secret(&settings, "callback_secret");
        if !callback_secret.expose().is_empty() && callback_secret.expose().len() < SECRET {
            settings.fault("secrets.callback_secret", format!("is too short; must be {SECRET} characters at least"));
        }
        let texts = ["username", "smsc", "account", "from"].map(|name| text(&mut settings, "settings", name));
        text(&mut settings, "secrets", "password");
        let number = |name, default| settings.integer(name).and_then(|n| u32::try_from(n).ok()).unwrap_or(default);
        let (window, timeout) = (number("window", 20), number("timeout_seconds", 30));
        let [username, smsc, group, from] = texts;
        let config = Self {
            connection: account.id,
            tenant: account.tenant,
            channel: account.channel,
            post: settings.text("method") == Some("post"),
            username: username.unwrap_or_default(),
            password: secret(&settings, "password"),
            callback_secret,
            callback_url: services.callback_url(crate::KIND, account.id),
            smsc,
            account: group,
            from,
            plus: settings.text("numbers") != Some("digits"),
            dlr_mask: match settings.text("receipts") {
                Some("none") => 0,
                Some("final") => 1 | 2 | 16,
                _ => 31,
            },
            window: window as usize,
            timeout: Duration::from_secs(timeout.into()),
            trusted: account.trusted,
            url,
        };
        settings.finish().map(|()| config)
    }
}

/// What goes into headers and gets a line to itself there.
fn text(settings: &mut Settings<'_>, place: &str, name: &str) -> Option<String> {
    let text = settings.text(name)?;
    if text.chars().any(char::is_control) {
        settings.fault(&format!("{place}.{name}"), "holds a line break or another control character");
    }
    Some(text.to_owned())
}

fn url(settings: &mut Settings<'_>) -> String {
    let given = settings.text("url").unwrap_or_default();
    let plain = |url: Url| matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    if !given.is_empty() && !Url::parse(given).is_ok_and(plain) {
        settings.fault("settings.url", "must be an address without a query, such as http://127.0.0.1:13013/cgi-bin/sendsms");
    }
    given.to_owned()
}
