//! Wraps every handler.
//!
//! In this order: the request gets an id; for an operation, the API key is looked up, the rate limit, permission, `Accept` and
//! query are checked; a read waits for a read permit; the body is counted by the budget; the handler runs, a panic becoming a
//! 500; an unread body is drained or the connection closed; headers are set, and a failure is logged with the request id. All of it is one
//! layer, because each layer costs every request an allocation.

use std::any::Any;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, EXPECT, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt as _;
use nuncio_core::rate::{Taken, subscriber};
use nuncio_core::{Act, Caller, ReadPermit};
use nuncio_domain::{Error, ErrorCode, FieldError, Ids, limits};

use crate::budget::{ANSWER_COPIES, Lease, OVERHEAD, Owner};
use crate::error::{ApiError, Failure};
use crate::extract::{lenient, pairs};
use crate::json::shown;
use crate::operations::Operation;
use crate::state::App;
use crate::wire::{Answer, Intake, drain};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// Maximum length of a caller's request id, in bytes.
const REQUEST_ID_BYTES: usize = 128;

/// Maximum size in bytes of a response that is sent even without room in the budget.
const SMALL_ANSWER: usize = 4 * 1024;
/// Chunk size of responses over HTTP/1, and over HTTP/2, where each stream of a connection can buffer one.
const PIECES: (usize, usize) = (16 * 1024, 4 * 1024);

/// Paths that are served on any connection.
const PROBES: &[&str] = &["/healthz", "/readyz", "/metrics"];

/// Marks requests of connections above the limit: all but probes are rejected, and the connection is closed.
#[derive(Clone, Copy, Debug)]
pub struct Spare;

/// Marks a request over HTTP/1.1 that does not name its host exactly once, which must be rejected (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug)]
pub struct NoHost;

/// Properties of a request that are needed after the handler consumed it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    version: Version,
    /// The method changes nothing, so a 503 is possible at any time.
    safe: bool,
    /// The client waits for `100 Continue` before it sends the body.
    expects: bool,
    spare: bool,
}

pub(crate) async fn middleware(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers(), app.core.ids());
    let operation = app.operations.find(&request);
    let asked = Asked {
        version: request.version(),
        safe: matches!(*request.method(), Method::GET | Method::HEAD),
        expects: request.headers().contains_key(EXPECT),
        spare: request.extensions().get::<Spare>().is_some(),
    };
    let mut taken = None;
    let admitted = match admit(&app, operation, &mut request, &mut taken).await {
        Ok(owner) => read_permit(&app, owner, operation).await.map(|place| (owner, place)),
        Err(error) => Err(error),
    };
    let (mut response, lease, unread) = match admitted {
        // Sending messages skips the audit scope; only configuration changes are recorded.
        Ok((owner, _place)) if operation.is_some_and(|operation| operation.is_audited) => {
            Box::pin(run_audited(&app, owner, request, next)).await
        }
        Ok((owner, _place)) => run_with_budget(&app, owner, request, next).await,
        Err(error) => (error.into_response(), None, Some(request.into_body())),
    };
    let name = operation.map_or("other", |operation| operation.id);
    metrics::counter!("nuncio_http_requests_total", "operation" => name, "status" => class(response.status())).increment(1);
    if let Some(Failure(error)) = response.extensions_mut().remove() {
        log(&app, &id, name, &error);
        if error.code() == ErrorCode::InternalError {
            response = with_request_id(response, &id, &error);
        }
    }
    if let Some(lease) = lease {
        response = leased(response, lease, asked);
    }
    let close = asked.spare || blocks_connection(unread, asked).await;
    let headers = response.headers_mut();
    if close && asked.version <= Version::HTTP_11 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    headers.insert(REQUEST_ID, id);
    headers.insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    if let Some(taken) = taken {
        let full_at = app.core.ids().clock.now().plus(taken.full_in);
        headers.insert(LIMIT, taken.limit.into());
        headers.insert(REMAINING, taken.remaining.into());
        headers.insert(RESET, full_at.millis().into());
    }
    response
}

/// Waits for a read permit if the operation reads the database.
async fn read_permit(app: &App, owner: Owner, operation: Option<Operation>) -> Result<Option<ReadPermit>, ApiError> {
    match (owner, operation) {
        (Owner::Tenant(tenant), Some(Operation { reads_database: true, .. })) => {
            let permit = app.core.reads().acquire(tenant).await;
            permit.map(Some).map_err(|error| ApiError::too_many(error.message(), Duration::from_secs(1)))
        }
        _ => Ok(None),
    }
}

/// Like [`run_with_budget`], recording changes in the audit log.
async fn run_audited(app: &App, owner: Owner, request: Request, next: Next) -> (Response, Option<Lease>, Option<Body>) {
    let from = address(&request);
    match request.extensions().get::<Caller>() {
        Some(caller) => Act::key(caller, from, app.core.ids().clone()).run(run_with_budget(app, owner, request, next)).await,
        None => run_with_budget(app, owner, request, next).await,
    }
}

/// Runs the handler with the body under the budget; also returns the unread rest of the body.
async fn run_with_budget(app: &App, owner: Owner, request: Request, next: Next) -> (Response, Option<Lease>, Option<Body>) {
    let lease = app.budget.lease(owner);
    let (mut head, body) = request.into_parts();
    head.extensions.insert(lease.clone());
    if body.is_end_stream() {
        return (run(next, Request::from_parts(head, body)).await, Some(lease), None);
    }
    if let Err(error) = lease.grow(OVERHEAD) {
        return (ApiError::from(error).into_response(), Some(lease), Some(body));
    }
    let (intake, rest) = Intake::new(body, lease.clone(), app.pace);
    let response = run(next, Request::from_parts(head, Body::new(intake))).await;
    let unread = rest.lock().take();
    (response, Some(lease), unread)
}

/// Resizes the lease from the request to the response, which holds it until it is written.
fn leased(response: Response, lease: Lease, asked: Asked) -> Response {
    let bytes =
        |response: &Response| response.body().size_hint().exact().map_or(OVERHEAD, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let taken = bytes(&response).saturating_mul(ANSWER_COPIES);
    let held = lease.settle(taken, !asked.safe || taken <= ANSWER_COPIES * SMALL_ANSWER);
    let response = held.map_or_else(|error| ApiError::from(error).into_response(), |()| response);
    let piece = if asked.version == Version::HTTP_2 { PIECES.1 } else { PIECES.0 };
    response.map(|body| Body::new(Answer::new(body, piece, lease)))
}

/// Returns whether an unread body blocks the next request of the connection.
async fn blocks_connection(unread: Option<Body>, asked: Asked) -> bool {
    match unread.filter(|body| !body.is_end_stream()) {
        Some(body) if asked.version <= Version::HTTP_11 => asked.expects || !drain(body).await,
        _ => false,
    }
}

/// Authenticates and authorises a request; handlers find the caller in its extensions. Returns who is charged for its memory.
async fn admit(app: &App, operation: Option<Operation>, request: &mut Request, taken: &mut Option<Taken>) -> Result<Owner, ApiError> {
    let (path, from) = (request.uri().path(), address(request));
    if request.extensions().get::<Spare>().is_some() && !PROBES.contains(&path) {
        return Err(Error::unavailable("there are too many connections; try again").into());
    }
    if request.extensions().get::<NoHost>().is_some() {
        return Err(Error::field("header.Host", "is required, exactly once").into());
    }
    let Some(operation) = operation else {
        // Not an operation, but authenticated and rate-limited all the same.
        let is_caller = path.starts_with("/v1/") && request.headers().contains_key(AUTHORIZATION);
        return match is_caller {
            true => Ok(Owner::Tenant(authenticate(app, request.headers(), from, taken).await?.tenant)),
            false => Ok(Owner::Address(from)),
        };
    };
    let caller = authenticate(app, request.headers(), from, taken).await?;
    let owner = Owner::Tenant(caller.tenant);
    if let Some(permission) = operation.permission {
        caller.require(permission)?;
    }
    if !operation.media.iter().any(|media| accepts(request.headers(), media)) {
        let message = format!("the response is {}, which the Accept header excludes", operation.media.join(" or "));
        return Err(ApiError::new(ErrorCode::NotAcceptable, message));
    }
    if !operation.has_query {
        no_query(request)?;
    }
    request.extensions_mut().insert(caller);
    Ok(owner)
}

/// Authenticates the caller and takes a token of its environment. Sets `taken` to the bucket that the response reports.
async fn authenticate(app: &App, headers: &HeaderMap, from: IpAddr, taken: &mut Option<Taken>) -> Result<Caller, ApiError> {
    let now = app.core.ids().clock.monotonic();
    let key = bearer(headers);
    if let Some(wait) = app.failures.wait(&from, now)
        && headers.contains_key(AUTHORIZATION)
        && !app.core.keys().knows(key)
    {
        *taken = app.failures.state(&from, now);
        return Err(guessed_too_often(wait)); // without a database access
    }
    let caller = match app.core.keys().authenticate(key).await {
        Err(error) if error.code() == ErrorCode::Unauthorized => return Err(refused(app, headers, from, error, now, taken)),
        result => result?,
    };
    *taken = app.requests.take(caller.tenant, now);
    match *taken {
        Some(Taken { wait: Some(wait), .. }) => {
            Err(ApiError::too_many("this environment has exceeded its request rate; retry after the seconds in Retry-After", wait))
        }
        _ => Ok(caller),
    }
}

fn guessed_too_often(wait: std::time::Duration) -> ApiError {
    ApiError::too_many("too many failed authentications from this address", wait)
}

/// Counts a wrong key against the client address. Keys that were valid before are never blocked: clients behind a proxy share an address.
/// The caller has no environment, so `taken` becomes the bucket of failed authentications.
fn refused(app: &App, headers: &HeaderMap, from: IpAddr, error: Error, now: std::time::Duration, taken: &mut Option<Taken>) -> ApiError {
    if !headers.contains_key(AUTHORIZATION) {
        *taken = app.failures.state(&from, now);
        return error.into(); // not a guess
    }
    *taken = app.failures.take(from, now);
    match taken.and_then(|taken| taken.wait) {
        Some(wait) => guessed_too_often(wait),
        None => error.into(),
    }
}

pub(crate) fn address(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |info| subscriber(info.0.ip()))
}

/// Returns the token of `Authorization: Bearer` (RFC 6750 §2.1), or `""`, which is not a valid key.
fn bearer(headers: &HeaderMap) -> &str {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim_matches(' '),
        _ => "",
    }
}

/// Returns whether `Accept` admits a media type.
fn accepts(headers: &HeaderMap, media: &str) -> bool {
    weight(headers, media).1 > 0.0
}

/// Returns whether `Accept` prefers a media type to another: by weight, then the one that it names.
pub(crate) fn prefers(headers: &HeaderMap, media: &str, other: &str) -> bool {
    let rank = |media| {
        let (named, weight) = weight(headers, media);
        (weight, named)
    };
    rank(media) > rank(other)
}

/// Returns how specific the range of `Accept` (RFC 9110 §12.5.1) is that decides about a media type (2 if it names it), and its weight.
pub(crate) fn weight(headers: &HeaderMap, media: &str) -> (u8, f32) {
    let kind = media.split('/').next().unwrap_or_default();
    let mut best: Option<(u8, f32)> = None;
    let mut any = false;
    for range in headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        any = true;
        let specific = match name.strip_suffix("/*") {
            Some("*") => 0,
            Some(of) if of.eq_ignore_ascii_case(kind) => 1,
            None if name.eq_ignore_ascii_case(media) => 2,
            _ => continue,
        };
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q="))).and_then(|q| q.parse::<f32>().ok());
        let found = (specific, weight.unwrap_or(1.0));
        best = best.filter(|best| *best >= found).or(Some(found));
    }
    best.unwrap_or(if any { (0, 0.0) } else { (0, 1.0) })
}

fn no_query(request: &Request) -> Result<(), ApiError> {
    let query = request.uri().query().unwrap_or_default();
    if query.is_empty() || lenient(request.headers()) {
        return Ok(());
    }
    let fault = |name: &str| FieldError::new(format!("query.{}", shown(name)), "is unknown; this operation takes no query parameters");
    let faults: Vec<_> = pairs(query).take(limits::FIELD_ERRORS).map(|(name, _)| fault(&name)).collect();
    if faults.is_empty() { Ok(()) } else { Err(Error::invalid(faults).into()) }
}

async fn run(next: Next, request: Request) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => ApiError::from(Error::internal(format!("panic: {}", panic_text(&*panic)))).into_response(),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("of an unknown kind")
}

fn log(app: &App, id: &HeaderValue, operation: &str, error: &Error) {
    let id = id.to_str().unwrap_or_default();
    let causes = chain(error);
    if error.code() == ErrorCode::Unavailable {
        // A flood can cause any number of these.
        if let Some(suppressed) = app.refusals.line(&error.to_string(), app.core.ids().clock.monotonic()) {
            let others = if suppressed == 0 { String::new() } else { format!(" ({suppressed} similar ones not logged)") };
            tracing::warn!(request.id = id, operation, cause = causes, suppressed, "request {id} was rejected: {error}{others}");
        }
    } else {
        tracing::error!(request.id = id, operation, cause = causes, "request {id} failed: {causes}");
    }
}

/// Returns the causes, without the public message.
fn chain(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Adds the request id to the body, so that the operator can find the cause.
fn with_request_id(mut response: Response, id: &HeaderValue, error: &Error) -> Response {
    let mut body = error.to_body();
    body["details"]["requestId"] = id.to_str().unwrap_or_default().into();
    *response.body_mut() = Body::from(body.to_string());
    debug_assert!(response.headers().contains_key(CONTENT_TYPE));
    response
}

const fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}

/// Returns the caller's request id if it is short and safe to log, otherwise a new one.
fn request_id(headers: &HeaderMap, ids: &Ids) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        (1..=REQUEST_ID_BYTES).contains(&value.len())
            && value.as_bytes().iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    headers.get(REQUEST_ID).filter(sane).cloned().unwrap_or_else(|| new_request_id(ids))
}

fn new_request_id(ids: &Ids) -> HeaderValue {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut random = [0_u8; 16];
    ids.entropy.fill(&mut random);
    let mut text = *b"req_00000000000000000000000000000000";
    for (pair, byte) in text[4..].chunks_exact_mut(2).zip(random) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    HeaderValue::from_bytes(&text).unwrap_or_else(|_| HeaderValue::from_static("req_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), HeaderValue::from_str(value).expect("a header value"))).collect()
    }

    #[test]
    fn accept_is_decided_by_the_most_specific_range() {
        for (accept, expected) in [
            (&[][..], true),
            (&["*/*"], true),
            (&["text/html", "application/*;q=0.1"], true),
            (&["Application/JSON"], true),
            (&["text/html"], false),
            (&["application/json;q=0, */*"], false),
            (&["application/json;v=1;q=0.5, */*;q=0"], true),
            (&["*/*; q=0.0"], false),
        ] {
            assert_eq!(accepts(&headers(ACCEPT, accept), "application/json"), expected, "{accept:?}");
        }
        assert!(accepts(&headers(ACCEPT, &["application/json;q=0, text/*"]), "text/csv"));
    }

    #[test]
    fn the_bearer_scheme_is_read_in_any_case() {
        for (header, token) in [("Bearer abc", "abc"), ("bearer  abc", "abc"), ("Basic abc", ""), ("abc", "")] {
            assert_eq!(bearer(&headers(AUTHORIZATION, &[header])), token);
        }
    }
}
