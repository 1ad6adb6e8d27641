//! The way out of adapters.

use std::net::SocketAddr;

use crate::client::Client;
use crate::error::{FetchError, SetupError};
use crate::guard::GuardPolicy;

/// Two ways out: a guarded one for accounts that callers of the API set up, and an open one for those of the operator, who may well have
/// a relay or a gateway next door. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Network {
    guarded: Client,
    open: Client,
}

impl Network {
    /// Both ways, the guarded one as `policy` says.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the system has no usable root certificates.
    pub fn new(policy: GuardPolicy) -> Result<Self, SetupError> {
        Ok(Self { guarded: Client::new(policy)?, open: Client::new(GuardPolicy::open())? })
    }

    /// The HTTP client for an account.
    #[must_use]
    pub fn client(&self, trusted: bool) -> &Client {
        if trusted { &self.open } else { &self.guarded }
    }

    /// The addresses of a host that a connection for an account may be made to, best first. Connect to one of these and resolve no more:
    /// a name may change its answer.
    ///
    /// # Errors
    ///
    /// [`FetchError::Refused`] if there are addresses and none is permitted, [`FetchError::Unreachable`] if there is none.
    pub async fn resolve(&self, trusted: bool, host: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
        let unknown = |why: &dyn std::fmt::Display| FetchError::Unreachable(format!("{host}: {why}"));
        let found = tokio::net::lookup_host((host, port)).await.map_err(|error| unknown(&error))?;
        let kept = self.client(trusted).policy().filter(host, found)?;
        if kept.is_empty() { Err(unknown(&"the name has no address")) } else { Ok(kept) }
    }
}
