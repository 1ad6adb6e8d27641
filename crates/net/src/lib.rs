//! The only way out to HTTP for what nuncio fetches or posts on behalf of a user.
//!
//! A URL given by a user must not become a way into the operator's own network. [`GuardPolicy`]
//! says where a request may go; [`Client`] holds to it for the URL, for every address a name
//! resolves to at the moment of connecting, and for every redirect.

mod client;
mod error;
mod guard;
mod network;

pub use client::{Client, FetchLimits, Fetched, Opened, Response};
pub use error::{FetchError, SetupError};
pub use guard::{GuardPolicy, Refused};
pub use network::Network;
pub use reqwest::{Method, StatusCode, header};
pub use url::Url;

/// Makes `ring` the process-wide TLS provider, unless one is installed already.
///
/// May be called any number of times, from any thread. [`Client::new`] calls it.
pub fn init_tls() {
    // The only failure is that a provider was installed first, which serves as well.
    rustls::crypto::ring::default_provider().install_default().ok();
}
