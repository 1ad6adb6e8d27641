//! Serves what one reads: the guide, a book that is built when this crate is compiled, and the API reference, Swagger UI in our own page.
//!
//! The source of the guide is `docs/guide`. All files are part of the binary, compressed. No page has an inline script or style.

use std::future::ready;
use std::io::Read as _;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use flate2::read::GzDecoder;

/// Files by their path below `/docs/`, compressed with gzip.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Headers of the guide: the policy of the dashboard, with pages that may be kept for a while.
const GUIDE: [(HeaderName, HeaderValue); 2] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (CACHE_CONTROL, HeaderValue::from_static("public, max-age=600")),
];

/// Headers of the API reference, into which users type an API key: own scripts and styles only, requests to this server only, no framing.
const REFERENCE: [(HeaderName, HeaderValue); 1] = [(
    CONTENT_SECURITY_POLICY,
    HeaderValue::from_static(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
)];

/// Headers of both.
const COMMON: [(HeaderName, HeaderValue); 4] = [
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (VARY, HeaderValue::from_static("accept-encoding")),
];

/// Returns the routes: `/docs` and below.
pub fn router() -> axum::Router {
    guide().merge(reference()).layer(map_response(|response: Response| ready(with(response, COMMON))))
}

fn guide() -> axum::Router {
    let index = async |headers: HeaderMap| page("index.html", &headers);
    axum::Router::new()
        .route("/docs/guide", get(index))
        .route("/docs/guide/", get(index))
        .route("/docs/guide/{*path}", get(async |Path(path): Path<String>, headers: HeaderMap| page(&path, &headers)))
        .layer(map_response(|response: Response| ready(with(response, GUIDE))))
}

fn reference() -> axum::Router {
    let file = |path: &str, headers: &HeaderMap| file(path, headers).unwrap_or_else(|| StatusCode::NOT_FOUND.into_response());
    axum::Router::new()
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route("/docs/", get(async move |headers: HeaderMap| file("reference.html", &headers)))
        .route("/docs/{file}", get(async move |Path(name): Path<String>, headers: HeaderMap| file(&name, &headers)))
        .layer(map_response(|response: Response| ready(with(response, REFERENCE))))
}

fn with<const N: usize>(mut response: Response, headers: [(HeaderName, HeaderValue); N]) -> Response {
    response.headers_mut().extend(headers);
    response
}

/// Returns the paths of all pages below `/docs/guide/`.
pub fn pages() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(path, _)| path.strip_prefix("guide/")).filter(|path| path.ends_with(".html") && *path != "404.html")
}

fn page(path: &str, headers: &HeaderMap) -> Response {
    file(&format!("guide/{path}"), headers).unwrap_or_else(|| {
        let missing = file("guide/404.html", headers).unwrap_or_default();
        (StatusCode::NOT_FOUND, missing).into_response()
    })
}

fn file(path: &str, headers: &HeaderMap) -> Option<Response> {
    let (_, content) = FILES.iter().find(|(name, _)| *name == path)?;
    let kind = match path.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        _ => "text/html; charset=utf-8",
    };
    if takes_gzip(headers) {
        return Some(([(CONTENT_TYPE, kind), (CONTENT_ENCODING, "gzip")], *content).into_response());
    }
    let mut plain = Vec::new();
    GzDecoder::new(*content).read_to_end(&mut plain).ok()?;
    Some(([(CONTENT_TYPE, kind)], Bytes::from(plain)).into_response())
}

/// Returns whether a client accepts gzip (RFC 9110, 12.5.3): it names it without refusing it by `q=0`.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut codings = accepted.map(|coding| coding.split_once(';').unwrap_or((coding, "")));
    codings.any(|(name, weight)| {
        name.trim().eq_ignore_ascii_case("gzip")
            && weight.trim().strip_prefix("q=").is_none_or(|weight| weight.parse().is_ok_and(|weight: f32| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_compressed_to_those_who_take_it() {
        let read = |accepted: &'static str| {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accepted))]);
            let response = file("reference.css", &headers).expect("a file");
            response.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip")
        };
        let cases = [("gzip, deflate, br", true), ("br, GZIP;q=0.5", true), ("gzip;q=0", false), ("identity", false), ("", false)];
        for (accepted, expected) in cases {
            assert_eq!(read(accepted), expected, "{accepted}");
        }
    }
}
