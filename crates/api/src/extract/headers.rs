//! Request headers shared by operations.

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use nuncio_domain::Error;
use utoipa::IntoParams;

use crate::error::ApiError;

/// Whether the request has `Prefer: handling=lenient` (RFC 7240 §4.4), which ignores unknown fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lenient(pub(crate) bool);

/// Header `Idempotency-Key`, also for `params(…)` of the operation.
#[derive(Debug, IntoParams)]
#[into_params(names("Idempotency-Key"), parameter_in = Header)]
pub(crate) struct IdempotencyKey(
    /// Carries out at most one request per key. Same as `idempotencyKey` in the body.
    #[param(min_length = 1, max_length = 255)]
    pub(crate) Option<String>,
);

/// Header `Service-Sender`, also for `params(…)` of the operation.
#[derive(Debug, IntoParams)]
#[into_params(names("Service-Sender"), parameter_in = Header)]
pub(crate) struct ServiceSender(
    /// The sender to use. Default: the environment's default sender.
    pub(crate) Option<String>,
);

/// Header `Last-Event-ID`, also for `params(…)` of the operation.
#[derive(Debug, IntoParams)]
#[into_params(names("Last-Event-ID"), parameter_in = Header)]
pub(crate) struct LastEventId(
    /// The id of the last event received; the stream resumes after it.
    pub(crate) Option<String>,
);

pub(crate) fn lenient(headers: &HeaderMap) -> bool {
    let preferences = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut names = preferences.map(|preference| preference.split(';').next().unwrap_or_default());
    names.any(|preference| {
        preference.split_once('=').is_some_and(|(name, value)| {
            name.trim().eq_ignore_ascii_case("handling") && value.trim().trim_matches('"').eq_ignore_ascii_case("lenient")
        })
    })
}

fn text(headers: &HeaderMap, name: &str) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let fault = |message: &str| Error::field(format!("header.{name}"), message).into();
    if values.next().is_some() {
        return Err(fault("is given more than once"));
    }
    value.to_str().map(|text| Some(text.to_owned())).map_err(|_| fault("must consist of visible ASCII characters"))
}

impl<S: Sync> FromRequestParts<S> for Lenient {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self(lenient(&parts.headers)))
    }
}

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        text(&parts.headers, "Idempotency-Key").map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        text(&parts.headers, "Last-Event-ID").map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for ServiceSender {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        text(&parts.headers, "Service-Sender").map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn lenient_handling_is_found_among_other_preferences() {
        for (header, expected) in [
            ("handling=lenient", true),
            ("respond-async, Handling = lenient; why=x", true),
            ("handling=\"lenient\"", true),
            ("Handling=Lenient", true),
            ("handling=strict", false),
            ("lenient", false),
        ] {
            let headers = HeaderMap::from_iter([(axum::http::HeaderName::from_static("prefer"), HeaderValue::from_static(header))]);
            assert_eq!(lenient(&headers), expected, "{header}");
        }
    }
}
