//! Reads submitted forms.

use std::collections::{BTreeMap, HashMap};

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use nuncio_domain::address::{self, Parsed};
use nuncio_domain::limits;
use url::{Url, form_urlencoded};

use crate::App;

/// Maximum size of a form of a guest, in bytes.
const OF_GUEST: usize = 16 * 1024;
/// Maximum size of a form of a signed-in person, in bytes: the longest email, of which encoding can triple each byte, and the other fields.
const OF_PERSON: usize = 3 * (limits::EMAIL_HTML_BYTES + limits::EMAIL_TEXT_BYTES) + OF_GUEST;

#[derive(Debug, Default)]
pub(crate) struct Form(HashMap<String, String>);

impl<N: Into<String>> FromIterator<(N, String)> for Form {
    fn from_iter<I: IntoIterator<Item = (N, String)>>(fields: I) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl Form {
    /// Reads a form. Fails with 403 if it is not a form or comes from another site, 413 if it is too large, 503 if it arrives too slowly or
    /// memory is short.
    pub(crate) async fn read(app: &App, request: Request) -> Result<Self, StatusCode> {
        Self::read_within(OF_GUEST, app, request).await
    }

    /// As [`Self::read`], for a form of a signed-in person, which may hold a whole email.
    pub(crate) async fn read_of_person(app: &App, request: Request) -> Result<Self, StatusCode> {
        Self::read_within(OF_PERSON, app, request).await
    }

    async fn read_within(most: usize, app: &App, request: Request) -> Result<Self, StatusCode> {
        let headers = request.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if of_another_site(app, headers) {
            return Err(StatusCode::FORBIDDEN);
        }
        let kind = text(CONTENT_TYPE.as_str()).split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind != "application/x-www-form-urlencoded" {
            return Err(StatusCode::FORBIDDEN);
        }
        let body = request.into_body();
        if body.size_hint().lower() > most as u64 {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let bytes = axum::body::to_bytes(body, most).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
        let form = Self(form_urlencoded::parse(&bytes).into_owned().collect());
        // What is written back into a page grows again.
        if form.0.values().map(String::len).sum::<usize>() > most / 3 + OF_GUEST {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        Ok(form)
    }

    /// Returns a field, or `""`. Strips NUL, which PostgreSQL rejects. Browsers send line breaks as CRLF, which would count twice.
    pub(crate) fn get(&self, name: &str) -> String {
        self.0.get(name).map_or_else(String::new, |value| value.replace('\0', "").replace("\r\n", "\n"))
    }

    /// Returns the version of what the form showed.
    pub(crate) fn version(&self) -> Option<String> {
        Some(self.get("version")).filter(|version| !version.is_empty())
    }

    /// Returns the fields whose names begin with `prefix`, without it.
    pub(crate) fn under(&self, prefix: &str) -> BTreeMap<String, String> {
        self.0.keys().filter_map(|name| Some((name.strip_prefix(prefix)?.replace('\0', ""), self.get(name)))).collect()
    }
}

/// Normalises a recipient: phone numbers to E.164, the domain of email addresses to lower case; others unchanged.
pub(crate) fn recipient(text: &str) -> String {
    let text = text.trim();
    match (address::typed_phone::<&str>(text, &[]), Parsed::parse(text)) {
        (Ok(number), _) | (_, Ok(Parsed::Email(number))) => number,
        _ => text.to_owned(),
    }
}

/// Returns whether the browser reports another site as the source: by its relation to this one, or, as over plain HTTP, by its origin. For
/// clients that report neither, the form key is the only protection.
pub(crate) fn of_another_site(app: &App, headers: &HeaderMap) -> bool {
    match (headers.get("sec-fetch-site"), headers.get(ORIGIN)) {
        (Some(site), _) => site == "cross-site" || site == "same-site",
        (None, Some(origin)) => !origin.to_str().is_ok_and(|origin| is_own(origin, app.core.public_url(), headers)),
        (None, None) => false,
    }
}

/// Returns whether an origin is that of the public URL or of the requested host; a proxy may pass on another host.
fn is_own(origin: &str, public_url: &str, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let named = origin.split_once("://").map(|(_, host)| host);
    let is_public = Url::parse(public_url).is_ok_and(|url| url.origin().ascii_serialization() == origin);
    is_public || named.is_some_and(|named| host.is_some_and(|host| host.eq_ignore_ascii_case(named)))
}
