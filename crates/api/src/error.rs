//! Renders errors.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use nuncio_domain::{Error, ErrorCode};

pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// `Retry-After` of a 503, in seconds.
const RETRY_UNAVAILABLE: u64 = 1;

/// The error of a request.
#[derive(Debug)]
pub(crate) struct ApiError {
    error: Error,
    retry_after: Option<Duration>,
}

/// The cause of a 5xx response, logged by the middleware with the request id.
#[derive(Clone, Debug)]
pub(crate) struct Failure(pub(crate) Arc<Error>);

impl ApiError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Error::new(code, message).into()
    }

    /// `429 rate_limit_exceeded`.
    pub(crate) fn too_many(message: &str, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..Self::new(ErrorCode::RateLimitExceeded, message) }
    }

    #[cfg(test)]
    pub(crate) fn inner(&self) -> &Error {
        &self.error
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self { error, retry_after: None }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { error, retry_after } = self;
        let status = StatusCode::from_u16(error.code().status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, [(CONTENT_TYPE, JSON)], error.to_body().to_string()).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        match status {
            StatusCode::SERVICE_UNAVAILABLE => drop(headers.insert(RETRY_AFTER, RETRY_UNAVAILABLE.into())),
            StatusCode::TOO_MANY_REQUESTS => drop(headers.insert(RETRY_AFTER, whole_seconds(retry_after).into())),
            // The network may have been the cause.
            StatusCode::REQUEST_TIMEOUT => {}
            _ if status.is_client_error() || status == StatusCode::INSUFFICIENT_STORAGE => {
                drop(headers.insert(SHOULD_RETRY, HeaderValue::from_static("false")));
            }
            _ => {}
        }
        // A full quota is the operator's choice, not a failure.
        if status.is_server_error() && status != StatusCode::INSUFFICIENT_STORAGE {
            response.extensions_mut().insert(Failure(Arc::new(error)));
        }
        response
    }
}

/// Rounds up to at least one second, so that clients do not retry too early.
fn whole_seconds(wait: Option<Duration>) -> u64 {
    wait.map_or(1, |wait| wait.as_millis().div_ceil(1_000).max(1) as u64)
}
