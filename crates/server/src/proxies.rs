//! Finds the address of a client behind a proxy.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::HeaderMap;
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The proxies whose `X-Forwarded-For` counts; anybody else can make it up.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    trusted: Arc<[IpNet]>,
    /// Whether it was logged that an untrusted client sends the header.
    warned: Arc<AtomicBool>,
}

impl Proxies {
    /// # Errors
    ///
    /// The first entry that is neither an address nor a network.
    pub fn parse<'a>(list: impl Iterator<Item = &'a str>) -> Result<Self, String> {
        let network = |text: &'a str| text.parse().or_else(|_| text.parse().map(IpAddr::into)).map_err(|_| text.to_owned());
        Ok(Self { trusted: list.map(network).collect::<Result<_, _>>()?, ..Self::default() })
    }

    /// Returns the client's address: the rightmost one that is not a trusted proxy's. The port is the connection's.
    pub(crate) fn client(&self, peer: SocketAddr, headers: &HeaderMap) -> SocketAddr {
        let forwarded = headers.get_all(FORWARDED_FOR);
        if !self.trusts(peer.ip()) {
            if forwarded.iter().next().is_some() && !self.warned.swap(true, Ordering::Relaxed) {
                tracing::warn!(%peer, "ignored X-Forwarded-For: if a proxy is at this address, name it in server.trusted_proxies");
            }
            return peer;
        }
        let mut client = peer.ip();
        for text in forwarded.iter().rev().flat_map(|value| value.to_str().unwrap_or_default().rsplit(',')) {
            let Some(address) = address(text.trim()) else { break };
            client = address;
            if !self.trusts(client) {
                break;
            }
        }
        SocketAddr::new(client, peer.port())
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address.to_canonical()))
    }
}

/// Some proxies add the port.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().or_else(|_| text.parse().map(|address: SocketAddr| address.ip())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &str, peer: &str, forwarded: &[&str]) -> String {
        let proxies = Proxies::parse(trusted.split_terminator(',')).expect("networks");
        let headers = forwarded.iter().map(|text| (FORWARDED_FOR.parse().expect("a name"), text.parse().expect("a value"))).collect();
        proxies.client(SocketAddr::new(peer.parse().expect("an address"), 9), &headers).ip().to_string()
    }

    #[test]
    fn the_header_counts_from_trusted_proxies_only() {
        let trusted = "127.0.0.1,10.0.0.0/8,::1";
        for (peer, forwarded, wanted) in [
            ("127.0.0.1", &["192.0.2.7"][..], "192.0.2.7"),
            ("127.0.0.1", &["192.0.2.66, 192.0.2.7, 10.1.2.3"], "192.0.2.7"),
            ("127.0.0.1", &["192.0.2.66", "192.0.2.7:4711"], "192.0.2.7"),
            ("::ffff:127.0.0.1", &["[2001:db8::7]:4711"], "2001:db8::7"),
            ("127.0.0.1", &["10.1.2.3"], "10.1.2.3"),
            ("127.0.0.1", &["192.0.2.7, unknown, 10.1.2.3"], "10.1.2.3"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("192.0.2.9", &["192.0.2.7"], "192.0.2.9"),
            ("192.0.2.9", &["192.0.2.7, 127.0.0.1"], "192.0.2.9"),
        ] {
            assert_eq!(client(trusted, peer, forwarded), wanted, "{peer} {forwarded:?}");
        }
        assert_eq!(client("", "127.0.0.1", &["192.0.2.7"]), "127.0.0.1");
        assert_eq!(Proxies::parse(["10.0.0.0/8", "proxy"].into_iter()).unwrap_err(), "proxy");
    }
}
