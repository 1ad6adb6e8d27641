//! How errors look from outside.

use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use nuncio_domain::{Error, ErrorCode};
use serde::Serialize;
use utoipa::openapi::schema::Type;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{error_schemas, reply};

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
            // It may have been the network.
            StatusCode::REQUEST_TIMEOUT => {}
            _ if status.is_client_error() || status == StatusCode::INSUFFICIENT_STORAGE => {
                drop(headers.insert(SHOULD_RETRY, HeaderValue::from_static("false")));
            }
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

/// The body of an error, whatever its code.
pub(crate) struct ErrorBody;

impl PartialSchema for ErrorBody {
    fn schema() -> RefOr<Schema> {
        error_schemas::one_of(&error_schemas::common().collect::<Vec<_>>(), None)
    }
}

impl ToSchema for ErrorBody {
    fn name() -> std::borrow::Cow<'static, str> {
        "Error".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        error_schemas::add_schemas(schemas);
    }
}

/// One fault of a request.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its schema is used; faults are `nuncio_domain::FieldError`")]
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

/// Makes the schema of the 409 that answers a repeated idempotency key: the original resource is in it under its name.
macro_rules! repeated {
    ($(#[$doc:meta])* $name:ident: $field:ident of $resource:ty) => {
        $(#[$doc])*
        #[derive(serde::Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct $name {
            /// The original, unless it was deleted since.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(schema_with = crate::error_details::whole_or_reference::<$resource>)]
            $field: Option<$resource>,
            #[schema(value_type = crate::error_details::IdempotencyCode)]
            code: &'static str,
            /// In words.
            #[schema(example = "the idempotency key was used by the same request")]
            message: String,
            details: crate::error_details::NoDetails,
            error: crate::error::ErrorObject,
        }
    };
}
pub(crate) use repeated;
