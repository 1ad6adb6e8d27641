//! Answers.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use nuncio_domain::Error;
use serde::Serialize;

use crate::error::ApiError;

/// Most answers fit into this many bytes.
const USUAL_BYTES: usize = 1_536;

/// What handlers give back.
pub(crate) type Result<T, E = ApiError> = std::result::Result<T, E>;

/// A JSON answer with its status.
#[derive(Debug)]
pub(crate) struct Reply<T>(StatusCode, T);

impl<T: Serialize> Reply<T> {
    /// 200.
    pub(crate) const fn ok(body: T) -> Self {
        Self(StatusCode::OK, body)
    }

    /// 201.
    pub(crate) const fn created(body: T) -> Self {
        Self(StatusCode::CREATED, body)
    }

    /// 202: what is carried out later.
    pub(crate) const fn accepted(body: T) -> Self {
        Self(StatusCode::ACCEPTED, body)
    }
}

impl<T: Serialize> IntoResponse for Reply<T> {
    fn into_response(self) -> Response {
        json(self.0, &self.1)
    }
}

/// 204 with an empty body.
#[derive(Debug)]
pub(crate) struct NoContent;

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

/// Serialises straight to bytes, so that the length is known.
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

/// Makes the type of a page of a list. Not a generic one: the document would repeat the whole item in it.
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

/// Makes the body that holds a resource under its name.
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
