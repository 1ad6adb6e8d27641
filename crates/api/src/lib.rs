//! The HTTP API.
//!
//! A request passes the [middleware](middleware) first: it gets an id, and is authenticated, rate-limited and authorised before the handler runs.
//! Handlers take their input through [extractors](extract), which report all field errors of a body or query at once, call
//! [`nuncio_core::Core`], and render the result. Parts common to all operations (security, errors, headers) are added to the
//! [document](document) in one place, so that a new endpoint is a handler under `v1`, a line in `routes` above it, and a row in
//! [`nuncio_core::UseCase`].

mod budget;
mod document;
mod error;
mod error_details;
mod error_schemas;
mod event_schemas;
mod examples;
mod extract;
mod json;
mod middleware;
mod named_objects;
mod node;
mod operations;
mod providers;
mod published;
mod reply;
mod routes;
mod state;
mod streams;
mod v1;
mod wire;

pub use document::openapi;
pub use middleware::{NoHost, Spare};
pub use operations::{NOT_AUDITED, operation_id};
pub use state::{ApiLimits, ApiState};
pub use wire::Pace;

use axum::extract::Request;

/// Returns the routes of the API and, alongside, `pages`. All pass the middleware: they get a request id and are counted, and a panic in one is
/// a 500. The fallback of `pages` tells browsers that a path is unknown; others get JSON.
///
/// Serve it with `ConnectInfo<SocketAddr>`, so that failed authentications are counted per client address; otherwise all clients share one
/// limit.
pub fn router(state: ApiState, pages: axum::Router) -> axum::Router {
    let routes::Routes { router, routes, .. } = v1::routes();
    let app = state::App::new(state, operations::Operations::of(routes));
    let lost = pages.clone();
    router
        .merge(node::routes())
        .merge(providers::routes())
        .fallback(async move |request: Request| node::not_found(request, lost).await)
        .method_not_allowed_fallback(node::method_not_allowed)
        .with_state(app.clone())
        .merge(pages.reset_fallback())
        .layer(axum::middleware::from_fn_with_state(app, middleware::middleware))
}
