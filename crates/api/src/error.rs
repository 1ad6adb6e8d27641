//! How errors look from outside.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use nuncio_domain::{Error, ErrorCode, FieldError};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::reply;

pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// When to come back after a 503, in seconds.
const RETRY_UNAVAILABLE: u64 = 1;

/// An error that answers a request.
#[derive(Debug)]
pub(crate) struct ApiError {
    error: Error,
    retry_after: Option<Duration>,
}

/// The error behind a 5xx answer, for the shell to log with the request's id.
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
        let mut response = reply::json(status, &error.to_body());
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        match status {
            StatusCode::SERVICE_UNAVAILABLE => drop(headers.insert(RETRY_AFTER, RETRY_UNAVAILABLE.into())),
            StatusCode::TOO_MANY_REQUESTS => drop(headers.insert(RETRY_AFTER, whole_seconds(retry_after).into())),
            _ if status.is_client_error() || status == StatusCode::INSUFFICIENT_STORAGE => drop(headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"))),
            _ => {}
        }
        // A quota that is used up is the operator's will, and no failure.
        if status.is_server_error() && status != StatusCode::INSUFFICIENT_STORAGE {
            response.extensions_mut().insert(Failure(Arc::new(error)));
        }
        response
    }
}

/// Rounded up, at least one: who comes back earlier is refused again.
fn whole_seconds(wait: Option<Duration>) -> u64 {
    wait.map_or(1, |wait| wait.as_millis().div_ceil(1_000).max(1) as u64)
}

/// What went wrong.
#[derive(Serialize, ToSchema)]
#[schema(as = Error, example = json!({
    "code": "invalid_request",
    "message": "validitySeconds: is 5; must be 30 to 604800",
    "details": {"errors": [{"path": "validitySeconds", "message": "is 5; must be 30 to 604800"}]}
}))]
pub(crate) struct ErrorBody {
    /// Which error it is, from a closed list.
    #[schema(value_type = Code)]
    code: &'static str,
    /// What was wrong, and what would be right, in words.
    message: String,
    details: Details,
    /// `code` and `message` once more, with 401, 403 and 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

/// More about the error, by its code.
#[derive(Serialize, ToSchema)]
#[schema(as = ErrorDetails)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Details {
    /// All faults of a request.
    #[schema(value_type = Option<Vec<Fault>>)]
    errors: Option<Vec<FieldError>>,
    /// The state that does not allow the operation.
    current_status: Option<String>,
    /// The states that do.
    allowed_from: Option<Vec<String>>,
    /// The permission that the API key lacks.
    required: Option<String>,
    /// The request's id, for the operator to find in the log.
    request_id: Option<String>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// One fault of a request.
#[derive(Serialize, ToSchema)]
#[schema(as = FieldError)]
pub(crate) struct Fault {
    /// Where it is: `content.buttons[2].title`, `query.limit`, `header.Service-Sender`.
    path: String,
    /// What was wrong, and what would be right.
    message: String,
}

/// An error in short.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorObject {
    #[schema(value_type = Code)]
    code: &'static str,
    message: String,
}

/// The schema of error codes.
pub(crate) struct Code;

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let lines = ErrorCode::ALL.iter().map(|code| format!("- `{}` ({}): {}", code.as_str(), code.status(), code.summary()));
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(ErrorCode::ALL.iter().map(|code| code.as_str())))
            .description(Some(lines.collect::<Vec<_>>().join("\n")))
            .into()
    }
}

impl ToSchema for Code {
    fn name() -> std::borrow::Cow<'static, str> {
        "ErrorCode".into()
    }
}
