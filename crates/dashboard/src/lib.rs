//! Pages for people, made on the server.
//!
//! They work without script, and call use cases of [`nuncio_core`] only. Every answer has the headers of [`headers`].

mod form;
mod headers;
mod invite;
mod link;
mod page;
mod refused;
mod unsubscribe;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use nuncio_core::Core;
use nuncio_core::rate::{Buckets, Quota, subscriber};
use nuncio_domain::limits;

/// The state behind every page.
#[derive(Clone, Debug)]
struct App {
    core: Core,
    /// Guesses that addresses have left.
    guesses: Arc<Buckets<IpAddr>>,
}

/// The routes of all pages.
///
/// Serve them with `ConnectInfo<SocketAddr>`: guesses are counted per address. Without one they all count together.
pub fn router(core: Core) -> axum::Router {
    let guesses = Arc::new(Buckets::new(Quota::new(limits::GUESSES, limits::GUESSES)));
    axum::Router::new()
        .route("/invite/{token}", get(invite::show).post(invite::act))
        .route("/unsubscribe/{token}", get(unsubscribe::show).post(unsubscribe::act))
        .route("/l/{token}", get(link::follow))
        .layer(axum::middleware::map_response(headers::protect))
        .route("/assets/invite.css", get(style))
        .with_state(App { core, guesses })
}

async fn style() -> Response {
    const CSS: &str = include_str!("invite.css");
    ([(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=3600")], CSS).into_response()
}

/// Whom a request counts for.
fn address(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |info| subscriber(info.0.ip()))
}
