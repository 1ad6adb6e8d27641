//! What the accounts of HTTP APIs have in common.

use std::fmt;
use std::time::Duration;

use nuncio_channel::{Account, Field, FieldKind, Origin, Services, Settings};
use nuncio_domain::MessageId;
use nuncio_net::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use nuncio_net::{Client, FetchError, FetchLimits, Method, Network, Response};

use crate::RequestError;
use crate::callback::attempt_query;

/// Longest response to a [`Request`] that is read, in bytes. It describes one message.
const RESPONSE_BYTES: u64 = 256 * 1_024;

/// The setting `from`.
pub const fn from() -> Field {
    let help = "sender of all messages and calls: a number, a short code or a name of up to 11 letters; default the sender's own number";
    Field::optional("from", FieldKind::Text, help)
}

/// The setting `window`. `help` gives the default.
pub const fn window(help: &'static str) -> Field {
    Field::optional("window", FieldKind::Integer(1, 500), help)
}

/// The setting `timeout_seconds`.
pub const fn timeout_seconds() -> Field {
    Field::optional("timeout_seconds", FieldKind::Integer(1, 300), "longest wait for a response; default 30")
}

/// A request to a provider's API. Not shown: its URL, headers and body can hold secrets.
pub struct Request {
    pub method: Method,
    pub url: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("method", &self.method).finish_non_exhaustive()
    }
}

impl Request {
    /// A GET with these headers.
    pub const fn get(url: String, headers: HeaderMap) -> Self {
        Self { method: Method::GET, url, headers, body: Vec::new() }
    }

    /// A POST of a form with these headers and its own.
    pub fn post_form(url: String, mut headers: HeaderMap, form: String) -> Self {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        Self { method: Method::POST, url, headers, body: form.into_bytes() }
    }
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

    /// The callback URL at `path` for the receipts of an attempt; [`Parameters::attempt`](crate::Parameters::attempt) reads it. Who calls it
    /// must be verified too.
    pub fn attempt_url(&self, path: &str, message: MessageId, attempt: usize) -> String {
        format!("{}/{path}?{}", self.callback_url, attempt_query(message, attempt))
    }

    /// Sends a request to the API and reads the response; `read` knows the provider's format.
    pub async fn send<T, E>(
        &self,
        request: Request,
        read: impl FnOnce(&Response) -> Result<T, RequestError<E>>,
    ) -> Result<T, RequestError<E>> {
        let Request { method, url, headers, body } = request;
        read(&self.call(method, &url, headers, body, RESPONSE_BYTES).await?)
    }

    /// Sends a request to the API. At most `most` bytes of the response are read.
    pub async fn call(&self, method: Method, url: &str, headers: HeaderMap, body: Vec<u8>, most: u64) -> Result<Response, FetchError> {
        self.client.request(method, url, headers, body, FetchLimits { max_bytes: most, timeout: self.timeout }).await
    }
}
