//! `/providers/{kind}/{connectionId}`: callbacks of providers. The adapter authenticates them by a signature or a shared secret.

use std::net::IpAddr;

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use nuncio_core::{CallbackTarget, Called};
use nuncio_domain::{ErrorCode, limits};

use crate::error::ApiError;
use crate::extract::read_bytes;
use crate::middleware::address;
use crate::reply::Result;
use crate::state::App;

pub(crate) fn routes() -> axum::Router<App> {
    let called = || -> MethodRouter<App> { get(called).post(called) };
    axum::Router::new().route("/providers/{kind}/{connection}", called()).route("/providers/{kind}/{connection}/{*rest}", called())
}

async fn called(State(app): State<App>, Path(path): Path<Vec<(String, String)>>, request: Request) -> Result<Response> {
    let part = |wanted: &str| path.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str());
    let target = find(&app, part("kind"), part("connection"), address(&request)).await?;
    let (head, body) = request.into_parts();
    let body = read_bytes(body, limits::CALLBACK_BYTES).await?;
    let answer = app
        .core
        .inbound()
        .provider_called(
            &target,
            Called {
                method: head.method.as_str(),
                rest: part("rest"),
                path_and_query: head.uri.path_and_query().map_or("/", |whole| whole.as_str()),
                headers: &head.headers,
                body: &body,
            },
        )
        .await?;
    let text = Bytes::from(answer.body);
    Ok(if answer.content_type.is_empty() { text.into_response() } else { ([(CONTENT_TYPE, answer.content_type)], text).into_response() })
}

/// Finds the connection before the body is read. After too many guesses, an address reaches only connections that were called before.
async fn find(app: &App, kind: &str, connection: &str, address: IpAddr) -> Result<CallbackTarget> {
    let too_many = |wait| ApiError::too_many("too many calls to unknown connections from this address", wait);
    let now = app.core.ids().clock.monotonic();
    if let Some(wait) = app.strays.wait(&address, now)
        && !app.core.inbound().knows_connection(connection)
    {
        return Err(too_many(wait)); // without a database access
    }
    match app.core.inbound().find_callback(kind, connection).await {
        Err(error) if error.code() == ErrorCode::NotFound => match app.strays.take(address, now).and_then(|taken| taken.wait) {
            Some(wait) => Err(too_many(wait)),
            None => Err(error.into()),
        },
        found => Ok(found?),
    }
}
