//! Builds responses.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use nuncio_domain::Error;
use serde::Serialize;

use crate::error::ApiError;

/// Initial buffer size; most responses fit.
const USUAL_BYTES: usize = 1_536;

/// Result of a handler.
pub(crate) type Result<T, E = ApiError> = std::result::Result<T, E>;

/// A JSON response with its status.
#[derive(Debug)]
pub(crate) struct Reply<T>(StatusCode, T);

impl<T: Serialize> Reply<T> {
    pub(crate) const fn ok(body: T) -> Self {
        Self(StatusCode::OK, body)
    }

    pub(crate) const fn created(body: T) -> Self {
        Self(StatusCode::CREATED, body)
    }

    /// 202, for what is carried out later.
    pub(crate) const fn accepted(body: T) -> Self {
        Self(StatusCode::ACCEPTED, body)
    }
}

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        json(self.0, &self.1)
    }
}

#[derive(Debug)]
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// Serialises directly to bytes, so that the length is known.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    if let Err(error) = serde_json::to_writer(&mut bytes, body) {
        return ApiError::from(Error::internal(error)).into_response();
    }
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Defines the page type of a list. Not generic: the document would inline the item.
macro_rules! page {
    ($(#[$doc:meta])* $name:ident of $item:ty) => {
        $(#[$doc])*
        #[derive(Debug, serde::Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct $name {
            /// Newest first.
            items: Vec<$item>,
            /// The `cursor` of the next page; null on the last one.
            #[schema(required)]
            next_cursor: Option<String>,
        }

        impl From<(Vec<$item>, Option<String>)> for $name {
            fn from((items, next_cursor): (Vec<$item>, Option<String>)) -> Self {
                Self { items, next_cursor }
            }
        }
    };
}
pub(crate) use page;

/// Defines the body that holds a resource under its name.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident as $schema:ident: $field:ident of $resource:ty) => {
        $(#[$doc])*
        #[derive(Debug, serde::Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        #[schema(as = $schema)]
        pub(crate) struct $name {
            $field: $resource,
        }

        impl From<$resource> for $name {
            fn from($field: $resource) -> Self {
                Self { $field }
            }
        }
    };
}
pub(crate) use named;
