//! JSON bodies.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body as Raw, Bytes, HttpBody as _};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use jsonschema::{Draft, Validator};
use nuncio_domain::{Error, ErrorCode, FieldError, limits};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use super::faults::{Found, Unknown, member, or_body};
use super::lenient;
use super::objects::Objects;
use super::scan::{RESERVED, Scan, scan};
use super::short::{self, Short};
use crate::document;
use crate::error::ApiError;
use crate::state::App;
use crate::wire::unread;

/// A JSON body of at most `LIMIT` bytes, read into `T`, a type of the document. All faults are told at once.
#[derive(Debug)]
pub(crate) struct Body<T, const LIMIT: usize = { limits::BODY_BYTES }> {
    pub(crate) value: T,
}

/// A body that may be left out, and is `T::default()` then.
#[derive(Debug)]
pub(crate) struct OptionalBody<T>(pub(crate) T);

/// No body, or `{}`.
pub(crate) type NoBody = OptionalBody<Empty>;

/// An object without fields.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Empty {}

impl<T: DeserializeOwned + ToSchema + Send + 'static, const LIMIT: usize> FromRequest<App> for Body<T, LIMIT> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        check_type(request.headers())?;
        let lenient = lenient(request.headers());
        let bytes = read(request.into_body(), LIMIT).await?;
        if bytes.len() <= limits::SPOOL_THRESHOLD_BYTES {
            return Ok(Self { value: app.validators.parse(&bytes, lenient)? });
        }
        // Other requests do not wait while a large one is parsed.
        let app = app.clone();
        let parsed = tokio::task::spawn_blocking(move || app.validators.parse(&bytes, lenient)).await;
        Ok(Self { value: parsed.map_err(Error::internal)?? })
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

/// Announced bytes that memory is set aside for at once. Announcing costs nothing.
const ANNOUNCED: usize = 1024 * 1024;

/// `application/json` or a type that ends in `+json`, and not compressed.
fn check_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let refuse = |message: &str| Err(ApiError::new(ErrorCode::UnsupportedMediaType, message));
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return refuse("a body with a Content-Encoding cannot be read; send it as it is");
    }
    let header = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = header.split(';').next().unwrap_or_default().trim();
    let (kind, subtype) = essence.split_once('/').unwrap_or_default();
    let is_json =
        kind.eq_ignore_ascii_case("application") && subtype.rsplit('+').next().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"));
    if is_json { Ok(()) } else { refuse("the body must be JSON, with the header Content-Type: application/json") }
}

/// Reads a whole body. What arrives in one piece is not copied.
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

/// Compiled schemas of request bodies by name, made when first a body is wrong.
#[derive(Debug, Default)]
pub(crate) struct Validators(Mutex<HashMap<String, Option<Arc<Validator>>>>);

impl Validators {
    /// Most bodies are right: only one that is not is parsed a second time, to find everything that is wrong with it.
    pub(super) fn parse<T: DeserializeOwned + ToSchema>(&self, json: &[u8], lenient: bool) -> Result<T, Error> {
        let Scan { depth, values, nul, longest, reserved } = scan(json);
        if depth > limits::JSON_DEPTH {
            return Err(Error::field("body", format!("is nested {depth} levels deep; at most {} are allowed", limits::JSON_DEPTH)));
        }
        if values > limits::JSON_VALUES {
            return Err(Error::field("body", format!("has {values} values; at most {} are allowed", limits::JSON_VALUES)));
        }
        if reserved {
            return Err(Error::field("body", format!("has a field whose name begins with {RESERVED}; such names are reserved")));
        }
        // What the schema lets pass may be kept and shown. A long string must show first that it may be.
        let mut found = Found::default();
        if longest > limits::STRING {
            let short: Short = serde_json::from_slice(json).map_err(not_json)?;
            found = self.violations::<T>(&short.0);
        }
        let is_right = |found: &Found| found.faults.is_empty() && (lenient || found.unknown.is_empty());
        let mut reason = None;
        if is_right(&found) {
            match from_slice(json) {
                Ok(value) if !nul => return Ok(value),
                Ok(_) => {}
                Err(error) => reason = Some(error.to_string()),
            }
            let short: Short = serde_json::from_slice(json).map_err(not_json)?;
            found = self.violations::<T>(&short.0);
            if nul {
                find_nul(&short.0, String::new(), &mut found.faults);
            }
        }
        let Found { mut faults, unknown } = found;
        if !lenient {
            faults.extend(unknown.into_iter().map(|unknown| unknown.fault));
            match reason {
                Some(reason) if faults.is_empty() => faults.push(FieldError::new("body", reason)),
                _ => {}
            }
        } else if faults.is_empty() {
            let mut value: Value = serde_json::from_slice(json).map_err(not_json)?;
            unknown.iter().for_each(|unknown| remove(&mut value, unknown));
            // As text once more: only so are numbers read that no type holds.
            let json = serde_json::to_vec(&value).map_err(Error::internal)?;
            return from_slice(&json).map_err(|error| Error::field("body", error.to_string()));
        }
        Err(Error::invalid(faults))
    }

    fn violations<T: ToSchema>(&self, value: &Value) -> Found {
        let name = T::name();
        let mut validators = self.0.lock();
        let validator = validators.entry(name.to_string()).or_insert_with(|| compile::<T>(&name).map(Arc::new)).clone();
        drop(validators);
        validator.map(|validator| Found::new(&validator, document::schemas(), value)).unwrap_or_default()
    }
}

fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    let mut read = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(Objects(&mut read))?;
    read.end()?;
    Ok(value)
}

fn not_json(error: serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    Error::new(ErrorCode::InvalidJson, format!("the body is not JSON: {error}")).with("line", line.into()).with("column", column.into())
}

/// The schema of a type, which is in the document unless nothing is said there of so empty a body.
fn compile<T: ToSchema>(name: &str) -> Option<Validator> {
    let mut schema = document::schemas().clone();
    schema.pointer_mut("/components/schemas")?.as_object_mut()?.entry(name).or_insert_with(|| serde_json::json!(T::schema()));
    schema["$ref"] = format!("#/components/schemas/{name}").into();
    jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true).build(&schema).ok()
}

fn find_nul(value: &Value, path: String, faults: &mut Vec<FieldError>) {
    if faults.len() >= limits::FIELD_ERRORS {
        return;
    }
    let mut check = |text: &str, path: &str| {
        if text.contains('\0') {
            faults.push(FieldError::new(or_body(path), "must not contain U+0000"));
        }
    };
    match value {
        Value::String(text) => check(text, &path),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| find_nul(item, format!("{path}[{n}]"), faults)),
        Value::Object(members) => {
            for (name, item) in members {
                let path = member(&path, &name.replace('\0', "\u{2400}"));
                if name.contains('\0') {
                    faults.push(FieldError::new(path.as_str(), "has a name that contains U+0000"));
                }
                find_nul(item, path, faults);
            }
        }
        _ => {}
    }
}

fn remove(value: &mut Value, unknown: &Unknown) {
    if let Some(object) = value.pointer_mut(&unknown.object).and_then(Value::as_object_mut) {
        match unknown.name.len() < short::NAME {
            true => drop(object.remove(&unknown.name)),
            false => object.retain(|name, _| !name.starts_with(&unknown.name)),
        }
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
