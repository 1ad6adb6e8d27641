//! Forms that are sent.

use std::collections::HashMap;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use nuncio_domain::address;
use url::form_urlencoded;

/// The largest form, in bytes.
const BYTES: usize = 16 * 1024;

/// The fields of a form.
#[derive(Debug, Default)]
pub(crate) struct Form(HashMap<String, String>);

impl Form {
    /// Reads a form. The status says why not: 403 when it is none, or was sent by the page of another site; 413 when it is too large; 503
    /// when it came too slowly or there is no room for it.
    pub(crate) async fn read(request: Request) -> Result<Self, StatusCode> {
        let headers = request.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if of_another_site(headers) {
            return Err(StatusCode::FORBIDDEN);
        }
        let kind = text(CONTENT_TYPE.as_str()).split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind != "application/x-www-form-urlencoded" {
            return Err(StatusCode::FORBIDDEN);
        }
        let body = request.into_body();
        if body.size_hint().lower() > BYTES as u64 {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let bytes = axum::body::to_bytes(body, BYTES).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        Ok(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }

    /// A field, or `""`. What no database takes is left out.
    pub(crate) fn get(&self, name: &str) -> String {
        self.0.get(name).map_or_else(String::new, |value| value.replace('\0', ""))
    }
}

/// A recipient as somebody typed it: numbers in E.164, everything else as it is.
pub(crate) fn recipient(text: &str) -> String {
    address::typed_phone::<&str>(text, &[]).unwrap_or_else(|_| text.trim().to_owned())
}

/// Whether the browser says that a page of another site sent this form. Browsers that do not are held by the key in the form alone.
pub(crate) fn of_another_site(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site" || site == "same-site")
}
