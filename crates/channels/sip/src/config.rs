//! Settings of a SIP trunk.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_domain::{FieldError, Redacted};
use nuncio_net::Network;

use crate::sdp::Codec;
use crate::speech::{self, Command};

/// Every setting and secret of kind `sip`.
pub(crate) static FIELDS: &[Field] = &[
    Field::required("host", FieldKind::Text, "name or address of the trunk, such as sip.example.org"),
    Field::optional("port", FieldKind::Integer(1, 65_535), "its port; default 5060, or 5061 with tls"),
    Field::optional(
        "transport",
        FieldKind::OneOf(&["udp", "tcp", "tls"]),
        "transport of SIP: udp (the default), tcp, tls; audio is plain RTP",
    ),
    Field::optional(
        "tls_ca",
        FieldKind::Text,
        "PEM certificates to trust in addition to those of the system, for a trunk with a private authority",
    ),
    Field::optional("username", FieldKind::Text, "user name; leave it out if the trunk identifies this server by its address"),
    Field { name: "password", kind: FieldKind::Text, secret: true, required: false, help: "password; needed with username" },
    Field::optional("domain", FieldKind::Text, "domain in SIP addresses; default host"),
    Field::optional("from", FieldKind::Text, "caller number or name; default the sender's own number"),
    Field::optional(
        "number_format",
        FieldKind::OneOf(&["plus", "digits"]),
        "how numbers are dialled: plus (the default: +34600111222), digits (34600111222)",
    ),
    Field::optional("lines", FieldKind::Integer(1, 1_000), "simultaneous calls from each node; default 10"),
    Field::optional("ring_seconds", FieldKind::Integer(5, 180), "how long it rings; default 30"),
    Field::optional("timeout_seconds", FieldKind::Integer(1, 30), "longest wait for the trunk's first response; default 10"),
    Field::optional("repeat", FieldKind::Integer(1, 5), "how many times the message is spoken; default 1"),
    Field::optional("listen_seconds", FieldKind::Integer(0, 30), "seconds of silence after the message, to wait for keys; default 3"),
    Field::optional("keys", FieldKind::Flag, "1 repeats the message, 9 opts out of calls, SMS and WhatsApp; default true"),
    Field::optional("max_call_seconds", FieldKind::Integer(10, 3_600), "longest call, from when it is answered; default 600"),
    Field::optional(
        "codecs",
        FieldKind::OneOf(&["pcmu_pcma", "pcma_pcmu", "pcmu", "pcma"]),
        "codecs offered, best first; default pcmu_pcma (G.711 of both kinds)",
    ),
    Field::optional(
        "public_address",
        FieldKind::Text,
        "IP address at which the trunk reaches this server; default that of its network card",
    ),
    Field::optional("options_ping", FieldKind::Flag, "check with OPTIONS that the trunk is reachable before calling; default true"),
    Field::optional(
        "tts_command",
        FieldKind::Text,
        "program that reads text from its standard input and writes a WAV file to its standard output, with {voice} and {language} filled in; \
         for the operator's accounts only; default espeak-ng -b 1 --stdin --stdout -v {voice}",
    ),
];

/// UDP port ranges of this server for calls, inclusive. Set by the operator, as all accounts share them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// For SIP, one for each connection; 0 and 0 for any.
    pub sip: (u16, u16),
    /// For sound, two for each call.
    pub rtp: (u16, u16),
}

impl Default for Ports {
    fn default() -> Self {
        Self { sip: (0, 0), rtp: (10_000, 10_999) }
    }
}

/// Transport of SIP to the trunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Transport {
    /// Datagrams.
    Udp,
    /// A connection.
    Tcp,
    /// An encrypted one.
    Tls,
}

/// Checked settings.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) transport: Transport,
    /// Whom to trust, in PEM; empty without TLS.
    pub(crate) roots: Vec<u8>,
    pub(crate) login: Option<(String, Redacted<String>)>,
    pub(crate) domain: String,
    /// Fixed caller id.
    pub(crate) from: Option<String>,
    /// Whether numbers start with `+`.
    pub(crate) plus: bool,
    pub(crate) lines: u32,
    /// How long it rings.
    pub(crate) ring: Duration,
    pub(crate) timeout: Duration,
    /// How often the message is played.
    pub(crate) repeat: u32,
    /// Seconds of silence after it.
    pub(crate) listen: u64,
    /// Whether keys do anything.
    pub(crate) keys: bool,
    pub(crate) longest: Duration,
    /// Codecs, best first.
    pub(crate) codecs: &'static [Codec],
    pub(crate) ports: Ports,
    /// Our address as the trunk sees it, if not that of the network card.
    pub(crate) public_address: Option<IpAddr>,
    /// Whether to check that the trunk is reachable.
    pub(crate) ping: bool,
    /// The text-to-speech program.
    pub(crate) command: Command,
    pub(crate) net: Network,
    /// Whether the provider can be in the operator's own network.
    pub(crate) trusted: bool,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors. Reads the system's certificates, if TLS is on.
    pub(crate) fn read(account: &Account, net: &Network, ports: Ports) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let host = settings.text("host").unwrap_or_default().to_owned();
        if !host.is_empty() && !is_host(&host) {
            settings.error("host", format!("{host:?} is not a host name or an IP address"));
        }
        let domain = settings.text("domain").unwrap_or(&host).to_owned();
        if settings.text("domain").is_some() && !is_host(&domain) {
            settings.error("domain", format!("{domain:?} is not a host name or an IP address"));
        }
        let transport = match settings.text("transport") {
            Some("tcp") => Transport::Tcp,
            Some("tls") => Transport::Tls,
            _ => Transport::Udp,
        };
        let flag = |settings: &Settings<'_>, name| settings.flag(name).unwrap_or(true);
        let seconds = |settings: &Settings<'_>, name, default| Duration::from_secs(settings.number(name, default));
        let config = Self {
            port: settings.number("port", if transport == Transport::Tls { 5061 } else { 5060 }),
            roots: if transport == Transport::Tls { roots(&mut settings) } else { Vec::new() },
            transport,
            login: login(&mut settings),
            from: from(&mut settings),
            plus: settings.text("number_format") != Some("digits"),
            lines: settings.number("lines", 10),
            ring: seconds(&settings, "ring_seconds", 30),
            timeout: seconds(&settings, "timeout_seconds", 10),
            repeat: settings.number("repeat", 1),
            listen: settings.number("listen_seconds", 3),
            keys: flag(&settings, "keys"),
            longest: seconds(&settings, "max_call_seconds", 600),
            codecs: codecs(&settings),
            ports,
            public_address: public_address(&mut settings),
            ping: flag(&settings, "options_ping"),
            command: command(&mut settings, account.trusted),
            net: net.clone(),
            trusted: account.trusted,
            host,
            domain,
        };
        settings.finish().map(|()| config)
    }

    /// The user name.
    pub(crate) fn username(&self) -> Option<&str> {
        self.login.as_ref().map(|(name, _)| name.as_str())
    }

    /// A number as the trunk wants it. `number` is canonical, or a name.
    pub(crate) fn dialled<'a>(&self, number: &'a str) -> &'a str {
        if self.plus { number } else { number.trim_start_matches('+') }
    }

    /// Returns the trunk's location for display.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Returns whether a name or an address is valid in a SIP address (RFC 3261 §25.1).
fn is_host(text: &str) -> bool {
    let named = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-')) && !text.starts_with(['.', '-']);
    named || text.parse::<IpAddr>().is_ok()
}

/// The user part of a SIP address that needs no escapes.
fn is_user(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'_' | b'.' | b'*' | b'#'))
}

fn login(settings: &mut Settings<'_>) -> Option<(String, Redacted<String>)> {
    let (username, password) = (settings.text("username"), settings.text("password"));
    if let Some(name) = username
        && !is_user(name)
    {
        settings.error("username", "is wrong; must be up to 64 letters, digits or + - _ . * #");
    }
    match (username, password) {
        (Some(name), Some(password)) => Some((name.to_owned(), Redacted::new(password.to_owned()))),
        (Some(_), None) => {
            settings.error("password", "is required with a username");
            None
        }
        (None, Some(_)) => {
            settings.error("username", "is required with a password");
            None
        }
        (None, None) => None,
    }
}

fn from(settings: &mut Settings<'_>) -> Option<String> {
    let from = settings.text("from")?;
    if !is_user(from) {
        settings.error("from", "is wrong; must be a number such as +34600111222, or up to 64 letters, digits or + - _ . * #");
    }
    Some(from.to_owned())
}

fn codecs(settings: &Settings<'_>) -> &'static [Codec] {
    match settings.text("codecs") {
        Some("pcma_pcmu") => &[Codec::Pcma, Codec::Pcmu],
        Some("pcmu") => &[Codec::Pcmu],
        Some("pcma") => &[Codec::Pcma],
        _ => &[Codec::Pcmu, Codec::Pcma],
    }
}

fn public_address(settings: &mut Settings<'_>) -> Option<IpAddr> {
    let text = settings.text("public_address")?;
    let address = text.parse().ok();
    if address.is_none() {
        settings.error("public_address", format!("{text:?} is not an IP address"));
    }
    address
}

/// The program runs with the server's permissions, so API callers must not choose it.
fn command(settings: &mut Settings<'_>, trusted: bool) -> Command {
    let line = settings.text("tts_command");
    if line.is_some() && !trusted {
        settings.error("tts_command", "can be set by the operator only, with `nuncio connections set`");
    }
    let parsed = Command::parse(line.unwrap_or(speech::ESPEAK));
    if parsed.is_none() {
        settings.error("tts_command", "names no program");
    }
    parsed.unwrap_or_else(|| Command::parse(speech::ESPEAK).expect("it is not empty"))
}

/// The system's certificates and those of the settings, in PEM.
fn roots(settings: &mut Settings<'_>) -> Vec<u8> {
    let mut roots = String::new();
    for certificate in rustls_native_certs::load_native_certs().certs {
        roots.push_str(&format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(certificate)));
    }
    if let Some(pem) = settings.text("tls_ca") {
        if !pem.contains("-----BEGIN CERTIFICATE-----") {
            settings.error("tls_ca", "holds no certificate that can be read; must be PEM with -----BEGIN CERTIFICATE-----");
        }
        roots.push_str(pem);
    }
    if roots.is_empty() {
        settings.error("transport", "no root certificates were found on this machine: install its ca-certificates package, or give tls_ca");
    }
    roots.into_bytes()
}
