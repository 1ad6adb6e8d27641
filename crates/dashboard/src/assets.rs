//! Embedded style sheets, script and logo. Browsers cache them for at most an hour; the sheets of colours, for 30 days.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};

use crate::brand;

/// Symbols of all icons, inlined in each page.
pub(crate) const SPRITE: &str = include_str!("../assets/sprite.svg");

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> axum::Router<S> {
    axum::Router::new()
        .route("/assets/invite.css", file("text/css; charset=utf-8", include_str!("invite.css")))
        .route(
            "/assets/nuncio.css",
            file("text/css; charset=utf-8", concat!(include_str!("../assets/tokens.css"), include_str!("../assets/nuncio.css"))),
        )
        .route("/assets/tokens.css", file("text/css; charset=utf-8", include_str!("../assets/tokens.css")))
        .route("/assets/nuncio.js", file("text/javascript; charset=utf-8", include_str!("../assets/nuncio.js")))
        .route("/assets/colours/{file}", get(brand::show))
        .route("/assets/mark.svg", file("image/svg+xml", include_str!("../assets/mark.svg")))
}

fn file<S: Clone + Send + Sync + 'static>(kind: &'static str, content: &'static str) -> MethodRouter<S> {
    get(move || async move {
        let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "public, max-age=3600")];
        let answer: Response = (headers, content).into_response();
        answer
    })
}
