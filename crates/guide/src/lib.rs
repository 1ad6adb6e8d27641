//! Serves the guide, a book that is built when this crate is compiled and is part of the binary.
//!
//! Its source is `docs/guide`. The pages have no inline script or style, so that they pass the same policy as the dashboard.

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

/// Pages and the search index, by their path below `/docs/guide/`.
const BUILT: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));
const OWN: &[(&str, &[u8])] = &[("guide.css", include_bytes!("../assets/guide.css")), ("guide.js", include_bytes!("../assets/guide.js"))];

/// The policy of the dashboard, with pages that may be kept for a while.
const HEADERS: [(HeaderName, HeaderValue); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (CACHE_CONTROL, HeaderValue::from_static("public, max-age=600")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

/// The routes of the guide, `/docs/guide` and below.
pub fn router() -> axum::Router {
    axum::Router::new()
        .route("/docs/guide", get(async || file("index.html")))
        .route("/docs/guide/", get(async || file("index.html")))
        .route("/docs/guide/{*path}", get(async |Path(path): Path<String>| file(&path)))
        .layer(map_response(protect))
}

/// The paths of all pages below `/docs/guide/`.
pub fn pages() -> impl Iterator<Item = &'static str> {
    BUILT.iter().map(|(path, _)| *path).filter(|path| path.ends_with(".html") && *path != "404.html")
}

fn file(path: &str) -> Response {
    let find = |path: &str| BUILT.iter().chain(OWN).find(|(name, _)| *name == path).map(|(_, content)| *content);
    let (status, content) = match find(path) {
        Some(content) => (StatusCode::OK, content),
        None => (StatusCode::NOT_FOUND, find("404.html").unwrap_or_default()),
    };
    let kind = match path.rsplit_once('.') {
        Some((_, "css")) if status == StatusCode::OK => "text/css; charset=utf-8",
        Some((_, "js")) if status == StatusCode::OK => "text/javascript; charset=utf-8",
        _ => "text/html; charset=utf-8",
    };
    (status, [(CONTENT_TYPE, kind)], content).into_response()
}

async fn protect(mut response: Response) -> Response {
    response.headers_mut().extend(HEADERS);
    response
}
