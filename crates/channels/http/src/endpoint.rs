//! What the accounts of HTTP APIs have in common.

use std::time::Duration;

use nuncio_channel::{Account, Field, FieldKind, Origin, Services, Settings};
use nuncio_net::header::HeaderMap;
use nuncio_net::{Client, FetchError, FetchLimits, Method, Network, Response};

/// The setting `window`. `help` gives the default.
pub const fn window(help: &'static str) -> Field {
    Field::optional("window", FieldKind::Integer(1, 500), help)
}

/// The setting `timeout_seconds`.
pub const fn timeout_seconds() -> Field {
    Field::optional("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for a response; default 30")
}

/// An account, with the way to its provider's API.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The connection that its events come from.
    pub origin: Origin,
    /// Where the provider calls back.
    pub callback_url: String,
    /// Most messages submitted at once.
    pub window: usize,
    /// Longest wait for a response.
    pub timeout: Duration,
    /// To the API; in the operator's own network too if the account is trusted.
    pub client: Client,
    /// To other URLs, such as those of files: a trusted account vouches for its API, not for these.
    pub guarded: Client,
}

impl Endpoint {
    /// Reads `window`, or takes this one if it is not set, and `timeout_seconds`, or 30.
    pub fn read(settings: &Settings<'_>, net: &Network, kind: &str, account: &Account, services: &Services, window: usize) -> Self {
        Self {
            origin: Origin::of(account),
            callback_url: services.callback_url(kind, account.id),
            window: settings.number("window", window),
            timeout: settings.seconds("timeout_seconds", 30),
            client: net.client(account.trusted).clone(),
            guarded: net.client(false).clone(),
        }
    }

    /// Sends a request to the API. At most `most` bytes of the response are read.
    pub async fn call(&self, method: Method, url: &str, headers: HeaderMap, body: Vec<u8>, most: u64) -> Result<Response, FetchError> {
        self.client.request(method, url, headers, body, FetchLimits { max_bytes: most, timeout: self.timeout }).await
    }
}
