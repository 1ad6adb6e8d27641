//! Routes outside the API proper: document, health, metrics and 404.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::{
    CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use nuncio_core::Core;
use nuncio_domain::ErrorCode;
use serde_json::{Value, json};
use utoipa_swagger_ui::Config;

use crate::error::ApiError;
use crate::reply::{Reply, Result};
use crate::state::App;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// <https://prometheus.io/docs/instrumenting/exposition_formats>
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// `document` is the OpenAPI document as JSON.
pub(crate) fn routes(document: Bytes) -> axum::Router<App> {
    axum::Router::new()
        .merge(reference().layer(map_response(protect)))
        .route("/openapi.json", get(move || std::future::ready(([(CONTENT_TYPE, JSON)], document))))
        .route("/healthz", get(async || Reply::ok(json!({"status": "ok"}))))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/attachments/{token}", get(crate::v1::messages::download))
}

/// Serves the API reference: Swagger UI in our own page.
fn reference() -> axum::Router<App> {
    let config = Config::from("/openapi.json").use_base_layout().default_models_expand_depth(-1).doc_expansion("none");
    let config = Arc::new(config.display_request_duration(true).try_it_out_enabled(true));
    let file = |kind: &'static str, content: &'static str| get(async move || ([(CONTENT_TYPE, kind)], content));
    axum::Router::new()
        .route("/docs", get(async || Redirect::to("/docs/")))
        .route("/docs/", file("text/html; charset=utf-8", include_str!("../assets/reference.html")))
        .route("/docs/reference.css", file("text/css; charset=utf-8", include_str!("../assets/reference.css")))
        .route("/docs/reference.js", file("text/javascript; charset=utf-8", include_str!("../assets/reference.js")))
        .route("/docs/{file}", get(async move |Path(name): Path<String>| swagger(&name, config)))
}

/// Serves a file of Swagger UI.
fn swagger(name: &str, config: Arc<Config<'static>>) -> Response {
    let Ok(Some(file)) = utoipa_swagger_ui::serve(name, config) else { return StatusCode::NOT_FOUND.into_response() };
    let mut response = ([(CONTENT_TYPE, file.content_type)], file.bytes).into_response();
    if file.gzpipped {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// Security headers of the API reference, into which users type an API key: own scripts and styles only, requests to this server only, no
/// framing.
const DOCS: [(HeaderName, HeaderValue); 4] = [
    (
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; \
             base-uri 'none'; frame-ancestors 'none'",
        ),
    ),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
];

async fn protect(mut response: Response) -> Response {
    response.headers_mut().extend(DOCS);
    response
}

/// Returns whether a load balancer should send requests to this node.
async fn readyz(State(core): State<Core>) -> Result<Reply<Value>> {
    core.ready().await?;
    Ok(Reply::ok(json!({"status": "ready"})))
}

async fn metrics(State(app): State<App>) -> Response {
    ([(CONTENT_TYPE, METRICS)], (app.metrics)()).into_response()
}

pub(crate) async fn not_found() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "there is no such path; see /docs")
}

pub(crate) async fn method_not_allowed() -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, "the path does not support this method; the Allow header lists supported methods")
}
