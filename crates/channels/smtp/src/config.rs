//! Settings of a relay.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_domain::{FieldError, Redacted};
use nuncio_net::Network;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use crate::dkim::Signer;
use crate::message::{Sender, parse_mailbox};

const fn secret(name: &'static str, help: &'static str) -> Field {
    Field { name, kind: FieldKind::Text, secret: true, required: false, help }
}

/// Every setting and secret of kind `smtp`.
pub(crate) static FIELDS: &[Field] = &[
    Field::required("host", FieldKind::Text, "name or address of the relay, such as smtp.example.org"),
    Field::optional("port", FieldKind::Integer(1, 65_535), "TCP port; default 587, or 465 with tls=implicit, or 25 with tls=none"),
    Field::optional(
        "tls",
        FieldKind::OneOf(&["required", "implicit", "opportunistic", "none"]),
        "required (STARTTLS or nothing; the default), implicit (TLS from the first byte), opportunistic (STARTTLS if offered), none",
    ),
    Field::optional(
        "tls_ca",
        FieldKind::Text,
        "PEM certificates to trust in addition to those of the system, for a relay with a private authority",
    ),
    Field::optional(
        "relays",
        FieldKind::Text,
        "more relays, as host or host:port with commas between; each is used while those before it fail, with the same tls and login",
    ),
    Field::required("from", FieldKind::Text, "sender, such as Acme <hello@example.org> or hello@example.org"),
    Field::optional("username", FieldKind::Text, "login name; needs the secret password"),
    secret("password", "login password; needs username"),
    Field::optional("connections", FieldKind::Integer(1, 100), "most connections, and so most mails sent at once; default 20"),
    Field::optional("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for each step of a conversation; default 60"),
    Field::optional("helo_name", FieldKind::Text, "name to greet the relay with; default the address of this machine in brackets"),
    Field::optional(
        "bounce_domain",
        FieldKind::Text,
        "domain whose mail comes to this server ([email] listen): mails are sent from an address of it that names the attempt, so that bounces are known",
    ),
    Field::optional(
        "list_unsubscribe",
        FieldKind::OneOf(&["broadcasts", "always", "never"]),
        "which mails offer one-click unsubscribing in their headers: those of `broadcasts` (the default), `always` or `never`; needs server.public_url with https",
    ),
    Field::optional("dkim_domain", FieldKind::Text, "domain that signs; with dkim_selector and dkim_key every mail is signed"),
    Field::optional("dkim_selector", FieldKind::Text, "selector of the key in DNS: the public key is at SELECTOR._domainkey.DOMAIN"),
    secret(
        "dkim_key",
        "private key: RSA of 2048 to 4096 bits (PEM, PKCS#1 or PKCS#8) or Ed25519 (PEM PKCS#8, or the base64 of its 32 bytes)",
    ),
];

/// How the conversation is protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tls {
    /// STARTTLS is required.
    Required,
    /// TLS from the first byte.
    Implicit,
    /// STARTTLS where it is offered.
    Opportunistic,
    /// Clear text.
    None,
}

/// User name and password.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    pub(crate) username: String,
    pub(crate) password: Redacted<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Relay {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Whose certificate is expected.
    pub(crate) name: ServerName<'static>,
}

impl fmt::Display for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Which emails offer one-click unsubscribing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offer {
    /// Those of broadcasts.
    Broadcasts,
    /// All except replies to STOP, START and HELP.
    Always,
    /// None.
    Never,
}

/// Checked settings.
#[derive(Debug)]
pub(crate) struct Config {
    /// The relays, in the order of preference; at least one.
    pub(crate) relays: Vec<Relay>,
    pub(crate) tls: Tls,
    /// Whom to trust; absent with `tls=none`.
    pub(crate) trust: Option<Arc<ClientConfig>>,
    /// Domain of the addresses that bounces go to.
    pub(crate) bounce_domain: Option<String>,
    /// Which emails offer one-click unsubscribing.
    pub(crate) offer: Offer,
    pub(crate) from: Sender,
    /// Login, if the relay wants one.
    pub(crate) login: Option<Login>,
    pub(crate) connections: usize,
    /// Longest wait for a step.
    pub(crate) timeout: Duration,
    /// Name for EHLO.
    pub(crate) helo: Option<String>,
    pub(crate) dkim: Option<Signer>,
    pub(crate) net: Network,
    /// Whether the provider can be in the operator's own network.
    pub(crate) trusted: bool,
}

impl Config {
    /// Reads the settings of `account`, or returns all their errors. Reads the system's certificates, unless TLS is off.
    pub(crate) fn read(account: &Account, net: &Network) -> Result<Self, Vec<FieldError>> {
        let mut settings = Settings::new(FIELDS, account);
        let tls = match settings.text("tls") {
            Some("implicit") => Tls::Implicit,
            Some("opportunistic") => Tls::Opportunistic,
            Some("none") => Tls::None,
            _ => Tls::Required,
        };
        let trust = trust(&mut settings, tls);
        let relays = relays(&mut settings, tls);
        let from = sender(&mut settings);
        let login = login(&mut settings, tls);
        let helo = helo(&mut settings);
        let dkim = dkim(&mut settings);
        let bounce_domain = domain(&mut settings, "bounce_domain");
        let offer = match settings.text("list_unsubscribe") {
            Some("always") => Offer::Always,
            Some("never") => Offer::Never,
            _ => Offer::Broadcasts,
        };
        let connections = settings.number("connections", 20);
        let timeout = Duration::from_secs(settings.number("timeout_seconds", 60));
        settings.finish()?;
        // A missing sender was already reported.
        let Some(from) = from else { return Err(Vec::new()) };
        let (net, trusted) = (net.clone(), account.trusted);
        Ok(Self { relays, tls, trust, bounce_domain, offer, from, login, connections, timeout, helo, dkim, net, trusted })
    }
}

/// `host` with `port`, and then `relays`.
fn relays(settings: &mut Settings<'_>, tls: Tls) -> Vec<Relay> {
    let default_port = match tls {
        Tls::Implicit => 465,
        Tls::None => 25,
        Tls::Required | Tls::Opportunistic => 587,
    };
    let port = settings.number("port", default_port);
    let first = settings.text("host").map(|host| ("host", host, port));
    let more = settings.text("relays").unwrap_or_default().split(',').map(str::trim).filter(|text| !text.is_empty());
    let more = more.map(|text| match text.rsplit_once(':') {
        // The last colon of an unbracketed IPv6 address does not precede a port.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => ("relays", host, port.parse().unwrap_or(0)),
        _ => ("relays", text, default_port),
    });
    let mut relays = Vec::new();
    for (setting, host, port) in first.into_iter().chain(more).collect::<Vec<_>>() {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        match ServerName::try_from(host.to_owned()) {
            Ok(name) if port > 0 => relays.push(Relay { host: host.to_owned(), port, name }),
            Ok(_) if setting == "host" => {} // already reported with the port
            Ok(_) => settings.error(setting, format!("the port of {host:?} is wrong; must be a whole number from 1 to 65535")),
            Err(_) => settings.error(setting, format!("{host:?} is not a host name or an IP address")),
        }
    }
    relays
}

fn trust(settings: &mut Settings<'_>, tls: Tls) -> Option<Arc<ClientConfig>> {
    if tls == Tls::None {
        return None;
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(pem) = settings.text("tls_ca") {
        match private_roots(pem, &mut roots) {
            Ok(0) => settings.error("tls_ca", "holds no certificate; must be PEM with -----BEGIN CERTIFICATE-----"),
            Ok(_) => {}
            Err(error) => settings.error("tls_ca", format!("cannot be read: {error}")),
        }
    }
    if roots.is_empty() {
        settings.error("tls", "no root certificates were found on this machine: install its ca-certificates package, or give tls_ca");
    }
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider())).with_safe_default_protocol_versions();
    match builder {
        Ok(builder) => Some(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())),
        Err(error) => {
            settings.error("tls", error.to_string());
            None
        }
    }
}

fn private_roots(pem: &str, roots: &mut RootCertStore) -> Result<usize, String> {
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        count += 1;
    }
    Ok(count)
}

fn sender(settings: &mut Settings<'_>) -> Option<Sender> {
    let text = settings.text("from")?;
    let sender = parse_mailbox(text);
    if sender.is_none() {
        settings.error("from", format!("{text:?} is wrong; must be an address, such as hello@example.org or Acme <hello@example.org>"));
    }
    sender
}

fn login(settings: &mut Settings<'_>, tls: Tls) -> Option<Login> {
    match (settings.text("username"), settings.text("password")) {
        (None, None) => None,
        (Some(_), None) => {
            settings.error("password", "is missing; username needs it");
            None
        }
        (None, Some(_)) => {
            settings.error("username", "is missing; password needs it; an empty password (--secret password=) removes a stored one");
            None
        }
        (Some(username), Some(password)) => {
            if tls == Tls::Opportunistic {
                // A man in the middle can hide STARTTLS and read the password.
                settings.error("tls", "opportunistic does not protect a password; use required or implicit");
            }
            if username.contains('\0') || password.contains('\0') {
                settings.error("username", "username and password must not contain NUL"); // it separates them in AUTH PLAIN (RFC 4616)
            }
            Some(Login { username: username.to_owned(), password: Redacted::new(password.to_owned()) })
        }
    }
}

fn helo(settings: &mut Settings<'_>) -> Option<String> {
    let name = settings.text("helo_name")?;
    if name.len() > 255 || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_[]:".contains(&b)) {
        settings.error("helo_name", format!("{name:?} is wrong; must be a host name, or an address in brackets"));
    }
    Some(name.to_owned())
}

fn dkim(settings: &mut Settings<'_>) -> Option<Signer> {
    let parts = (settings.text("dkim_domain"), settings.text("dkim_selector"), settings.text("dkim_key"));
    let (Some(_), Some(selector), Some(key)) = parts else {
        if parts != (None, None, None) {
            settings.error("dkim_domain", "dkim_domain, dkim_selector and the secret dkim_key must be given together");
        }
        return None;
    };
    let ascii = domain(settings, "dkim_domain");
    if !is_dns_name(selector) {
        settings.error("dkim_selector", format!("{selector:?} is wrong; must be letters, digits, dots and hyphens"));
    }
    match Signer::new(ascii.as_deref().unwrap_or_default(), selector, key) {
        Ok(signer) => Some(signer),
        Err(fault) => {
            settings.error("dkim_key", fault);
            None
        }
    }
}

/// A domain, in ASCII.
fn domain(settings: &mut Settings<'_>, setting: &str) -> Option<String> {
    let text = settings.text(setting)?;
    let ascii = idna::domain_to_ascii(text).ok().filter(|d| is_dns_name(d));
    if ascii.is_none() {
        settings.error(setting, format!("{text:?} is not a domain"));
    }
    ascii
}

fn is_dns_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 253 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b))
}
