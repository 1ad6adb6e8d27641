//! Extracts JSON bodies.

use std::any::Any;

use axum::body::{Body as Raw, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use nuncio_domain::{Error, ErrorCode, limits};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use super::headers::lenient;
use crate::error::ApiError;
use crate::state::App;
use crate::wire::unread;

/// A JSON body of at most `LIMIT` bytes, parsed into `T`, a type of the document. Reports all field errors at once. With
/// `OUTLINE`, items are kept as raw JSON, and checked when the handler parses them.
#[derive(Debug)]
pub(crate) struct Body<T, const LIMIT: usize = { limits::BODY_BYTES }, const OUTLINE: bool = false> {
    pub(crate) value: T,
}

/// An optional body; `T::default()` if it is absent.
#[derive(Debug)]
pub(crate) struct OptionalBody<T>(pub(crate) T);

pub(crate) type NoBody = OptionalBody<Empty>;

/// An object without fields.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Empty {}

impl<T: DeserializeOwned + ToSchema + Send + 'static, const LIMIT: usize, const OUTLINE: bool> FromRequest<App>
    for Body<T, LIMIT, OUTLINE>
{
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (bytes, lenient) = accept(request, LIMIT).await?;
        let parse = move |app: &App, json: &[u8]| match OUTLINE {
            true => app.validators.parse_outline(json, lenient),
            false => app.validators.parse(json, lenient),
        };
        if bytes.len() <= limits::SPOOL_THRESHOLD_BYTES {
            return Ok(Self { value: parse(app, &bytes)? });
        }
        // Keeps other requests from waiting while a large body is parsed.
        let app = app.clone();
        let parsed = apart(Box::new(move || Box::new(parse(&app, &bytes)))).await?;
        let parsed: Box<Result<T, Error>> = parsed.downcast().expect("apart returns what its work returned");
        Ok(Self { value: (*parsed)? })
    }
}

impl<T: DeserializeOwned + ToSchema + Default> FromRequest<App> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, limits::BODY_BYTES).await?;
        if bytes.trim_ascii().is_empty() {
            return Ok(Self(T::default()));
        }
        check_type(&parts.headers)?;
        Ok(Self(app.validators.parse(&bytes, lenient(&parts.headers))?))
    }
}

/// Returns a JSON body, and whether it may have unknown fields.
async fn accept(request: Request, limit: usize) -> Result<(Bytes, bool), ApiError> {
    check_type(request.headers())?;
    let lenient = lenient(request.headers());
    Ok((read(request.into_body(), limit).await?, lenient))
}

type AnyValue = Box<dyn Any + Send>;

/// Runs work on a thread that may block. It knows no type of a body, so that the task is compiled once, not for each.
async fn apart(work: Box<dyn FnOnce() -> AnyValue + Send>) -> Result<AnyValue, Error> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}

/// Maximum bytes reserved because of `Content-Length` alone, which costs a client nothing.
const ANNOUNCED: usize = 1024 * 1024;

/// Rejects a compressed body.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Error> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        let message = "a body with a Content-Encoding is not supported; send it unencoded";
        return Err(Error::new(ErrorCode::UnsupportedMediaType, message));
    }
    Ok(())
}

/// Accepts `application/json` or a `+json` type, uncompressed.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    check_encoding(headers)?;
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = header.split(';').next().unwrap_or_default().trim();
    let (kind, subtype) = essence.split_once('/').unwrap_or_default();
    let is_json =
        kind.eq_ignore_ascii_case("application") && subtype.rsplit('+').next().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"));
    let message = "the body must be JSON, with the header Content-Type: application/json";
    if is_json { Ok(()) } else { Err(ApiError::new(ErrorCode::UnsupportedMediaType, message)) }
}

/// Reads a whole body. A body that arrives in one chunk is not copied.
pub(crate) async fn read(mut body: Raw, limit: usize) -> Result<Bytes, ApiError> {
    let too_large =
        || ApiError::new(ErrorCode::PayloadTooLarge, format!("the body is larger than {limit} bytes, the limit of this endpoint"));
    let announced = body.size_hint().lower();
    if announced > limit as u64 {
        return Err(too_large());
    }
    let (mut first, mut all) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(unread)?.into_data() else { continue };
        let length = first.len() + all.len() + data.len();
        if length > limit {
            return Err(too_large());
        }
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.reserve(length.max((announced as usize).min(ANNOUNCED)));
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
