//! Makes adapters of providers with an HTTP API.

use std::sync::Arc;

use nuncio_channel::{Account, Adapter, AdapterFactory, Field, Services};
use nuncio_domain::{Channel, FieldError};
use nuncio_net::Network;

/// Opens the adapter of an account, or returns all errors of its settings. Makes no request.
pub type Open = fn(&Network, &Account, &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>>;

/// The adapter factory of a provider with an HTTP API.
#[derive(Clone, Debug)]
pub struct HttpFactory {
    /// Carries the requests of its adapters.
    pub net: Network,
    /// The name under which connections choose it.
    pub kind: &'static str,
    /// The channels that it can carry.
    pub channels: &'static [Channel],
    /// Its settings and secrets.
    pub fields: &'static [Field],
    /// Whether its adapters keep sessions.
    pub has_sessions: bool,
    /// Opens an adapter.
    pub open: Open,
}

impl HttpFactory {
    /// A factory of adapters without sessions.
    pub const fn new(net: Network, kind: &'static str, channels: &'static [Channel], fields: &'static [Field], open: Open) -> Self {
        Self { net, kind, channels, fields, has_sessions: false, open }
    }
}

impl AdapterFactory for HttpFactory {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn channels(&self) -> &'static [Channel] {
        self.channels
    }

    fn fields(&self) -> &'static [Field] {
        self.fields
    }

    fn has_sessions(&self) -> bool {
        self.has_sessions
    }

    fn open(&self, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        (self.open)(&self.net, account, services)
    }
}
