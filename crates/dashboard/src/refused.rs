//! Pages for invalid links. Each is a guess: an address has a few per minute.

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::Response;
use nuncio_domain::{Error, ErrorCode};

use crate::page::{failed, page, plain};
use crate::{App, address};

/// Renders the error page of a link. `doing`: for the log.
pub(crate) fn link(app: &App, request: &Request, doing: &'static str, error: &Error) -> Response {
    if error.code() != ErrorCode::NotFound {
        return failed(doing, error);
    }
    let now = app.core.ids().clock.monotonic();
    let Some(wait) = app.guesses.take(address(request), now).and_then(|taken| taken.wait) else { return missing() };
    let mut response = page(StatusCode::TOO_MANY_REQUESTS, plain("Too many attempts", "Wait a minute, then open the link again."));
    response.headers_mut().insert(RETRY_AFTER, wait.as_secs().max(1).into());
    response
}

/// The link is unknown.
pub(crate) fn missing() -> Response {
    page(
        StatusCode::NOT_FOUND,
        plain("There is no such link", "Check that the whole link was copied. It might have expired, or been used already."),
    )
}
