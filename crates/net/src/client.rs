//! The guarded HTTP client.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use tokio::time::timeout;
use tower::BoxError;
use tower::util::MapFutureLayer;
use url::Url;

use crate::error::{FetchError, SetupError};
use crate::guard::GuardPolicy;
use crate::lookups::Lookups;

const USER_AGENT: &str = concat!("nuncio/", env!("CARGO_PKG_VERSION"));
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;

/// Slowest upload that is waited for, in bytes per second.
const SLOWEST_UPLOAD: usize = 128 * 1024;

/// Returns how much time to add to a limit for sending `bytes`.
pub const fn upload_time(bytes: usize) -> Duration {
    Duration::from_secs((bytes / SLOWEST_UPLOAD) as u64)
}

tokio::task_local! {
    /// Connect timeout of the current call.
    static CONNECT_WITHIN: Duration;
}

/// An HTTP client that enforces a [`GuardPolicy`].
///
/// Clones are cheap and share one connection pool: one connection per HTTP/2 host, and one per concurrent request for others.
/// Proxies from environment variables are ignored, since the addresses behind one cannot be checked. No cookies, no compressed bodies.
/// Connecting takes at most 10 seconds, and at most half of the call's timeout.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    policy: Arc<GuardPolicy>,
    lookups: Lookups,
}

/// Limits of one call.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// Maximum body length, in bytes.
    pub max_bytes: u64,
    /// Timeout of the whole call: resolving, connecting, redirects, and reading the body. Sending a body adds its [`upload_time`].
    pub timeout: Duration,
}

/// A fetched body.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The whole body, at most [`FetchLimits::max_bytes`] long.
    pub bytes: Vec<u8>,
    /// The `Content-Type` header as sent, if it is visible ASCII. Not verified.
    pub content_type: Option<String>,
    /// The final URL, after redirects. Can contain secrets in path and query.
    pub final_url: Url,
}

/// A response whose body has not been read. Dropping it ends the exchange.
#[derive(Debug)]
pub struct Opened {
    answer: reqwest::Response,
    url: Url,
}

impl Opened {
    /// Returns the length of the body, if the server sent it. The body cannot be longer.
    pub fn length(&self) -> Option<u64> {
        self.answer.content_length()
    }

    /// Reads the body.
    ///
    /// # Errors
    ///
    /// [`FetchError`], mostly `TooLarge`, `Timeout` and `Network`. The limits apply only to the body.
    pub async fn read(self, limits: FetchLimits) -> Result<Fetched, FetchError> {
        within(limits.timeout, fetched(self.answer, self.url, limits.max_bytes)).await
    }
}

/// The response to [`Client::request`], with any status.
#[derive(Debug, Clone)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The body, or its first [`FetchLimits::max_bytes`] bytes.
    pub body: Vec<u8>,
    /// Whether the body is, or may be, longer than that.
    pub truncated: bool,
}

impl Client {
    /// Makes a client. Installs the TLS provider ([`crate::init_tls`]) and reads the root
    /// certificates of the system, so make one and clone it.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if the system has no usable root certificates.
    pub fn new(policy: GuardPolicy) -> Result<Self, SetupError> {
        crate::init_tls();
        let policy = Arc::new(policy);
        let lookups = Lookups::new();
        let http = builder(&policy, &lookups).build().map_err(SetupError)?;
        Ok(Self { http, policy, lookups })
    }

    /// Validates a URL for later use.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with a URL that can never be reached, and the setting that would allow it.
    pub fn check_url(&self, url: &str) -> Result<(), String> {
        let parsed = url.parse().map_err(|_| "is not a URL; must be like https://example.com/path".to_owned())?;
        self.policy.check_url(&parsed).map_err(|refused| refused.to_string())
    }

    /// Fetches a URL, following at most 5 redirects, each checked by the policy. Only the status 200 with a body that is not compressed is a
    /// success.
    ///
    /// Aborts as soon as the `Content-Length` or the bytes read exceed the limit; never holds more than the limit and one read.
    ///
    /// # Errors
    ///
    /// Every kind of [`FetchError`]; see there.
    pub async fn fetch(&self, url: &str, limits: FetchLimits) -> Result<Fetched, FetchError> {
        let url = Url::parse(url)?;
        let whole = async {
            let Opened { answer, url } = self.open_following(url).await?;
            fetched(answer, url, limits.max_bytes).await
        };
        within(limits.timeout, whole).await
    }

    /// Like [`Self::fetch`], but returns after the response headers, so that the caller can check the length.
    ///
    /// # Errors
    ///
    /// Every kind of [`FetchError`] except `TooLarge`.
    pub async fn open(&self, url: &str, timeout: Duration) -> Result<Opened, FetchError> {
        let url = Url::parse(url)?;
        let opened = within(timeout, self.open_following(url)).await?;
        check_whole(&opened.answer).map(|()| opened)
    }

    /// Sends one request and returns the response, with any status; does not follow redirects.
    ///
    /// A body that is too long, breaks off or arrives too late is truncated without an error: the server may have processed the
    /// request, so its status must reach the caller.
    ///
    /// # Errors
    ///
    /// [`FetchError`], but neither `Status` nor `TooLarge`. After `Timeout` and `Network` it is
    /// unknown whether the server processed the request.
    pub async fn request(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        limits: FetchLimits,
    ) -> Result<Response, FetchError> {
        self.exchange(method, url, headers, body, limits, Duration::MAX).await
    }

    /// Posts like [`Self::request`], for callers to whom the status matters: waits for the response's body no longer than `body_timeout`.
    ///
    /// # Errors
    ///
    /// As those of [`Self::request`].
    pub async fn notify(
        &self,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        limits: FetchLimits,
        body_timeout: Duration,
    ) -> Result<Response, FetchError> {
        self.exchange(Method::POST, url, headers, body, limits, body_timeout).await
    }

    async fn exchange(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Vec<u8>,
        limits: FetchLimits,
        body_timeout: Duration,
    ) -> Result<Response, FetchError> {
        let url = Url::parse(url)?;
        let limit = limits.timeout + upload_time(body.len());
        let mut response = None;
        let exchange = async {
            let answer = self.send(method, &url, headers, body).await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            let response = response.insert(Response { status, headers, body: Vec::new(), truncated: true });
            let body = read_body(answer, &url, limits.max_bytes, &mut response.body);
            response.truncated = timeout(body_timeout, body).await.unwrap_or(Err(FetchError::Timeout))?;
            Ok(())
        };
        let outcome = within(limit, exchange).await;
        response.ok_or_else(|| outcome.err().unwrap_or(FetchError::Timeout))
    }

    pub(crate) fn policy(&self) -> &GuardPolicy {
        &self.policy
    }

    pub(crate) fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    async fn open_following(&self, mut url: Url) -> Result<Opened, FetchError> {
        for _ in 0..MAX_REDIRECTS {
            let answer = self.get(&url).await?;
            match redirect_target(&answer, &url) {
                Some(target) => url = target,
                None => return Ok(Opened { answer, url }),
            }
        }
        let answer = self.get(&url).await?;
        Ok(Opened { answer, url })
    }

    async fn get(&self, url: &Url) -> Result<reqwest::Response, FetchError> {
        let plain = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("identity"))]);
        self.send(Method::GET, url, plain, Vec::new()).await
    }

    /// Sends every request. The URL is checked here because the resolver is not called if the host is an address.
    async fn send(&self, method: Method, url: &Url, headers: HeaderMap, body: Vec<u8>) -> Result<reqwest::Response, FetchError> {
        self.policy.check_url(url)?;
        let mut request = self.http.request(method, url.clone()).headers(headers);
        if !body.is_empty() {
            request = request.body(body);
        }
        let answer = request.send().await.map_err(|error| FetchError::from_exchange(host(url), error))?;
        tracing::debug!(host = host(url), status = answer.status().as_u16(), "http answer");
        Ok(answer)
    }
}

/// Limits the duration of a call. Connecting has a shorter limit, after which it is certain that the request was not sent.
async fn within<T>(limit: Duration, call: impl Future<Output = Result<T, FetchError>>) -> Result<T, FetchError> {
    let call = CONNECT_WITHIN.scope(CONNECT_TIMEOUT.min(limit / 2), call);
    timeout(limit, call).await.unwrap_or(Err(FetchError::Timeout))
}

/// Limits resolving, connecting and the TLS handshake by the current call; reqwest's own limit is the same for all calls.
fn connecting<T>(step: impl Future<Output = Result<T, BoxError>>) -> impl Future<Output = Result<T, BoxError>> {
    let limit = CONNECT_WITHIN.try_with(|limit| *limit).unwrap_or(CONNECT_TIMEOUT);
    async move {
        let late = |_| Err(io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {limit:?}")).into());
        timeout(limit, step).await.unwrap_or_else(late)
    }
}

/// Keeps connections per host; uses HTTP/2 where the server agrees to it in the handshake.
fn builder(policy: &Arc<GuardPolicy>, lookups: &Lookups) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .connector_layer(MapFutureLayer::new(connecting))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .dns_resolver(GuardedResolver(policy.clone(), lookups.clone()))
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

/// Returns the target of a redirect (RFC 9110 §15.4), if the response is one.
fn redirect_target(answer: &reqwest::Response, from: &Url) -> Option<Url> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = std::str::from_utf8(answer.headers().get(LOCATION)?.as_bytes()).ok()?;
    from.join(location).ok()
}

/// Checks that a response has the whole content as it is. Other statuses of success have none, or a part of it.
fn check_whole(answer: &reqwest::Response) -> Result<(), FetchError> {
    if answer.status() != StatusCode::OK {
        return Err(FetchError::Status(answer.status().as_u16()));
    }
    let encodings = answer.headers().get_all(CONTENT_ENCODING).iter().map(|encoding| String::from_utf8_lossy(encoding.as_bytes()));
    match encodings.into_iter().find(|encoding| !matches!(encoding.trim().to_ascii_lowercase().as_str(), "" | "identity")) {
        Some(encoding) => Err(FetchError::Encoded(encoding.chars().take(100).collect())),
        None => Ok(()),
    }
}

async fn fetched(answer: reqwest::Response, final_url: Url, limit: u64) -> Result<Fetched, FetchError> {
    check_whole(&answer)?;
    if answer.content_length().is_some_and(|length| length > limit) {
        return Err(FetchError::TooLarge { limit });
    }
    let content_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut bytes = Vec::new();
    if read_body(answer, &final_url, limit, &mut bytes).await? {
        return Err(FetchError::TooLarge { limit });
    }
    Ok(Fetched { bytes, content_type, final_url })
}

/// Reads at most `limit` bytes into `body`; returns whether there were more.
async fn read_body(mut answer: reqwest::Response, url: &Url, limit: u64, body: &mut Vec<u8>) -> Result<bool, FetchError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    while let Some(chunk) = answer.chunk().await.map_err(|error| FetchError::from_exchange(host(url), error))? {
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok(true);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(false)
}

/// Resolves names with the system resolver and keeps the permitted addresses. The connection uses exactly these addresses, so changing the
/// DNS response in between has no effect.
struct GuardedResolver(Arc<GuardPolicy>, Lookups);

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (policy, lookups) = (self.0.clone(), self.1.clone());
        Box::pin(async move {
            let found = lookups.resolve(name.as_str(), 0).await?;
            let kept = policy.filter(name.as_str(), found.into_iter())?;
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
