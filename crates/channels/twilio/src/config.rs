//! Settings of a Twilio account.

use nuncio_channel::{Account, Field, FieldKind, Services, Settings};
use nuncio_channel_http::{Endpoint, basic, from, timeout_seconds, window};
use nuncio_domain::{Channel, FieldError, Redacted};
use nuncio_net::Network;
use nuncio_net::header::{AUTHORIZATION, HeaderMap};

use crate::voice::{self, Voice};

const BASE_URL: &str = "https://api.twilio.com";

/// Every setting and secret of kind `twilio`.
pub(crate) static FIELDS: &[Field] = &[
    Field::required("account_sid", FieldKind::Text, "Account SID, from the console's first page; begins with AC"),
    Field::optional(
        "base_url",
        FieldKind::Text,
        "URL of the API, for another provider with a compatible API; default https://api.twilio.com",
    ),
    from(),
    Field::optional("messaging_service_sid", FieldKind::Text, "messaging service that chooses the number; begins with MG. Not for calls"),
    Field::optional("mms", FieldKind::Flag, "whether media are sent as MMS instead of as links; default false. Not for calls"),
    voice::VOICE,
    voice::REPEAT,
    voice::RING_SECONDS,
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
    pub(crate) from: Option<String>,
    pub(crate) messaging_service_sid: Option<String>,
    pub(crate) mms: bool,
    /// Set if the account makes calls instead of sending messages.
    pub(crate) voice: Option<Voice>,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors.
    pub(crate) fn read(net: &Network, account: &Account, services: &Services) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        // Each becomes part of a path or a form. Compatible providers have ids of other shapes than Twilio's.
        let is_id = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        for name in ["account_sid", "messaging_service_sid"] {
            settings.check_text(name, is_id, "letters, digits and dashes, as the console shows it");
        }
        let config = Self {
            endpoint: Endpoint::read(&settings, net, crate::KIND, account, services, 20),
            account_sid: settings.string("account_sid").unwrap_or_default(),
            auth_token: settings.secret("auth_token"),
            base_url: settings.base_url("base_url", BASE_URL),
            from: settings.string("from"),
            messaging_service_sid: settings.string("messaging_service_sid"),
            mms: settings.flag("mms").unwrap_or(false),
            voice: (account.channel == Channel::Voice).then(|| Voice::read(&settings)),
        };
        settings.finish().map(|()| config)
    }

    /// The headers of a request to the API.
    pub(crate) fn login(&self) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, basic(&self.account_sid, self.auth_token.expose()))])
    }

    /// The URL of one of the account's resources, such as `/Messages`; `""` is the account itself.
    pub(crate) fn url(&self, resource: &str) -> String {
        format!("{}/2010-04-01/Accounts/{}{resource}.json", self.base_url, self.account_sid)
    }
}
