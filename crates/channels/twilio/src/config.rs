//! The settings of a Twilio account: their description, and what becomes of them.

use std::time::Duration;

use nuncio_channel::{Account, Field, FieldKind, Services, Settings};
use nuncio_domain::{Channel, ConnectionId, FieldError, Redacted, TenantId};
use url::Url;

/// Where Twilio is.
const BASE_URL: &str = "https://api.twilio.com";

const fn setting(name: &'static str, kind: FieldKind, help: &'static str) -> Field {
    Field { name, kind, secret: false, required: false, help }
}

/// Every setting and secret of kind `twilio`.
pub(crate) static FIELDS: &[Field] = &[
    Field { required: true, ..setting("account_sid", FieldKind::Text, "Account SID, from the console's first page; begins with AC") },
    setting("base_url", FieldKind::Text, "where the API is, for another provider of its shape; default https://api.twilio.com"),
    setting("from", FieldKind::Text, "sender of all messages and calls: a number, a short code or a name; default the sender's own number"),
    setting("messaging_service_sid", FieldKind::Text, "messaging service that chooses the number; begins with MG. Not for calls"),
    setting("mms", FieldKind::Flag, "whether media go as MMS instead of as links; default false. Not for calls"),
    setting("voice", FieldKind::Text, "voice of calls, such as Polly.Lucia; default the provider's for the language"),
    setting("repeat", FieldKind::Integer(1, 10), "how often a call says what it says; default 1"),
    setting("ring_seconds", FieldKind::Integer(5, 600), "how long a call rings before nobody answered; default 60"),
    setting("window", FieldKind::Integer(1, 500), "most messages or calls being handed over at once; default 20"),
    setting("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for an answer; default 30"),
    Field {
        name: "auth_token",
        kind: FieldKind::Text,
        secret: true,
        required: true,
        help: "the account's Auth Token; also proves that a callback comes from Twilio",
    },
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
    /// The account.
    pub(crate) account_sid: String,
    /// The password.
    pub(crate) auth_token: Redacted<String>,
    /// Where the API is, without a slash at the end.
    pub(crate) base_url: String,
    /// Where it calls back.
    pub(crate) callback_url: String,
    /// Fixed sender.
    pub(crate) from: Option<String>,
    /// What chooses the sender.
    pub(crate) messaging_service_sid: Option<String>,
    /// Whether media go as MMS.
    pub(crate) mms: bool,
    /// Voice of calls.
    pub(crate) voice: Option<String>,
    /// How often a call says it.
    pub(crate) repeat: u32,
    /// How long it rings, in seconds.
    pub(crate) ring_seconds: u32,
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
        let account_sid = sid(&mut settings, "account_sid").unwrap_or_default();
        let messaging_service_sid = sid(&mut settings, "messaging_service_sid");
        let base_url = base_url(&mut settings);
        let text = |name| settings.text(name).map(str::to_owned);
        let number = |name, default| settings.integer(name).and_then(|n| u32::try_from(n).ok()).unwrap_or(default);
        let config = Self {
            connection: account.id,
            tenant: account.tenant,
            channel: account.channel,
            account_sid,
            auth_token: Redacted::new(text("auth_token").unwrap_or_default()),
            base_url,
            callback_url: services.callback_url(crate::KIND, account.id),
            from: text("from"),
            messaging_service_sid,
            mms: settings.flag("mms").unwrap_or(false),
            voice: text("voice"),
            repeat: number("repeat", 1),
            ring_seconds: number("ring_seconds", 60),
            window: number("window", 20) as usize,
            timeout: Duration::from_secs(number("timeout_seconds", 30).into()),
            trusted: account.trusted,
        };
        settings.finish().map(|()| config)
    }

    /// The address of one of the account's lists, such as `Messages`.
    pub(crate) fn list(&self, name: &str) -> String {
        format!("{}/2010-04-01/Accounts/{}/{name}.json", self.base_url, self.account_sid)
    }
}

/// Becomes part of a path. Providers of this shape have other ids than Twilio.
fn sid(settings: &mut Settings<'_>, name: &str) -> Option<String> {
    let sid = settings.text(name)?;
    if !sid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        settings
            .fault(&format!("settings.{name}"), format!("{sid:?} is wrong; must be letters, digits and dashes, as the console shows it"));
    }
    Some(sid.to_owned())
}

fn base_url(settings: &mut Settings<'_>) -> String {
    let base = settings.text("base_url").unwrap_or(BASE_URL).trim_end_matches('/');
    let plain = |url: Url| matches!(url.scheme(), "http" | "https") && url.query().is_none() && url.fragment().is_none();
    if !Url::parse(base).is_ok_and(plain) {
        settings.fault("settings.base_url", format!("must be an address such as {BASE_URL}"));
    }
    base.to_owned()
}
