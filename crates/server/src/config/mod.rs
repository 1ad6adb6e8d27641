//! The settings, each with a working default.

mod load;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use nuncio_channel_sip::Ports;
use nuncio_core::CodeRelay;
use nuncio_core::broadcasts::Reviewer;
use nuncio_core::users::{Oidc, OidcSettings};
use nuncio_domain::user::Role;
use nuncio_domain::{Redacted, limits};
use nuncio_net::GuardPolicy;
use serde::{Deserialize, Serialize};

use crate::proxies::Proxies;

pub use load::Problems;
pub(crate) use load::toml_problem;

/// All settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Where it listens.
    pub server: ServerConfig,
    /// Where data is stored.
    pub storage: StorageConfig,
    /// The HTTP API.
    pub api: ApiConfig,
    /// Sending.
    pub dispatch: DispatchConfig,
    /// How long things are kept.
    pub retention: RetentionConfig,
    /// Inbound email.
    pub email: EmailConfig,
    /// The review of broadcasts.
    pub review: ReviewConfig,
    /// Pages for people.
    pub dashboard: DashboardConfig,
    /// Ports of this server for calls over SIP trunks.
    pub sip: SipConfig,
    /// What URLs that users give may lead to.
    pub net: NetConfig,
    /// Log lines.
    pub log: LogConfig,
}

/// Where it listens.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerConfig {
    /// Address and port of the HTTP API.
    pub listen: String,
    /// Public URL of this installation, such as `https://messages.example.org`, without a path; links sent to clients begin with it.
    /// Empty for `http://` and the address that it listens on.
    pub public_url: String,
    /// Addresses or networks of the proxies in front, separated by commas: from them, the client's address is that in `X-Forwarded-For`.
    /// Limits of sign-ins, wrong keys and guessed links count by it.
    pub trusted_proxies: String,
    /// Seconds to wait at shutdown for attempts in flight. Requests and inbound email get half of it.
    pub shutdown_seconds: u64,
    /// Maximum number of client connections; beyond it, only `/healthz`, `/readyz` and `/metrics` are served.
    pub max_connections: usize,
    /// Maximum number of client connections from one address (IPv6: one /64 network). A proxy in front counts as one address.
    pub max_connections_per_address: usize,
    /// Seconds without progress after which the connection of a client that does not read a response is closed.
    pub stall_seconds: u64,
    /// Bytes per second of a request body that a client must send, after the first ten seconds; 0 disables the limit.
    pub min_bytes_per_second: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8025".to_owned(),
            public_url: String::new(),
            trusted_proxies: String::new(),
            shutdown_seconds: 20,
            max_connections: 4_096,
            max_connections_per_address: 1_024,
            stall_seconds: 60,
            min_bytes_per_second: 16 * 1024,
        }
    }
}

impl ServerConfig {
    pub fn proxies(&self) -> Result<Proxies, String> {
        let wrong = |text| format!("server.trusted_proxies: {text:?} is neither an address nor a network such as 10.0.0.0/8");
        Proxies::parse(list(&self.trusted_proxies)).map_err(wrong)
    }

    /// What links begin with, while the server listens on `address`. Without a slash at the end.
    pub fn public_url(&self, address: &str) -> String {
        let here = || address.parse().map_or_else(|_| address.to_owned(), |address| reachable(address).to_string());
        let url = if self.public_url.is_empty() { format!("http://{}", here()) } else { self.public_url.clone() };
        url.trim_end_matches('/').to_owned()
    }
}

/// Where a server that listens on `address` is reached from its own machine: nothing can be sent to the unspecified address.
pub(crate) fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Where data is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageConfig {
    /// Folder of the embedded database, the key file and the admin socket.
    pub data: PathBuf,
    /// `postgres://` URL; empty for the embedded database.
    pub database: String,
    /// Encryption keys in base64, one a line, newest first; empty for the key file in the data folder.
    pub encryption_keys: String,
}

impl Default for StorageConfig {
    fn default() -> Self {
        Self { data: PathBuf::from("nuncio-data"), database: String::new(), encryption_keys: String::new() }
    }
}

/// The HTTP API.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiConfig {
    /// Requests of one environment on this node.
    pub rate_limit: RateLimitConfig,
    /// Bytes of memory for all requests and responses. Each byte of a body counts three times; an environment or an address gets at most two
    /// thirds.
    pub max_in_flight_bytes: usize,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self { rate_limit: RateLimitConfig::default(), max_in_flight_bytes: 256 * 1024 * 1024 }
    }
}

/// Requests of one environment on this node.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct RateLimitConfig {
    /// Sustained requests per minute; 0 disables the limit.
    pub per_minute: u32,
    /// Burst: requests at once after a pause.
    pub burst: u32,
    /// Wrong keys per minute and address; 0 disables the limit. A key that was valid before is never limited.
    pub wrong_keys_per_minute: u32,
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self { per_minute: 60_000, burst: 2_000, wrong_keys_per_minute: limits::GUESSES }
    }
}

/// Sending.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct DispatchConfig {
    /// Seconds that a message waits for a receipt after it was sent.
    pub receipt_wait_seconds: u64,
    /// Bytes of memory for large requests and fetched attachments of all attempts, half for each. While it is converted to a provider's
    /// format, a message takes two to three times its size.
    pub max_in_flight_bytes: usize,
}

impl Default for DispatchConfig {
    fn default() -> Self {
        Self { receipt_wait_seconds: 86_400, max_in_flight_bytes: 256 * 1024 * 1024 }
    }
}

/// How long things are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct RetentionConfig {
    /// Days after which final messages, the event log and webhook deliveries are deleted; 0 keeps them permanently. Contacts, suppressions,
    /// broadcasts and money stay.
    pub days: u32,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { days: 90 }
    }
}

/// Inbound email.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct EmailConfig {
    /// Address and port where a mail server delivers email by SMTP or LMTP, such as `127.0.0.1:2525`; empty for none. It has no password
    /// and no TLS: only that mail server must be able to reach it.
    pub listen: String,
    /// Maximum size of an email, in octets.
    pub max_message_bytes: usize,
    /// DNS servers for SPF, DKIM and DMARC, as `address:port`, separated by commas; empty for those of the system.
    pub name_servers: String,
    /// The authserv-id of the mail server in front, such as `mx.example.org`, if it checks SPF, DKIM and DMARC: its `Authentication-Results`
    /// are then trusted, and it must remove such fields from inbound email. Empty to trust no such field.
    pub authserv_id: String,
    /// Reject email that fails DMARC if the policy of its domain is `reject`. If false, it is accepted, and the result recorded.
    pub reject_dmarc: bool,
    /// Mail server that sends the codes with which callers of the API verify their addresses, as `host:port`, such as `127.0.0.1:25`: one of
    /// yours, reached without TLS and password. Empty: there are no codes, and addresses are claimed only through domains.
    pub code_relay: String,
    /// The address that codes are sent from, such as `nuncio@example.org`.
    pub code_from: String,
}

impl EmailConfig {
    pub(super) fn check(&self, listen: &str, problems: &mut Vec<String>) {
        if !self.listen.is_empty() && self.listen.parse::<SocketAddr>().is_err() {
            problems.push(format!("email.listen: {:?} is not address:port, such as 127.0.0.1:2525, or empty", self.listen));
        }
        if !self.listen.is_empty() && self.listen == listen && !listen.ends_with(":0") {
            problems.push(format!("email.listen: {listen:?} is the address of server.listen; must be another"));
        }
        if !(65_536..=104_857_600).contains(&self.max_message_bytes) {
            problems.push(format!("email.max_message_bytes: is {}; must be 65536 to 104857600", self.max_message_bytes));
        }
        if self.authserv_id.contains(|c: char| c.is_whitespace() || c == ';') {
            problems.push(format!("email.authserv_id: {:?} is not a name such as mx.example.org, or empty", self.authserv_id));
        }
        problems.extend(self.name_servers().err());
        problems.extend(self.code_relay().err());
        if self.code_relay.is_empty() {
            needs("email.code_from", &self.code_from, "email.code_relay", problems);
        }
    }

    /// The DNS servers; the error names the setting.
    pub fn name_servers(&self) -> Result<Vec<SocketAddr>, String> {
        let servers = list(&self.name_servers);
        let wrong = |text: &str| format!("email.name_servers: {text:?} is not address:port, such as 127.0.0.1:53");
        servers.map(|text| text.parse().map_err(|_| wrong(text))).collect()
    }

    /// Where codes are sent; the error names the setting.
    pub fn code_relay(&self) -> Result<Option<CodeRelay>, String> {
        if self.code_relay.is_empty() {
            return Ok(None);
        }
        let read = || {
            let (host, port) = self.code_relay.rsplit_once(':')?;
            Some((host.trim_matches(['[', ']']).to_owned(), port.parse::<u16>().ok().filter(|port| *port > 0)?))
        };
        let (host, port) = read()
            .filter(|(host, _)| !host.is_empty())
            .ok_or_else(|| format!("email.code_relay: {:?} is not host:port, such as 127.0.0.1:25, or empty", self.code_relay))?;
        if nuncio_channel_smtp::mailbox_address(&self.code_from).is_none() {
            return Err(format!("email.code_from: {:?} is not an email address, which email.code_relay needs", self.code_from));
        }
        Ok(Some(CodeRelay { host, port, from: self.code_from.clone() }))
    }
}

impl Default for EmailConfig {
    fn default() -> Self {
        Self {
            listen: String::new(),
            max_message_bytes: 25 * 1024 * 1024,
            name_servers: String::new(),
            authserv_id: String::new(),
            reject_dmarc: false,
            code_relay: String::new(),
            code_from: String::new(),
        }
    }
}

/// The review of broadcasts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewConfig {
    /// A server that is asked about content that the built-in review lets through, such as `http://127.0.0.1:8800/review`; empty for none.
    /// It may be in a private network. Its requests and responses: docs/guide/src/operate/review.md.
    pub url: String,
    /// Token that is sent to that server as `Authorization: Bearer`; empty for none.
    pub token: String,
    /// Seconds to wait for its verdict.
    pub timeout_seconds: u64,
    /// What happens to a broadcast while it gives no verdict: `wait` (asked again every 30 s) or `pass` (the built-in review decides).
    pub on_failure: String,
}

impl Default for ReviewConfig {
    fn default() -> Self {
        Self { url: String::new(), token: String::new(), timeout_seconds: 10, on_failure: "wait".to_owned() }
    }
}

impl ReviewConfig {
    pub(super) fn check(&self, problems: &mut Vec<String>) {
        if !(1..=60).contains(&self.timeout_seconds) {
            problems.push(format!("review.timeout_seconds: is {}; must be 1 to 60", self.timeout_seconds));
        }
        if !matches!(self.on_failure.as_str(), "wait" | "pass") {
            problems.push(format!("review.on_failure: is {:?}; must be \"wait\" or \"pass\"", self.on_failure));
        }
        problems.extend(self.reviewer().err());
        if self.url.is_empty() {
            needs("review.token", &self.token, "review.url", problems);
        }
    }

    /// The reviewer; the error names the setting.
    pub fn reviewer(&self) -> Result<Option<Reviewer>, String> {
        if self.url.is_empty() {
            return Ok(None);
        }
        let timeout = std::time::Duration::from_secs(self.timeout_seconds);
        let reviewer = Reviewer::new(&self.url, &self.token, timeout, self.on_failure == "pass");
        reviewer.map(Some).map_err(|problem| format!("review.{problem}"))
    }
}

/// Pages for people.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DashboardConfig {
    /// Sign-in by an OpenID provider, in addition to passwords.
    pub oidc: OidcConfig,
}

/// Sign-in by an OpenID provider, in addition to passwords.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct OidcConfig {
    /// The provider's issuer, such as `https://accounts.example.org`; empty for none. Register `<server.public_url>/sign-in/oidc/back` there. It
    /// may be in a private network.
    pub issuer: String,
    /// Name of the provider on the sign-in button.
    pub name: String,
    /// Client id of this installation at the provider.
    pub client_id: String,
    /// Client secret from the provider; empty for a public client.
    pub client_secret: String,
    /// Domains, separated by commas. A person with a verified email address in one of them is added to the oldest project at the first
    /// sign-in. People who were added before can sign in with the address that they were added by.
    pub allowed_domains: String,
    /// Email addresses, separated by commas, whose owners are added in the same way.
    pub allowed_emails: String,
    /// Role of people added in this way: `viewer`, `operator` or `owner`.
    pub role: String,
}

impl Default for OidcConfig {
    fn default() -> Self {
        let none = String::new;
        Self {
            issuer: none(),
            name: "OpenID".to_owned(),
            client_id: none(),
            client_secret: none(),
            allowed_domains: none(),
            allowed_emails: none(),
            role: "viewer".to_owned(),
        }
    }
}

impl OidcConfig {
    /// Adds what is wrong, each with the name of its setting.
    pub fn check(&self, problems: &mut Vec<String>) {
        if Role::parse(&self.role).is_none() {
            problems.push(format!("dashboard.oidc.role: is {:?}; must be viewer, operator or owner", self.role));
        }
        for wrong in list(&self.allowed_domains).filter(|domain| domain.contains('@') || !domain.contains('.')) {
            problems.push(format!("dashboard.oidc.allowed_domains: {wrong:?} is not a domain such as example.org"));
        }
        for wrong in list(&self.allowed_emails).filter(|email| !email.contains('@')) {
            problems.push(format!("dashboard.oidc.allowed_emails: {wrong:?} is not an email address"));
        }
        if self.issuer.is_empty() {
            let given = [
                ("client_id", &self.client_id),
                ("client_secret", &self.client_secret),
                ("allowed_domains", &self.allowed_domains),
                ("allowed_emails", &self.allowed_emails),
            ];
            for (name, value) in given {
                needs(&format!("dashboard.oidc.{name}"), value, "dashboard.oidc.issuer", problems);
            }
        } else if self.client_id.is_empty() {
            problems.push("dashboard.oidc.client_id: is empty; must be the client id from the provider".to_owned());
        }
        problems.extend(self.provider().err());
    }

    /// The provider; the error names the setting.
    pub fn provider(&self) -> Result<Option<Oidc>, String> {
        if self.issuer.is_empty() {
            return Ok(None);
        }
        let settings = OidcSettings {
            name: self.name.clone(),
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret: Redacted::new(self.client_secret.clone()),
            domains: list(&self.allowed_domains).map(str::to_owned).collect(),
            emails: list(&self.allowed_emails).map(str::to_owned).collect(),
            role: Role::parse(&self.role).unwrap_or(Role::Viewer),
        };
        Oidc::new(settings).map(Some).map_err(|error| format!("dashboard.oidc.issuer: {error}"))
    }
}

/// Ports of this server for calls over SIP trunks, which all connections share.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct SipConfig {
    /// First UDP port for SIP; 0 for any. Each connection takes one.
    pub port_low: u16,
    /// Last UDP port for SIP; 0 for any.
    pub port_high: u16,
    /// First UDP port for audio (RTP). Each call takes two.
    pub rtp_port_low: u16,
    /// Last UDP port for audio (RTP).
    pub rtp_port_high: u16,
}

impl Default for SipConfig {
    fn default() -> Self {
        let Ports { sip, rtp } = Ports::default();
        Self { port_low: sip.0, port_high: sip.1, rtp_port_low: rtp.0, rtp_port_high: rtp.1 }
    }
}

impl SipConfig {
    /// The ports as the adapter takes them.
    pub fn ports(&self) -> Ports {
        Ports { sip: (self.port_low, self.port_high), rtp: (self.rtp_port_low, self.rtp_port_high) }
    }

    fn check(&self, problems: &mut Vec<String>) {
        let any = (self.port_low, self.port_high) == (0, 0);
        let ranges = [("sip.port", self.port_low, self.port_high, 0), ("sip.rtp_port", self.rtp_port_low, self.rtp_port_high, 1)];
        for (name, low, high, more) in ranges.into_iter().skip(usize::from(any)) {
            if problems.iter().any(|problem| problem.starts_with(name)) {
                continue; // the default stands for what was refused
            }
            if low < 1_024 {
                problems.push(format!("{name}_low: is {low}; must be 1024 to 65535"));
            }
            if u32::from(high) < u32::from(low) + more {
                problems.push(format!("{name}_high: is {high}; must be at least {}, as {name}_low is {low}", u32::from(low) + more));
            }
        }
    }
}

/// What URLs that users give may lead to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NetConfig {
    /// Allow plain http as well as https.
    pub allow_http: bool,
    /// Allow addresses of this machine, also over plain http.
    pub allow_loopback: bool,
    /// Networks in CIDR form that may be reached although they are private, separated by commas.
    pub allow_networks: String,
}

/// Log lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct LogConfig {
    /// A filter such as `info` or `nuncio=debug,warn`.
    pub level: String,
    /// `text` or `json`.
    pub format: String,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: "text".to_owned() }
    }
}

impl Config {
    /// The policy for URLs that users give.
    pub fn guard(&self) -> Result<GuardPolicy, String> {
        let networks = list(&self.net.allow_networks);
        let allow_networks = networks
            .map(|text| text.parse().map_err(|_| format!("net.allow_networks: {text:?} is not a network such as 10.0.0.0/8")))
            .collect::<Result<_, _>>()?;
        Ok(GuardPolicy { allow_http: self.net.allow_http, allow_loopback: self.net.allow_loopback, allow_networks })
    }
}

/// The items of a setting, which commas separate.
fn list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Adds a problem if a setting is given that does nothing while its `partner` is empty.
fn needs(name: &str, value: &str, partner: &str, problems: &mut Vec<String>) {
    if !value.is_empty() {
        problems.push(format!("{name}: does nothing without {partner}, which is empty"));
    }
}
