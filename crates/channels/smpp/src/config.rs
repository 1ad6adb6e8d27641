//! Settings of an SMSC account.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_domain::{FieldError, Redacted};
use nuncio_net::Network;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::address;
use crate::parts::Marking;
use crate::receipt::IdFormat;
use crate::status::{self, OwnStatuses};
use crate::wire::{Address, Login};

/// Every setting and secret of kind `smpp`.
pub(crate) static FIELDS: &[Field] = &[
    Field::required("host", FieldKind::Text, "name or address of the SMSC, such as smpp.example.org"),
    Field::optional("port", FieldKind::Integer(1, 65_535), "TCP port; default 2775, or 3550 with tls"),
    Field::optional(
        "tls",
        FieldKind::Flag,
        "TLS from the first byte; default false: everything is sent in clear text, including the password",
    ),
    Field::optional(
        "tls_ca",
        FieldKind::Text,
        "PEM certificates to trust in addition to those of the system, for an SMSC with a private authority",
    ),
    Field::required("system_id", FieldKind::Text, "user name"),
    Field::secret("password", "password; the specification allows 8 characters, many SMSCs more"),
    Field::optional("system_type", FieldKind::Text, "kind of system, up to 12 characters, if the provider asks for it"),
    Field::optional("address_range", FieldKind::Text, "addresses to receive for, up to 40 characters, if the provider asks for it"),
    Field::optional(
        "bind_mode",
        FieldKind::OneOf(&["transceiver", "transmitter_receiver"]),
        "transceiver (the default), or transmitter_receiver: two sessions, one for each direction",
    ),
    Field::optional("binds", FieldKind::Integer(1, 50), "sessions, or pairs of sessions, on each node; default 1"),
    Field::optional("window", FieldKind::Integer(1, 1_000), "messages without a response in each session; default 10"),
    Field::optional("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for a response; default 30"),
    Field::optional("enquire_link_seconds", FieldKind::Integer(1, 600), "silence after which the session is tested; default 30"),
    Field::optional(
        "from",
        FieldKind::Text,
        "sender of all messages: a number, a short code or up to 11 letters; default the sender's own number",
    ),
    Field::optional("short_code_ton", FieldKind::Integer(0, 7), "type of number of short codes; default 3"),
    Field::optional("short_code_npi", FieldKind::Integer(0, 18), "numbering plan of short codes; default 0"),
    Field::optional("service_type", FieldKind::Text, "kind of service, up to 5 characters, if the provider asks for it"),
    Field::optional(
        "multipart",
        FieldKind::OneOf(&["udh", "udh16", "sar", "payload"]),
        "how parts of a long text are marked: udh (the default), udh16 (longer reference), sar (optional parameters), payload (sent in one piece)",
    ),
    Field::optional("gsm7_data_coding", FieldKind::Integer(0, 255), "data_coding of texts in the GSM alphabet; default 0"),
    Field::optional("ucs2_data_coding", FieldKind::Integer(0, 255), "data_coding of other texts; default 8"),
    Field::optional(
        "registered_delivery",
        FieldKind::OneOf(&["final", "failure", "none"]),
        "which receipts to ask for: final (the default), failure, none",
    ),
    Field::optional(
        "message_id_format",
        FieldKind::OneOf(&["text", "hex_decimal", "decimal_hex", "hex", "decimal"]),
        "how ids of answers and of receipts compare: text (the default: alike), hex_decimal (hexadecimal in answers, decimal in receipts), \
         decimal_hex, hex and decimal (padding and case differ)",
    ),
    Field::optional(
        "validity_period",
        FieldKind::OneOf(&["relative", "absolute", "none"]),
        "how the SMSC is told how long to try: relative (the default), absolute, none (its own default)",
    ),
    Field::optional(
        "retry_statuses",
        FieldKind::Text,
        "statuses after which the message is retried, such as 0x400, 0x413; for statuses of the provider's own, which fail the message otherwise",
    ),
    Field::optional(
        "pause_statuses",
        FieldKind::Text,
        "statuses after which the whole connection backs off, such as that of an account without credit",
    ),
    Field::optional(
        "reassembly_seconds",
        FieldKind::Integer(10, 86_400),
        "how long to wait for the other parts of an incoming text; default 600",
    ),
];

/// Form of the validity period in a submit_sm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Validity {
    /// From now on.
    Relative,
    /// By the calendar, in UTC.
    Absolute,
    /// Not at all.
    Unsaid,
}

/// Checked settings.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Expected server name, and trusted roots; absent without TLS.
    pub(crate) trust: Option<(ServerName<'static>, Arc<ClientConfig>)>,
    pub(crate) system_id: String,
    password: Redacted<String>,
    system_type: String,
    address_range: String,
    /// Whether each direction has its own session.
    pub(crate) paired: bool,
    /// Sessions, or pairs.
    pub(crate) binds: usize,
    /// Messages without a response in a session.
    pub(crate) window: usize,
    pub(crate) timeout: Duration,
    /// Silence after which a session is tested.
    pub(crate) enquire: Duration,
    pub(crate) from: Option<Address>,
    /// TON and NPI of short codes.
    pub(crate) short_code: (u8, u8),
    pub(crate) service_type: String,
    /// How parts are marked.
    pub(crate) marking: Marking,
    /// data_coding of the GSM alphabet.
    pub(crate) gsm7: u8,
    /// data_coding of UCS-2.
    pub(crate) ucs2: u8,
    /// Receipts that are asked for (§5.2.17).
    pub(crate) registered_delivery: u8,
    /// How ids compare.
    pub(crate) ids: IdFormat,
    /// Form of the validity period.
    pub(crate) validity: Validity,
    /// Statuses with a meaning of their own.
    pub(crate) statuses: OwnStatuses,
    /// How long to wait for parts.
    pub(crate) reassembly: Duration,
    pub(crate) net: Network,
    /// Whether the provider can be in the operator's own network.
    pub(crate) trusted: bool,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors. Reads the system's certificates, if TLS is on.
    pub(crate) fn read(account: &Account, net: &Network) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let host = settings.text("host").unwrap_or_default().to_owned();
        let tls = settings.flag("tls").unwrap_or(false);
        let trust = trust(&mut settings, &host, tls);
        let system_id = plain(&mut settings, "system_id", 64);
        let password = Redacted::new(plain(&mut settings, "password", 64));
        let system_type = plain(&mut settings, "system_type", 12);
        let address_range = plain(&mut settings, "address_range", 40);
        let service_type = plain(&mut settings, "service_type", 5);
        let short_code = (settings.number("short_code_ton", 3), settings.number("short_code_npi", 0));
        let from = sender(&mut settings, short_code);
        let statuses = own_statuses(&mut settings);
        let seconds = |name, default| Duration::from_secs(settings.number(name, default));
        let config = Self {
            host,
            port: settings.number("port", if tls { 3550 } else { 2775 }),
            trust,
            system_id,
            password,
            system_type,
            address_range,
            paired: settings.text("bind_mode") == Some("transmitter_receiver"),
            binds: settings.number("binds", 1),
            window: settings.number("window", 10),
            timeout: seconds("timeout_seconds", 30),
            enquire: seconds("enquire_link_seconds", 30),
            from,
            short_code,
            service_type,
            marking: marking(&settings),
            gsm7: settings.number("gsm7_data_coding", 0),
            ucs2: settings.number("ucs2_data_coding", 8),
            registered_delivery: registered_delivery(&settings),
            ids: id_format(&settings),
            validity: validity(&settings),
            statuses,
            reassembly: seconds("reassembly_seconds", 600),
            net: net.clone(),
            trusted: account.trusted,
        };
        settings.finish().map(|()| config)
    }

    /// Returns the credentials of a bind.
    pub(crate) fn login(&self) -> Login<'_> {
        Login {
            system_id: &self.system_id,
            password: self.password.expose(),
            system_type: &self.system_type,
            address_range: &self.address_range,
        }
    }
}

/// Reads a text that must fit in a field of `most` characters.
fn plain(settings: &mut Settings<'_>, name: &str, most: usize) -> String {
    let text = settings.text(name).unwrap_or_default();
    if text.len() > most || !text.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) {
        settings.error(name, format!("is wrong; must be at most {most} plain characters (ASCII)"));
    }
    text.to_owned()
}

fn own_statuses(settings: &mut Settings<'_>) -> OwnStatuses {
    let own = OwnStatuses { retry: statuses(settings, "retry_statuses"), pause: statuses(settings, "pause_statuses") };
    if let Some(both) = own.pause.iter().find(|status| own.retry.contains(status)) {
        settings.error("pause_statuses", format!("{} is in retry_statuses too", status::code_text(*both)));
    }
    own
}

fn statuses(settings: &mut Settings<'_>, name: &str) -> Vec<u32> {
    status::list(settings.text(name).unwrap_or_default()).unwrap_or_else(|wrong| {
        settings.error(name, format!("{wrong:?} is not a status; must be numbers with commas between, such as 0x400, 1043"));
        Vec::new()
    })
}

fn sender(settings: &mut Settings<'_>, short_code: (u8, u8)) -> Option<Address> {
    let from = settings.text("from")?;
    match address::outgoing(from, short_code) {
        Ok(address) => Some(address),
        Err(fault) => {
            settings.error("from", fault);
            None
        }
    }
}

fn marking(settings: &Settings<'_>) -> Marking {
    match settings.text("multipart") {
        Some("udh16") => Marking::WideHeader,
        Some("sar") => Marking::Sar,
        Some("payload") => Marking::Payload,
        _ => Marking::Header,
    }
}

/// SMPP 3.4 §5.2.17: bits 1 and 0.
fn registered_delivery(settings: &Settings<'_>) -> u8 {
    match settings.text("registered_delivery") {
        Some("none") => 0,
        Some("failure") => 2,
        _ => 1,
    }
}

fn id_format(settings: &Settings<'_>) -> IdFormat {
    match settings.text("message_id_format") {
        Some("hex_decimal") => IdFormat::Numbers { answer: 16, receipt: 10 },
        Some("decimal_hex") => IdFormat::Numbers { answer: 10, receipt: 16 },
        Some("hex") => IdFormat::Numbers { answer: 16, receipt: 16 },
        Some("decimal") => IdFormat::Numbers { answer: 10, receipt: 10 },
        _ => IdFormat::Text,
    }
}

fn validity(settings: &Settings<'_>) -> Validity {
    match settings.text("validity_period") {
        Some("absolute") => Validity::Absolute,
        Some("none") => Validity::Unsaid,
        _ => Validity::Relative,
    }
}

fn trust(settings: &mut Settings<'_>, host: &str, tls: bool) -> Option<(ServerName<'static>, Arc<ClientConfig>)> {
    let name = ServerName::try_from(host.to_owned());
    if name.is_err() && !host.is_empty() {
        settings.error("host", format!("{host:?} is not a host name or an IP address"));
    }
    if !tls {
        return None;
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(pem) = settings.text("tls_ca") {
        let added = CertificateDer::pem_slice_iter(pem.as_bytes()).map(|c| roots.add(c.ok()?).ok()).collect::<Option<Vec<_>>>();
        if added.is_none_or(|added| added.is_empty()) {
            settings.error("tls_ca", "holds no certificate that can be read; must be PEM with -----BEGIN CERTIFICATE-----");
        }
    }
    if roots.is_empty() {
        settings.error("tls", "no root certificates were found on this machine: install its ca-certificates package, or give tls_ca");
    }
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider())).with_safe_default_protocol_versions();
    match builder {
        Ok(builder) => Some((name.ok()?, Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))),
        Err(error) => {
            settings.error("tls", error.to_string());
            None
        }
    }
}
