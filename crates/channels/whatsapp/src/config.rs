//! Settings of a WhatsApp account.

use std::sync::Once;

use nuncio_channel::{Account, Field, FieldKind, Services, Settings};
use nuncio_channel_http::{timeout_seconds, window};
use nuncio_channel_meta::{self as meta, Graph, Secrets, digits};
use nuncio_domain::{FieldError, Ids, LogLimit};
use nuncio_net::Network;
use serde::Deserialize;

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
    window("most messages in flight at once; default 40"),
    timeout_seconds(),
    Field::optional("base_url", FieldKind::Text, "URL of the Graph API; default https://graph.facebook.com"),
    meta::api_version(),
    Field::secret("access_token", "token of a system user with whatsapp_business_messaging and whatsapp_business_management"),
    meta::app_secret(),
    meta::verify_token(),
];

/// The Cloud API, as one account reaches it by its checked settings.
#[derive(Debug)]
pub(crate) struct Cloud {
    pub(crate) graph: Graph,
    /// Meta's id of the phone number.
    pub(crate) phone_number_id: String,
    /// Meta's id of the business account.
    pub(crate) waba_id: Option<String>,
    /// Meta's id of the app.
    pub(crate) app_id: Option<String>,
    /// Whether inbound messages are marked as read.
    pub(crate) mark_read: bool,
    pub(crate) secrets: Secrets,
    /// Done when the log says that messages without a phone number are ignored.
    pub(crate) warned: Once,
    ids: Ids,
    /// Of what cannot be parsed.
    log: LogLimit,
}

impl Cloud {
    /// Reads the settings of `account`, or returns all their errors.
    pub(crate) fn read(net: &Network, account: &Account, services: &Services) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let phone_number_id = digits(&mut settings, "phone_number_id").unwrap_or_default();
        let (waba_id, app_id) = (digits(&mut settings, "waba_id"), digits(&mut settings, "app_id"));
        let graph = Graph::read(&mut settings, (net, account, services), crate::KIND, BASE_URL, 40);
        let cloud = Self {
            graph,
            phone_number_id,
            waba_id,
            app_id,
            mark_read: settings.flag("mark_read").unwrap_or(false),
            secrets: Secrets::read(&settings),
            warned: Once::new(),
            ids: services.ids.clone(),
            log: LogLimit::default(),
        };
        settings.finish().map(|()| cloud)
    }

    /// Parses `what` of a callback. `None` if its fields have unexpected types, with a line in the log.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(&self, what: &'static str, json: &'a str) -> Option<T> {
        // Not logged: the error, which quotes what people wrote.
        let parsed = serde_json::from_str(json).ok();
        if parsed.is_none()
            && let Some(suppressed) = self.log.line(what, self.ids.clock.monotonic())
        {
            let connection = self.graph.endpoint.origin.connection;
            tracing::warn!(%connection, what, suppressed, "dropped a part of a WhatsApp callback: its fields have unexpected types");
        }
        parsed
    }
}
