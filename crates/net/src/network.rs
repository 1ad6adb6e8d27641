//! Outbound network access of adapters.

use std::net::SocketAddr;

use crate::client::Client;
use crate::error::{FetchError, SetupError};
use crate::guard::GuardPolicy;

/// A guarded client for accounts set up through the API, and an unguarded one for those of the operator, who may well have a relay or a
/// gateway in their own network. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Network {
    guarded: Client,
    open: Client,
}

impl Network {
    /// Makes both clients; `policy` applies to the guarded one.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the system has no usable root certificates.
    pub fn new(policy: GuardPolicy) -> Result<Self, SetupError> {
        Ok(Self { guarded: Client::new(policy)?, open: Client::new(GuardPolicy::open())? })
    }

    /// Returns the HTTP client for an account.
    #[must_use]
    pub fn client(&self, trusted: bool) -> &Client {
        if trusted { &self.open } else { &self.guarded }
    }

    /// Returns the permitted addresses of a host, best first. Connect to one of these without resolving again: the DNS response can change.
    ///
    /// # Errors
    ///
    /// [`FetchError::Refused`] if there are addresses but none is permitted, [`FetchError::Unreachable`] if there is none.
    pub async fn resolve(&self, trusted: bool, host: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
        let unknown = |why: &dyn std::fmt::Display| FetchError::Unreachable(format!("{host}: {why}"));
        let client = self.client(trusted);
        let found = client.lookups().resolve(host, port).await.map_err(|error| unknown(&error))?;
        let kept = client.policy().filter(host, found.into_iter())?;
        if kept.is_empty() { Err(unknown(&"the name has no address")) } else { Ok(kept) }
    }
}
