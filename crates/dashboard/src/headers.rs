//! Security headers of every page.

use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use axum::response::Response;

/// Pages load nothing from other sites, run nothing inline and cannot be framed. URLs contain secrets: no caching, no referrer to
/// other sites, no indexing. Without any referrer, browsers would not say where a form comes from, either.
const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
             frame-ancestors 'none'",
        ),
    ),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow")),
];

pub(crate) async fn protect(mut response: Response) -> Response {
    response.headers_mut().extend(HEADERS);
    response
}
