//! Makes requests to the Graph API.
//!
//! Source: <https://developers.facebook.com/docs/graph-api/guides/error-handling>

use std::time::Duration;

use nuncio_channel::{Account, Services, Settings};
use nuncio_channel_http::{Endpoint, Refusal, bearer, plain};
use nuncio_domain::Redacted;
use nuncio_net::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use nuncio_net::{Method, Network, Response, Url};
use serde::Deserialize;
use serde_json::Value;

use crate::access::root;

/// Longest response that is read, in bytes; for media the caller sets the limit.
const RESPONSE_BYTES: u64 = 1 << 20;

/// An error of the Graph API.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct GraphError {
    /// The code, which decides what to do.
    #[serde(default)]
    pub code: i64,
    /// Distinguishes cases of a code.
    pub error_subcode: Option<i64>,
    /// Text for developers.
    #[serde(default)]
    pub message: String,
    /// Title; in statuses only.
    #[serde(default)]
    pub title: String,
    /// Text for users, where it differs.
    pub error_user_msg: Option<String>,
    /// Details, if there are any.
    pub error_data: Option<ErrorData>,
    /// Whether a retry can succeed.
    #[serde(default)]
    pub is_transient: bool,
}

/// The details of an error.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct ErrorData {
    /// Text.
    pub details: Option<String>,
}

impl GraphError {
    /// What happened, for people. Some messages repeat the token, which is `secret`.
    pub fn text(&self, secret: &str) -> String {
        let details = self.error_data.as_ref().and_then(|data| data.details.as_deref()).or(self.error_user_msg.as_deref());
        let head = if self.message.is_empty() { &self.title } else { &self.message };
        let text = match details {
            Some(details) if !head.contains(details) => plain(&format!("{head}: {details}"), secret),
            _ => plain(head, secret),
        };
        if text.is_empty() { format!("Meta gives no reason for code {}", self.code) } else { text }
    }

    /// The refusal that this error is.
    pub fn refusal(self: Box<Self>, status: u16, retry_after: Option<Duration>, secret: &str) -> Refusal<Box<Self>> {
        Refusal { status, code: self.code.to_string(), text: self.text(secret), retry_after, details: self }
    }
}

/// Why a request to the Graph API failed.
pub type RequestError = nuncio_channel_http::RequestError<Box<GraphError>>;

/// A body to send.
#[derive(Debug)]
pub enum Body {
    /// None.
    Empty,
    Json(Value),
    /// A MIME type and bytes of it.
    Bytes(String, Vec<u8>),
}

/// The Graph API with the credentials of one account.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Base and version, with no slash at the end.
    root: String,
    token: Redacted<String>,
    /// The account.
    pub endpoint: Endpoint,
}

impl Graph {
    /// Reads `base_url`, `api_version`, `access_token`, `timeout_seconds` and `window` of `account`. Errors are added to `settings`.
    pub fn read(
        settings: &mut Settings<'_>,
        (net, account, services): (&Network, &Account, &Services),
        kind: &str,
        default_base: &str,
        window: usize,
    ) -> Self {
        settings.check_text(
            "access_token",
            |token| token.bytes().all(|b| b.is_ascii_graphic()),
            "visible ASCII without spaces; copy it again",
        );
        let token = settings.secret("access_token");
        let root = root(settings, default_base);
        Self { root, token, endpoint: Endpoint::read(settings, net, kind, account, services, window) }
    }

    /// Gets `path`, which begins without a slash and may have a query.
    pub async fn get(&self, path: &str) -> Result<Value, RequestError> {
        self.call(Method::GET, path, HeaderMap::new(), Body::Empty).await
    }

    /// Posts JSON to `path`.
    pub async fn post(&self, path: &str, body: Value) -> Result<Value, RequestError> {
        self.call(Method::POST, path, HeaderMap::new(), Body::Json(body)).await
    }

    /// Makes one request and reads the JSON of the response.
    pub async fn call(&self, method: Method, path: &str, headers: HeaderMap, body: Body) -> Result<Value, RequestError> {
        let url = format!("{}/{path}", self.root);
        let answer = self.send(method, &url, headers, body, RESPONSE_BYTES).await?;
        self.parse(&answer)
    }

    /// Gets the file at a URL that the API returned. At most `most` bytes are read.
    pub async fn download(&self, url: &str, most: u64) -> Result<Response, RequestError> {
        if !may_carry_token(url, &self.root) {
            return Err(RequestError::Unreachable("the URL of the media is not https".to_owned()));
        }
        let answer = self.send(Method::GET, url, HeaderMap::new(), Body::Empty, most).await?;
        if answer.status.is_success() { Ok(answer) } else { Err(self.refusal(&answer)) }
    }

    async fn send(&self, method: Method, url: &str, mut headers: HeaderMap, body: Body, most: u64) -> Result<Response, RequestError> {
        let unsendable = || RequestError::Unreachable("the access token contains characters that a header cannot carry".to_owned());
        headers.insert(AUTHORIZATION, bearer(self.token.expose()).ok_or_else(unsendable)?);
        let (content_type, bytes) = match body {
            Body::Empty => (None, Vec::new()),
            Body::Json(value) => (Some("application/json".to_owned()), value.to_string().into_bytes()),
            Body::Bytes(content_type, bytes) => (Some(content_type), bytes),
        };
        if let Some(content_type) = content_type.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(CONTENT_TYPE, content_type);
        }
        Ok(self.endpoint.call(method, url, headers, bytes, most).await?)
    }

    fn parse(&self, answer: &Response) -> Result<Value, RequestError> {
        let value: Option<Value> = serde_json::from_slice(&answer.body).ok().filter(Value::is_object);
        match value {
            // An error can come with any status.
            Some(value) if answer.status.is_success() && value.get("error").is_none() => Ok(value),
            _ => Err(self.refusal(answer)),
        }
    }

    fn refusal(&self, response: &Response) -> RequestError {
        #[derive(Deserialize)]
        struct Wrapped {
            error: Box<GraphError>,
        }
        let (status, retry_after) = (response.status.as_u16(), retry_after(&response.headers));
        match serde_json::from_slice::<Wrapped>(&response.body) {
            Ok(Wrapped { error }) => RequestError::Refused(error.refusal(status, retry_after, self.token.expose())),
            Err(_) => RequestError::Unreadable { status, retry_after },
        }
    }
}

/// Whether the token may be sent to `url`: never in clear text, unless the API itself is reached over HTTP.
fn may_carry_token(url: &str, root: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || root.starts_with("http:"))
}

/// `Retry-After`, or the minutes until a used-up business use case regains access
/// (<https://developers.facebook.com/docs/graph-api/overview/rate-limiting>).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let usage = || -> Option<u64> {
        let usage: Value = serde_json::from_slice(headers.get("x-business-use-case-usage")?.as_bytes()).ok()?;
        let cases = usage.as_object()?.values().filter_map(Value::as_array).flatten();
        cases.filter_map(|case| case.get("estimated_time_to_regain_access")?.as_u64()).max()
    };
    let regained = || usage().filter(|minutes| *minutes > 0).map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
    nuncio_channel_http::retry_after(headers).or_else(regained)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_sent_in_clear_text() {
        let root = "https://graph.facebook.com/v23.0";
        assert!(may_carry_token("https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1", root));
        assert!(may_carry_token("http://127.0.0.1:1/blob", "http://127.0.0.1:1/v23.0"), "like a test peer");
        for url in ["http://lookaside.fbsbx.com/1", "ftp://x.example/1", "/1", ""] {
            assert!(!may_carry_token(url, root), "{url}");
        }
    }
}
