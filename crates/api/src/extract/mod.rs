//! Extractors of handlers.

mod body;
mod headers;
mod query;

use axum::extract::FromRequestParts;
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
use nuncio_core::{Caller, Core};
use nuncio_domain::Error;
use serde::de::DeserializeOwned;

use crate::error::ApiError;
use crate::state::App;

pub(crate) use body::{Body, NoBody, OptionalBody, check_encoding, read as read_bytes};
pub(crate) use headers::{IdempotencyKey, LastEventId, Lenient, ServiceSender, lenient};
pub(crate) use query::{Query, pairs};

/// The caller, authenticated by the middleware.
#[derive(Debug)]
pub(crate) struct Auth(pub(crate) Caller);

impl<S: Sync> FromRequestParts<S> for Auth {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.remove::<Caller>();
        caller.map(Self).ok_or_else(|| Error::internal("the operation has no row in UseCase, so the caller was not authenticated").into())
    }
}

/// The use cases and the caller.
pub(crate) struct Call(pub(crate) Core, pub(crate) Caller);

impl FromRequestParts<App> for Call {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let Auth(caller) = Auth::from_request_parts(parts, app).await?;
        Ok(Self(app.core.clone(), caller))
    }
}

/// Path parameters. A malformed one, such as invalid UTF-8, is a 404.
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
