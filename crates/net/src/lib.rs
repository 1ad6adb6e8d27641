//! Guards HTTP requests to URLs that users provide.
//!
//! Such a URL must not give access to the operator's own network. [`GuardPolicy`] decides where a request can go; [`Client`] enforces it
//! for the URL, for every address a name resolves to when it connects, and for every redirect.

mod client;
mod error;
mod guard;
mod lookups;
mod network;

pub use client::{Client, FetchLimits, Fetched, Opened, Response, upload_time};
pub use error::{FetchError, SetupError, explained};
pub use guard::{GuardPolicy, Refused};
pub use network::Network;
pub use reqwest::{Method, StatusCode, header};
pub use url::Url;

/// Makes `ring` the process-wide TLS provider, unless one is installed already.
///
/// Can be called repeatedly and from any thread. [`Client::new`] calls it.
pub fn init_tls() {
    // The only failure is that a provider is already installed, which is fine.
    rustls::crypto::ring::default_provider().install_default().ok();
}
