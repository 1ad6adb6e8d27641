//! The HTTP API.
//!
//! A request passes the [shell](shell) first: it gets an id, is authenticated, counted against its world's rate limit, and
//! checked against the permission of its operation, all before the handler sees it. Handlers take their input through the
//! [extractors](extract), which tell every fault of a body or query at once, call [`nuncio_core::Core`], and render. What is
//! common to all operations (security, errors, headers) is added to the [document](document) in one place, so that a new
//! endpoint is a file under `v1`, a line in its `mod.rs`, and a row in [`nuncio_core::UseCase`].

mod budget;
mod document;
mod error;
mod error_details;
mod error_schemas;
mod event_schemas;
mod examples;
mod extract;
mod named_objects;
mod node;
mod operations;
mod providers;
mod reads;
mod refusals;
mod reply;
mod shell;
mod state;
mod streams;
mod v1;
mod wire;

pub use document::openapi;
pub use operations::{NOT_AUDITED, operation_id};
pub use shell::Spare;
pub use state::{ApiLimits, ApiState};
pub use wire::Pace;

/// The routes of the API and, beside them, `pages`, ready to be served. All of them pass the shell: they get a request id, are counted,
/// and a panic in them is a 500.
///
/// Serve it with `ConnectInfo<SocketAddr>`: failed authentications are counted per address. Without one they all count together.
pub fn router(state: ApiState, pages: axum::Router) -> axum::Router {
    let (routes, document) = document::build();
    let app = state::App::new(state, document, document::schemas());
    routes
        .merge(node::routes(document))
        .merge(providers::routes())
        .fallback(node::not_found)
        .method_not_allowed_fallback(node::method_not_allowed)
        .with_state(app.clone())
        .merge(pages)
        .layer(axum::middleware::from_fn_with_state(app, shell::shell))
}
