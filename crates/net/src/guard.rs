//! Decides where requests can go: schemes, credentials in URLs, and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::Deserialize;
use url::{Host, Url};

const ALLOW_HTTP: &str = "net.allow_http";
const ALLOW_LOOPBACK: &str = "net.allow_loopback";
const ALLOW_NETWORKS: &str = "net.allow_networks";

/// Exceptions to `https` to public addresses. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardPolicy {
    /// Permits plain `http`. Setting `net.allow_http`.
    pub allow_http: bool,
    /// Permits 127.0.0.0/8 and ::1, also by plain `http`. Setting `net.allow_loopback`.
    pub allow_loopback: bool,
    /// Permits these networks whatever they are, in CIDR notation. Setting `net.allow_networks`.
    pub allow_networks: Vec<IpNet>,
}

impl GuardPolicy {
    /// Permits every URL.
    #[must_use]
    pub fn open() -> Self {
        let everywhere = [IpNet::V4(v4([0, 0, 0, 0], 0)), IpNet::V6(v6([0; 8], 0))];
        Self { allow_http: true, allow_loopback: true, allow_networks: everywhere.into() }
    }

    /// Checks all of a URL that can be told without resolving its host: the scheme, that it
    /// carries no user name or password, the address if the host is one, and whether a name can be public.
    ///
    /// Unusual spellings of an address (`0x7f.1`, `2130706433`, `127.0.0.1.`) need no care here:
    /// the WHATWG URL parser has already turned them into addresses.
    ///
    /// # Errors
    ///
    /// [`Refused`], for the first rule that the URL breaks.
    pub fn check_url(&self, url: &Url) -> Result<(), Refused> {
        let host = url.host_str().unwrap_or("(no host)");
        match url.scheme() {
            "https" => {}
            "http" if self.allow_http || self.allow_loopback && is_here(url) => {}
            "http" => return Err(Refused::new(host, "plain http", Some(if is_here(url) { ALLOW_LOOPBACK } else { ALLOW_HTTP }))),
            _ => return Err(Refused::new(host, "a scheme other than https", None)),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::new(host, "a user name or password in the URL", None));
        }
        match url.host() {
            Some(Host::Ipv4(ip)) => self.check_address(host, ip.into()),
            Some(Host::Ipv6(ip)) => self.check_address(host, ip.into()),
            Some(Host::Domain(name)) => self.check_name(name),
            None => Err(Refused::new(host, "a URL without a host", None)),
        }
    }

    /// Checks a host name: one that no public server can have is refused as the addresses are that it stands for.
    ///
    /// # Errors
    ///
    /// [`Refused`] for a name of this machine or of an internal network, unless the operator permits such addresses. Which of them is
    /// judged when it is resolved.
    pub fn check_name(&self, name: &str) -> Result<(), Refused> {
        let plain = name.trim_end_matches('.').to_ascii_lowercase();
        let last = plain.rsplit('.').next().unwrap_or_default();
        if last == "localhost" || last == "localdomain" {
            let permitted = self.allow_loopback || LOOPBACK.iter().any(|ip| self.allow_networks.iter().any(|net| net.contains(ip)));
            return if permitted { Ok(()) } else { Err(Refused::new(name, "a name of this machine", Some(ALLOW_LOOPBACK))) };
        }
        let internal = !plain.contains('.') || plain == HOME || plain.ends_with(&format!(".{HOME}")) || INTERNAL.contains(&last);
        if internal && self.allow_networks.is_empty() {
            return Err(Refused::new(name, "a name of an internal network", Some(ALLOW_NETWORKS)));
        }
        Ok(())
    }

    /// Checks one address that `host` stands for; `host` only names it in the error.
    ///
    /// An address under the NAT64 prefix 64:ff9b::/96 (RFC 6052) is judged by the IPv4 address it
    /// carries, since a host on an IPv6-only network reaches every IPv4 service that way.
    ///
    /// # Errors
    ///
    /// [`Refused`] for an address that is not public and that no setting permits.
    pub fn check_address(&self, host: &str, ip: IpAddr) -> Result<(), Refused> {
        let ip = behind_nat64(ip);
        if self.allow_networks.iter().any(|net| net.contains(&ip)) {
            return Ok(());
        }
        let Some(reason) = special_purpose(ip) else {
            return Ok(());
        };
        match ip.is_loopback() {
            true if self.allow_loopback => Ok(()),
            true => Err(Refused::new(host, reason, Some(ALLOW_LOOPBACK))),
            false => Err(Refused::new(host, reason, Some(ALLOW_NETWORKS))),
        }
    }

    /// Returns the permitted ones of the addresses a name resolved to.
    ///
    /// # Errors
    ///
    /// [`Refused`] for the first address if none is permitted.
    pub(crate) fn filter(&self, host: &str, found: impl Iterator<Item = SocketAddr>) -> Result<Vec<SocketAddr>, Refused> {
        let mut kept = Vec::new();
        let mut first_refusal = None;
        for addr in found {
            match self.check_address(host, addr.ip()) {
                Ok(()) => kept.push(addr),
                Err(refused) => {
                    tracing::debug!(host, address = %addr.ip(), "address refused");
                    first_refusal.get_or_insert(refused);
                }
            }
        }
        match first_refusal {
            Some(refused) if kept.is_empty() => Err(refused),
            _ => Ok(kept),
        }
    }
}

/// Returns whether a URL points to this machine, so that requests cross no network.
fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// A request that the policy does not permit.
///
/// The message names the host, the reason and the setting by which the operator could permit it.
/// It holds no part of the URL but the host, and not the address a name resolved to: who asks
/// need not learn the operator's internal addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host}: {reason} is refused ({})", advice(*setting))]
pub struct Refused {
    host: String,
    reason: &'static str,
    setting: Option<&'static str>,
}

impl Refused {
    fn new(host: &str, reason: &'static str, setting: Option<&'static str>) -> Self {
        Self { host: host.to_owned(), reason, setting }
    }

    /// The host as the URL spells it after normalisation; IPv6 in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What is refused, as a noun phrase: `plain http`, `a loopback address`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// The setting that would permit it, such as `net.allow_http`; none if nothing would.
    #[must_use]
    pub fn setting(&self) -> Option<&'static str> {
        self.setting
    }
}

fn advice(setting: Option<&str>) -> String {
    match setting {
        Some(name) => format!("the operator can permit it with {name}"),
        None => "no setting permits it".to_owned(),
    }
}

const LOOPBACK: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// RFC 8375: the domain of home networks.
const HOME: &str = "home.arpa";

/// Last labels of names that the public DNS does not have: RFC 6762 (`local`) with its appendix G, and `internal`, which ICANN keeps for
/// private use and metadata services of clouds are named under.
const INTERNAL: &[&str] = &["local", "internal", "intranet", "private", "corp", "home", "lan"];

/// RFC 6052 §2.1: the well-known NAT64 prefix.
const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);

fn behind_nat64(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) if NAT64.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            Ipv4Addr::new(a, b, c, d).into()
        }
        other => other,
    }
}

/// Returns the kind of a non-public address; `None` for a public one.
fn special_purpose(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => V4_SPECIAL.iter().find(|(net, _)| net.contains(&ip)).map(|(_, what)| *what),
        IpAddr::V6(ip) => V6_SPECIAL
            .iter()
            .find(|(net, _)| net.contains(&ip))
            .map(|(_, what)| *what)
            // Outside of 2000::/3 no public addresses are assigned (RFC 4291 §2.4), so addresses missing from the table are refused.
            .or_else(|| (!V6_GLOBAL.contains(&ip)).then_some("a reserved address")),
    }
}

const V6_GLOBAL: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// IANA IPv4 Special-Purpose Address Registry (RFC 6890), the multicast and reserved classes, and
/// one metadata service that has a public-looking address.
const V4_SPECIAL: &[(Ipv4Net, &str)] = &[
    (v4([127, 0, 0, 0], 8), "a loopback address"),
    (v4([10, 0, 0, 0], 8), "a private address"),
    (v4([172, 16, 0, 0], 12), "a private address"),
    (v4([192, 168, 0, 0], 16), "a private address"),
    (v4([169, 254, 0, 0], 16), "a link-local address"),
    (v4([100, 64, 0, 0], 10), "a shared (carrier-grade NAT) address"),
    (v4([0, 0, 0, 0], 8), "an unspecified address"),
    (v4([192, 0, 0, 0], 24), "a reserved address"),
    (v4([192, 0, 2, 0], 24), "a documentation address"),
    (v4([198, 51, 100, 0], 24), "a documentation address"),
    (v4([203, 0, 113, 0], 24), "a documentation address"),
    (v4([192, 88, 99, 0], 24), "a 6to4 relay address"),
    (v4([198, 18, 0, 0], 15), "a benchmarking address"),
    (v4([224, 0, 0, 0], 4), "a multicast address"),
    (v4([255, 255, 255, 255], 32), "a broadcast address"),
    (v4([240, 0, 0, 0], 4), "a reserved address"),
    // Azure's host agent, reachable from every virtual machine there.
    (v4([168, 63, 129, 16], 32), "a metadata service address"),
];

/// IANA IPv6 Special-Purpose Address Registry; the first match names the address.
///
/// The forms that carry an IPv4 address (mapped, compatible, 6to4, Teredo, local NAT64) are
/// refused whatever they carry: no public service is named by them.
const V6_SPECIAL: &[(Ipv6Net, &str)] = &[
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (v6([0; 8], 128), "an unspecified address"),
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "an IPv4-mapped address"),
    (v6([0; 8], 96), "an IPv4-compatible address"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "a local NAT64 address"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "a 6to4 address"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "a Teredo address"),
    (v6([0x2001, 2, 0, 0, 0, 0, 0, 0], 48), "a benchmarking address"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "a protocol assignment address"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "a documentation address"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "a documentation address"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private (unique local) address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a private (site-local) address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addrs(list: &[&str]) -> Vec<SocketAddr> {
        list.iter().map(|a| a.parse().unwrap()).collect()
    }

    #[test]
    fn a_name_with_public_and_private_addresses_keeps_the_public_ones() {
        let found = addrs(&["10.0.0.1:0", "1.1.1.1:0", "[::1]:0", "[2606:4700::1111]:0"]);
        let kept = GuardPolicy::default().filter("mixed.example", found.into_iter());
        assert_eq!(kept.unwrap(), addrs(&["1.1.1.1:0", "[2606:4700::1111]:0"]));
    }

    #[test]
    fn a_name_with_private_addresses_only_is_refused_without_telling_them() {
        let found = addrs(&["10.1.2.3:0", "127.0.0.1:0"]);
        let refused = GuardPolicy::default().filter("inside.example", found.into_iter()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "inside.example: a private address is refused \
             (the operator can permit it with net.allow_networks)"
        );
    }
}
