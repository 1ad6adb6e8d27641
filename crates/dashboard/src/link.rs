//! `/l/{token}`: redirects a tracked link of a broadcast to its page.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{CACHE_CONTROL, LOCATION, REFERRER_POLICY};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::{App, refused};

/// Redirects and counts a click. HEAD requests, as sent by mail scanners, are not counted.
pub(crate) async fn follow(State(app): State<App>, token: Result<Path<String>, PathRejection>, request: Request) -> Response {
    let token = token.map(|Path(token)| token).unwrap_or_default();
    let url = match app.core.broadcasts().follow_link(&token, request.method() == Method::GET).await {
        Ok(url) => url,
        Err(error) => return refused::link(&app, &request, "following a link", &error),
    };
    let Ok(location) = HeaderValue::try_from(url) else { return refused::missing() };
    let no_store = HeaderValue::from_static("no-store");
    let no_referrer = HeaderValue::from_static("no-referrer");
    (StatusCode::FOUND, [(LOCATION, location), (CACHE_CONTROL, no_store), (REFERRER_POLICY, no_referrer)]).into_response()
}
