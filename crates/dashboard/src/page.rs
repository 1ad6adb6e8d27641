//! Layout of public pages.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, html};
use nuncio_domain::{Colour, Error, ErrorCode};

use crate::brand;

pub(crate) fn page(status: StatusCode, body: Markup) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8")], body.into_string()).into_response()
}

/// Renders a title and a sentence.
pub(crate) fn plain(title: &str, text: &str) -> Markup {
    layout(title, &html! { h1 { (title) } p { (text) } })
}

pub(crate) fn layout(title: &str, body: &Markup) -> Markup {
    layout_in("en", title, None, body)
}

/// Renders the layout in a language (RFC 5646), and in the colour of a project.
pub(crate) fn layout_in(language: &str, title: &str, colour: Option<Colour>, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang=(language) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="icon" href="../assets/mark.svg" type="image/svg+xml";
                link rel="stylesheet" href="../assets/tokens.css";
                link rel="stylesheet" href="../assets/invite.css";
                @if let Some(colour) = colour { link rel="stylesheet" href={ "../assets/" (brand::path(colour)) }; }
            }
            body { main { (body) } }
        }
    }
}

/// Logs an internal error and shows the error page. `what` describes the request.
pub(crate) fn failed(what: &str, error: &Error) -> Response {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(code = error.code().as_str(), cause, "{what} failed: {error}");
    let status = if error.code() == ErrorCode::Unavailable { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::INTERNAL_SERVER_ERROR };
    page(status, plain("That did not work", "There is a problem on our side. Try again in a few minutes."))
}
