//! Authenticates the `From` address of an email: SPF (RFC 7208), DKIM (RFC 6376) and DMARC (RFC 9989).
//!
//! Rejects nothing by itself. An email that takes too long, needs too many DNS queries or is built to be expensive ends as `temperror` or
//! `permerror`, which proves nothing.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mail_auth::common::headers::Header;
use mail_auth::dkim::{DkimError, Signature};
use mail_auth::dmarc::Policy;
use mail_auth::dmarc::verify::DmarcParameters;
use mail_auth::hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use mail_auth::spf::verify::SpfParameters;
use mail_auth::{
    AuthenticatedMessage, DkimOutput, DkimResult, DmarcOutput, DmarcResult, DnsError, Error, MessageAuthenticator, Parameters, RecordSet,
    ResolverCache, SpfOutput, SpfResult, Txt,
};
use nuncio_domain::Authentication;
use nuncio_domain::authentication::{AuthenticationResult as Is, FromResult};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::reported::{self, is_within, rank};

/// Timeout for one email, DNS included.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of DNS responses per email. SPF alone may need a dozen.
const LOOKUPS: usize = 50;
/// Most DKIM signatures that are verified, those of the domain in `From` first.
const SIGNATURES: usize = 5;
/// Longest DKIM signature in octets; the time to verify one grows with the fields it names.
const SIGNATURE: usize = 4 * 1024;
/// Maximum number of header fields of a verified email.
const FIELDS: usize = 1_000;

/// Origin of an email, as reported by its transport.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// Envelope sender.
    pub mail_from: String,
    /// The client's address, if the mail server in front reports it.
    pub client: Option<IpAddr>,
    /// The client's HELO name.
    pub helo: String,
}

/// Authentication results of an email.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    pub authentication: Authentication,
    /// Whether it fails DMARC and the policy of its domain asks to refuse it.
    pub is_rejected: bool,
}

impl Checked {
    const fn all(result: Is) -> Self {
        let authentication = Authentication { spf: result, dkim: result, dmarc: result, from: FromResult::Unauthenticated };
        Self { authentication, is_rejected: false }
    }
}

/// Authenticates emails.
pub struct Authenticator {
    dns: MessageAuthenticator,
    trusted_server: Option<String>,
    rejects: bool,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("trusted_server", &self.trusted_server)
            .field("rejects", &self.rejects)
            .finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Makes an authenticator with these DNS servers, or the system's if there are none. It trusts the `Authentication-Results` of
    /// `trusted_server`, and with `rejects` enforces DMARC policies. The error says what is wrong.
    pub fn new(name_servers: &[SocketAddr], trusted_server: Option<String>, rejects: bool) -> Result<Self, String> {
        let dns = if name_servers.is_empty() { MessageAuthenticator::new_system_conf() } else { with_servers(name_servers) };
        let dns = dns.map_err(|error| format!("the DNS settings of this system cannot be read: {error}"))?;
        Ok(Self { dns, trusted_server, rejects })
    }

    /// Returns whether emails that fail a DMARC policy of `reject` are rejected.
    pub const fn rejects(&self) -> bool {
        self.rejects
    }

    /// Authenticates an email whose `From` is `from`. Runs on a separate thread, because hashing a large email takes time.
    pub async fn check(self: &Arc<Self>, origin: Origin, from: &str, mail: Arc<Vec<u8>>) -> Checked {
        let (this, runtime, from) = (Arc::clone(self), Handle::current(), from.to_ascii_lowercase());
        let work = move || runtime.block_on(async { timeout(PATIENCE, this.verify(&origin, &from, &mail)).await });
        match tokio::task::spawn_blocking(work).await {
            Ok(Ok(checked)) => checked,
            // Too slow, or the verifier panicked.
            _ => Checked::all(Is::TempError),
        }
    }

    async fn verify(&self, origin: &Origin, from: &str, mail: &[u8]) -> Checked {
        let Some(mut message) = AuthenticatedMessage::parse(mail) else { return Checked::all(Is::None) };
        // An unquoted comma in a name makes another author of what is before it, without an address.
        message.from.retain(|author| author.contains('@'));
        // More than one writer, or one that is read differently: a signature could be about the other one.
        let writers = message.headers.iter().filter(|(name, _)| name.trim_ascii().eq_ignore_ascii_case(b"from")).count();
        if writers != 1 || message.from.len() != 1 || !message.from[0].eq_ignore_ascii_case(from) || message.headers.len() > FIELDS {
            return Checked::all(Is::PermError);
        }
        let Some((_, domain)) = from.rsplit_once('@') else { return Checked::all(Is::PermError) };
        if let Some(authentication) = self.trusted_server.as_deref().and_then(|server| reported::read(&message, server, domain)) {
            return Checked { authentication, is_rejected: false };
        }
        choose_signatures(&mut message.dkim_headers, domain);
        self.ask(origin, domain, &message).await
    }

    /// The checks that need DNS.
    async fn ask(&self, origin: &Origin, domain: &str, message: &AuthenticatedMessage<'_>) -> Checked {
        let budget = Budget(AtomicUsize::new(0));
        let mail_from = origin.mail_from.rsplit_once('@').map_or("", |(_, domain)| domain);
        let spf = match origin.client {
            Some(ip) if !mail_from.is_empty() => {
                let asked = SpfParameters::verify_mail_from(ip, &origin.helo, "nuncio", &origin.mail_from);
                self.dns.verify_spf(budget.with(asked)).await
            }
            _ => SpfOutput::new(mail_from.to_owned()),
        };
        let dkim = self.dns.verify_dkim(budget.with(message)).await;
        let asked =
            DmarcParameters { message, dkim_output: &dkim, dkim2_output: None, rfc5321_mail_from_domain: mail_from, spf_output: &spf };
        let dmarc = self.dns.verify_dmarc(budget.with(asked)).await;
        if budget.is_spent() {
            return Checked::all(Is::PermError);
        }
        judge(domain, mail_from, &spf, &dkim, &dmarc)
    }
}

fn with_servers(servers: &[SocketAddr]) -> Result<MessageAuthenticator, mail_auth::hickory_resolver::net::NetError> {
    let on_port = |mut connection: ConnectionConfig, port| {
        connection.port = port;
        connection
    };
    let server = |address: &SocketAddr| {
        let ways = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|way| on_port(way, address.port()));
        NameServerConfig::new(address.ip(), true, ways.into())
    };
    let config = ResolverConfig::from_parts(None, Vec::new(), servers.iter().map(server).collect());
    MessageAuthenticator::new(config, ResolverOpts::default())
}

/// Leaves away the signatures that are not worth their price: long ones, and those that do not cover `From` (RFC 6376 §5.4 requires it).
fn choose_signatures(signatures: &mut Vec<Header<'_, Signature>>, domain: &str) {
    signatures.retain(|signature| {
        signature.value.len() <= SIGNATURE && signature.header.h.iter().any(|name| name.trim().eq_ignore_ascii_case("from"))
    });
    signatures.sort_by_key(|signature| !is_within(domain, &signature.header.d));
    signatures.truncate(SIGNATURES);
}

fn judge(domain: &str, mail_from: &str, spf: &SpfOutput, dkim: &[DkimOutput<'_>], dmarc: &DmarcOutput) -> Checked {
    let signed = |output: &DkimOutput<'_>| {
        *output.result() == DkimResult::Pass && output.signature().is_some_and(|signature| is_within(domain, &signature.d))
    };
    let is_aligned = dkim.iter().any(signed) || (spf.result() == SpfResult::Pass && is_within(domain, mail_from));
    let authentication = Authentication {
        spf: of_spf(spf.result()),
        dkim: dkim.iter().map(|output| of_dkim(output.result())).min_by_key(|result| rank(*result)).unwrap_or_default(),
        dmarc: of_dmarc(dmarc),
        from: FromResult::default(),
    };
    let is_authenticated = match authentication.dmarc {
        Is::Pass => true,
        Is::None => is_aligned,
        _ => false,
    };
    let is_rejected = authentication.dmarc == Is::Fail && dmarc.policy() == Policy::Reject;
    let from = if is_authenticated { FromResult::Authenticated } else { FromResult::Unauthenticated };
    Checked { authentication: Authentication { from, ..authentication }, is_rejected }
}

const fn of_spf(result: SpfResult) -> Is {
    match result {
        SpfResult::Pass => Is::Pass,
        SpfResult::Fail => Is::Fail,
        SpfResult::SoftFail => Is::SoftFail,
        SpfResult::Neutral => Is::Neutral,
        SpfResult::TempError => Is::TempError,
        SpfResult::PermError => Is::PermError,
        SpfResult::None => Is::None,
    }
}

const fn of_dkim(result: &DkimResult) -> Is {
    match result {
        DkimResult::Pass => Is::Pass,
        DkimResult::Fail(_) | DkimResult::Neutral(Error::Dkim(DkimError::FailedBodyHashMatch | DkimError::SignatureExpired)) => Is::Fail,
        DkimResult::Neutral(_) => Is::Neutral,
        DkimResult::PermError(_) => Is::PermError,
        DkimResult::TempError(_) => Is::TempError,
        DkimResult::None => Is::None,
    }
}

fn of_dmarc(output: &DmarcOutput) -> Is {
    let results = [output.spf_result(), output.dkim_result()];
    if results.contains(&&DmarcResult::Pass) {
        return Is::Pass;
    }
    if results.iter().any(|result| matches!(result, DmarcResult::TempError(_))) {
        return Is::TempError;
    }
    if results.iter().any(|result| matches!(result, DmarcResult::PermError(_))) {
        return Is::PermError;
    }
    if output.dmarc_record().is_some() { Is::Fail } else { Is::None }
}

/// Counts the DNS responses for an email. Beyond [`LOOKUPS`] it responds itself, and the results are discarded.
struct Budget(AtomicUsize);

impl Budget {
    fn with<P>(&self, params: P) -> Parameters<'_, P, Self, Self, Self, Self, Self> {
        Parameters {
            params,
            cache_txt: Some(self),
            cache_mx: Some(self),
            cache_ptr: Some(self),
            cache_ipv4: Some(self),
            cache_ipv6: Some(self),
        }
    }

    fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) > LOOKUPS
    }
}

impl<K, V: Unasked> ResolverCache<K, V> for Budget {
    fn get<Q>(&self, _: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.is_spent().then(V::unasked)
    }

    fn remove<Q>(&self, _: &Q) -> Option<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        None
    }

    fn insert(&self, _: K, _: V, _: Instant) {}
}

/// The response to a query that is not sent.
trait Unasked {
    fn unasked() -> Self;
}

impl Unasked for Txt {
    fn unasked() -> Self {
        Self::Error(Error::Dns(DnsError::Resolver("too many questions".to_owned())))
    }
}

impl<T> Unasked for RecordSet<T> {
    fn unasked() -> Self {
        Self { rrset: Arc::new([]), dnssec_status: Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_answers_for_those_below_it() {
        for (domain, of) in [("example.org", "example.org"), ("mail.example.org", "Example.ORG"), ("example.org.", "example.org")] {
            assert!(is_within(domain, of), "{domain} {of}");
        }
        for (domain, of) in [("example.org", "mail.example.org"), ("badexample.org", "example.org"), ("example.org", "org"), ("a.b", "")] {
            assert!(!is_within(domain, of), "{domain} {of}");
        }
    }
}
