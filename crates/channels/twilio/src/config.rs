//! Settings of a Twilio account.

use nuncio_channel::{Account, Field, FieldKind, Services, Settings};
use nuncio_channel_http::{Endpoint, timeout_seconds, window};
use nuncio_domain::{Channel, FieldError, Redacted};
use nuncio_net::Network;

const BASE_URL: &str = "https://api.twilio.com";

/// Every setting and secret of kind `twilio`.
pub(crate) static FIELDS: &[Field] = &[
    Field::required("account_sid", FieldKind::Text, "Account SID, from the console's first page; begins with AC"),
    Field::optional(
        "base_url",
        FieldKind::Text,
        "URL of the API, for another provider with a compatible API; default https://api.twilio.com",
    ),
    Field::optional(
        "from",
        FieldKind::Text,
        "sender of all messages and calls: a number, a short code or a name; default the sender's own number",
    ),
    Field::optional("messaging_service_sid", FieldKind::Text, "messaging service that chooses the number; begins with MG. Not for calls"),
    Field::optional("mms", FieldKind::Flag, "whether media are sent as MMS instead of as links; default false. Not for calls"),
    Field::optional("voice", FieldKind::Text, "voice of calls, such as Polly.Lucia; default the provider's for the language"),
    Field::optional("repeat", FieldKind::Integer(1, 10), "how many times a call says the message; default 1"),
    Field::optional("ring_seconds", FieldKind::Integer(5, 600), "how long a call rings before it counts as not answered; default 60"),
    window("most messages or calls submitted at once; default 20"),
    timeout_seconds(),
    Field::secret("auth_token", "the account's Auth Token; also verifies that a callback comes from Twilio"),
];

/// Checked settings.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) endpoint: Endpoint,
    pub(crate) account_sid: String,
    pub(crate) auth_token: Redacted<String>,
    /// Without a slash at its end.
    pub(crate) base_url: String,
    /// Sender of all messages.
    pub(crate) from: Option<String>,
    pub(crate) messaging_service_sid: Option<String>,
    pub(crate) mms: bool,
    pub(crate) voice: Option<String>,
    pub(crate) repeat: usize,
    pub(crate) ring_seconds: u32,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors.
    pub(crate) fn read(net: &Network, account: &Account, services: &Services) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let config = Self {
            endpoint: Endpoint::read(&settings, net, crate::KIND, account, services, 20),
            account_sid: sid(&mut settings, "account_sid").unwrap_or_default(),
            auth_token: settings.secret("auth_token"),
            base_url: settings.base_url("base_url", BASE_URL),
            from: settings.string("from"),
            messaging_service_sid: sid(&mut settings, "messaging_service_sid"),
            mms: settings.flag("mms").unwrap_or(false),
            voice: settings.string("voice"),
            repeat: settings.number("repeat", 1),
            ring_seconds: settings.number("ring_seconds", 60),
        };
        settings.finish().map(|()| config)
    }

    pub(crate) fn is_voice(&self) -> bool {
        self.endpoint.origin.channel == Channel::Voice
    }

    /// The URL of one of the account's resources, such as `/Messages`; `""` is the account itself.
    pub(crate) fn url(&self, resource: &str) -> String {
        format!("{}/2010-04-01/Accounts/{}{resource}.json", self.base_url, self.account_sid)
    }
}

/// An id that becomes part of a path. Compatible providers have ids of other shapes than Twilio's.
fn sid(settings: &mut Settings<'_>, name: &str) -> Option<String> {
    let sid = settings.string(name)?;
    if !sid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
        settings.error(name, format!("{sid:?} is wrong; must be letters, digits and dashes, as the console shows it"));
    }
    Some(sid)
}
