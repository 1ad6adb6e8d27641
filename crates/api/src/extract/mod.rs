//! What handlers take from a request.

mod body;
mod faults;
mod headers;
mod objects;
mod query;
mod scan;
mod short;

use axum::extract::FromRequestParts;
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
use nuncio_core::Caller;
use nuncio_domain::Error;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

pub(crate) use body::{Body, NoBody, OptionalBody, Validators, read as read_bytes};
pub(crate) use faults::shown;
pub(crate) use headers::{IdempotencyKey, LastEventId, Lenient, ServiceSender, lenient};
pub(crate) use query::{Query, pairs};

impl Validators {
    /// Reads a part of a body as a body of its own.
    pub(crate) fn parse_part<T: DeserializeOwned + utoipa::ToSchema>(&self, json: &[u8], lenient: bool) -> Result<T, Error> {
        self.parse(json, lenient)
    }
}

/// Who calls. The shell has looked it up.
#[derive(Debug)]
pub(crate) struct Auth(pub(crate) Caller);

impl<S: Sync> FromRequestParts<S> for Auth {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.remove::<Caller>();
        caller.map(Self).ok_or_else(|| Error::internal("the operation has no row in OPERATIONS, so nobody was authenticated").into())
    }
}

/// Parameters in the path. One that cannot be read, such as an identifier that is no UTF-8, is of nothing: 404.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(_)) => Err(Error::not_found("resource").into()),
            Err(missing) => Err(Error::internal(missing.body_text()).into()),
        }
    }
}
