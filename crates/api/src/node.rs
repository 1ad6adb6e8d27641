//! Routes outside the API proper: document, health, metrics and 404.

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use nuncio_core::Core;
use nuncio_domain::ErrorCode;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::error::ApiError;
use crate::middleware::prefers;
use crate::published::PUBLISHED;
use crate::reply::{Reply, Result};
use crate::state::App;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// <https://prometheus.io/docs/instrumenting/exposition_formats>
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(crate) fn routes() -> axum::Router<App> {
    axum::Router::new()
        .route("/openapi.json", get(async || ([(CONTENT_TYPE, JSON)], PUBLISHED.clone())))
        .route("/healthz", get(async || Reply::ok(json!({"status": "ok"}))))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/attachments/{token}", get(crate::v1::messages::download))
}

/// Returns whether a load balancer should send requests to this node.
async fn readyz(State(core): State<Core>) -> Result<Reply<Value>> {
    core.ready().await?;
    Ok(Reply::ok(json!({"status": "ready"})))
}

async fn metrics(State(app): State<App>) -> Response {
    ([(CONTENT_TYPE, METRICS)], (app.metrics)()).into_response()
}

/// Browsers get the fallback of the pages, except below `/v1`.
pub(crate) async fn not_found(request: Request, pages: axum::Router) -> Response {
    let path = request.uri().path();
    if path != "/v1" && !path.starts_with("/v1/") && prefers(request.headers(), "text/html", "application/json") {
        return pages.oneshot(request).await.into_response();
    }
    ApiError::new(ErrorCode::NotFound, "this path does not exist; see /docs").into_response()
}

pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, "the path does not support this method; the Allow header lists supported methods")
}
