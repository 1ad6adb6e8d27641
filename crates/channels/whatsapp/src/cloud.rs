//! The Cloud API, as one account reaches it.

use std::fmt;

use nuncio_channel_meta::Graph;
use nuncio_net::Network;

use crate::config::Config;

/// The way to Meta, and the account's ids there.
pub(crate) struct Cloud {
    pub(crate) graph: Graph,
    pub(crate) config: Config,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

impl Cloud {
    /// The API for this account.
    pub(crate) fn new(net: &Network, config: Config) -> Self {
        Self { graph: Graph::new(net, config.access.clone()), config }
    }
}
