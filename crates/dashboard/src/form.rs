//! Forms that are sent.

use std::collections::HashMap;

use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use url::form_urlencoded;

/// The largest form, in bytes.
const BYTES: usize = 16 * 1024;

/// The fields of a form.
#[derive(Debug, Default)]
pub(crate) struct Form(HashMap<String, String>);

impl Form {
    /// Reads a form; `None` when it is none, is too large, or was sent by the page of another site.
    pub(crate) async fn read(request: Request) -> Option<Self> {
        let headers = request.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // Browsers say who sends a form. Those that do not are held by the key in the form alone.
        if matches!(text("sec-fetch-site"), "cross-site" | "same-site") {
            return None;
        }
        let kind = text(CONTENT_TYPE.as_str()).split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind != "application/x-www-form-urlencoded" {
            return None;
        }
        let bytes = axum::body::to_bytes(request.into_body(), BYTES).await.ok()?;
        Some(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }

    /// A field, or `""`. What no database takes is left out.
    pub(crate) fn get(&self, name: &str) -> String {
        self.0.get(name).map_or_else(String::new, |value| value.replace('\0', ""))
    }
}
