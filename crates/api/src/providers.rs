//! `/providers/{kind}/{connectionId}`: what providers call. They prove themselves to their adapter, by a signature or a shared secret.

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get};
use nuncio_core::{Called, Core};
use nuncio_domain::limits;

use crate::error::ApiError;
use crate::reply::Result;
use crate::state::App;

pub(crate) fn routes() -> axum::Router<App> {
    let called = || -> MethodRouter<App> { get(called).post(called) };
    axum::Router::new().route("/providers/{kind}/{connection}", called()).route("/providers/{kind}/{connection}/{*rest}", called())
}

async fn called(State(core): State<Core>, Path(path): Path<Vec<(String, String)>>, request: Request) -> Result<Response> {
    let part = |wanted: &str| path.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str());
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, limits::BODY_BYTES).await.map_err(|_| too_large())?;
    let answer = core
        .provider_called(Called {
            method: head.method.as_str(),
            kind: part("kind"),
            connection: part("connection"),
            rest: part("rest"),
            path_and_query: head.uri.path_and_query().map_or("/", |whole| whole.as_str()),
            headers: &head.headers,
            body: &body,
        })
        .await?;
    let text = Bytes::from(answer.body);
    Ok(if answer.content_type.is_empty() { text.into_response() } else { ([(CONTENT_TYPE, answer.content_type)], text).into_response() })
}

fn too_large() -> ApiError {
    let message = format!("the body is longer than {} bytes, or ended early", limits::BODY_BYTES);
    ApiError::new(nuncio_domain::ErrorCode::PayloadTooLarge, message)
}
