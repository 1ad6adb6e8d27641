//! Calls of the Graph API, and how they end.
//!
//! Source: <https://developers.facebook.com/docs/graph-api/guides/error-handling>

use std::fmt;
use std::time::Duration;

use nuncio_net::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use nuncio_net::{Client, FetchError, FetchLimits, Method, Network, Response, Url};
use serde::Deserialize;
use serde_json::Value;

use crate::Access;

/// Answers are short; media are limited by who asks for them.
const ANSWER_BYTES: u64 = 1 << 20;
/// Most characters of a text that people read.
const TEXT: usize = 500;

/// What the Graph API says is wrong.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct GraphError {
    /// What decides.
    #[serde(default)]
    pub code: i64,
    /// Tells cases of a code apart.
    #[serde(default)]
    pub error_subcode: Option<i64>,
    /// What happened.
    #[serde(default)]
    pub message: String,
    /// A title, in statuses.
    #[serde(default)]
    pub title: String,
    /// What to tell people, where it differs.
    #[serde(default)]
    pub error_user_msg: Option<String>,
    /// More words.
    #[serde(default)]
    pub error_data: Option<ErrorData>,
    /// Whether trying again may help.
    #[serde(default)]
    pub is_transient: bool,
}

/// The details of an error.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
pub struct ErrorData {
    /// In words.
    #[serde(default)]
    pub details: Option<String>,
}

impl GraphError {
    /// What happened, for people, without `secret`: some messages repeat the token.
    pub fn text(&self, secret: &str) -> String {
        let details = self.error_data.as_ref().and_then(|data| data.details.as_deref()).or(self.error_user_msg.as_deref());
        let head = if self.message.is_empty() { &self.title } else { &self.message };
        let text = match details {
            Some(details) if !head.contains(details) => format!("{head}: {details}"),
            _ => head.clone(),
        };
        plain(&if secret.is_empty() { text } else { text.replace(secret, "***") })
    }
}

/// On one line, and not too long.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
}

/// Why a call came to nothing. The texts hold no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The request never left.
    Unreachable(String),
    /// The request was written, and no answer came.
    Lost(String),
    /// The answer cannot be read; `status` is that of HTTP.
    Garbled {
        /// HTTP status.
        status: u16,
        /// When to come back, if it says.
        retry_after: Option<Duration>,
    },
    /// An error as the Graph API tells it.
    Refused {
        /// HTTP status.
        status: u16,
        /// The error.
        error: Box<GraphError>,
        /// Its text, for people.
        text: String,
        /// When to come back, if it says.
        retry_after: Option<Duration>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the Graph API cannot be reached: {why}"),
            Self::Lost(why) => write!(f, "the Graph API gave no answer: {why}"),
            Self::Garbled { status, .. } => write!(f, "the Graph API answered {status} with something that cannot be read"),
            Self::Refused { error, text, .. } => write!(f, "Meta says (code {}): {text}", error.code),
        }
    }
}

/// A body to send.
#[derive(Debug)]
pub enum Body {
    /// None.
    Empty,
    /// JSON.
    Json(Value),
    /// Anything, of this type.
    Bytes(String, Vec<u8>),
}

/// The Graph API, as one account reaches it. Never prints the token.
pub struct Graph {
    client: Client,
    access: Access,
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.access.fmt(f)
    }
}

impl Graph {
    /// The API for this account.
    pub fn new(net: &Network, access: Access) -> Self {
        Self { client: net.client(access.trusted).clone(), access }
    }

    /// Gets `path`, which begins without a slash and may have a query.
    pub async fn get(&self, path: &str) -> Result<Value, Fault> {
        self.call(Method::GET, path, HeaderMap::new(), Body::Empty).await
    }

    /// Posts JSON to `path`.
    pub async fn post(&self, path: &str, body: Value) -> Result<Value, Fault> {
        self.call(Method::POST, path, HeaderMap::new(), Body::Json(body)).await
    }

    /// Makes one call and reads the JSON that it answers.
    pub async fn call(&self, method: Method, path: &str, headers: HeaderMap, body: Body) -> Result<Value, Fault> {
        let url = format!("{}/{path}", self.access.root);
        let answer = self.send(method, &url, headers, body, ANSWER_BYTES).await?;
        self.read(&answer)
    }

    /// Gets the file at a URL that the API named. At most `most` bytes are read.
    pub async fn download(&self, url: &str, most: u64) -> Result<Response, Fault> {
        if !may_carry_token(url, &self.access.root) {
            return Err(Fault::Unreachable("the address of the media is not https".to_owned()));
        }
        let answer = self.send(Method::GET, url, HeaderMap::new(), Body::Empty, most).await?;
        if answer.status.is_success() { Ok(answer) } else { Err(self.refusal(&answer)) }
    }

    async fn send(&self, method: Method, url: &str, mut headers: HeaderMap, body: Body, most: u64) -> Result<Response, Fault> {
        let mut token = HeaderValue::from_str(&format!("Bearer {}", self.access.token.expose()))
            .map_err(|_| Fault::Unreachable("the access token cannot stand in a header".to_owned()))?;
        token.set_sensitive(true);
        headers.insert(AUTHORIZATION, token);
        let (content_type, bytes) = match body {
            Body::Empty => (None, Vec::new()),
            Body::Json(value) => (Some("application/json".to_owned()), value.to_string().into_bytes()),
            Body::Bytes(content_type, bytes) => (Some(content_type), bytes),
        };
        if let Some(content_type) = content_type.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert(CONTENT_TYPE, content_type);
        }
        let limits = FetchLimits { max_bytes: most, timeout: self.access.timeout };
        self.client.request(method, url, headers, bytes, limits).await.map_err(fault)
    }

    fn read(&self, answer: &Response) -> Result<Value, Fault> {
        let value: Option<Value> = serde_json::from_slice(&answer.body).ok().filter(Value::is_object);
        match value {
            // An error may come with any status.
            Some(value) if answer.status.is_success() && value.get("error").is_none() => Ok(value),
            _ => Err(self.refusal(answer)),
        }
    }

    fn refusal(&self, answer: &Response) -> Fault {
        #[derive(Deserialize)]
        struct Wrapped {
            error: Box<GraphError>,
        }
        let (status, retry_after) = (answer.status.as_u16(), retry_after(&answer.headers));
        match serde_json::from_slice::<Wrapped>(&answer.body) {
            Ok(Wrapped { error }) => Fault::Refused { status, text: error.text(self.access.token.expose()), error, retry_after },
            Err(_) => Fault::Garbled { status, retry_after },
        }
    }
}

/// Whether the token may go along to `url`: never in clear text, unless the API itself is spoken to so.
fn may_carry_token(url: &str, root: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || root.starts_with("http:"))
}

fn fault(error: FetchError) -> Fault {
    let why = plain(&error.to_string());
    if error.may_have_left() { Fault::Lost(why) } else { Fault::Unreachable(why) }
}

/// When to come back: by `Retry-After` in seconds (RFC 9110 §10.2.3), or in the minutes of the business use case that is used up
/// (<https://developers.facebook.com/docs/graph-api/overview/rate-limiting>).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let usage = || -> Option<u64> {
        let usage: Value = serde_json::from_slice(headers.get("x-business-use-case-usage")?.as_bytes()).ok()?;
        let cases = usage.as_object()?.values().filter_map(Value::as_array).flatten();
        cases.filter_map(|case| case.get("estimated_time_to_regain_access")?.as_u64()).max()
    };
    seconds.or_else(|| usage().map(|minutes| minutes.saturating_mul(60))).filter(|s| *s > 0).map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_does_not_go_out_in_clear_text() {
        let root = "https://graph.facebook.com/v23.0";
        assert!(may_carry_token("https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1", root));
        assert!(may_carry_token("http://127.0.0.1:1/blob", "http://127.0.0.1:1/v23.0"), "as a test peer is");
        for url in ["http://lookaside.fbsbx.com/1", "ftp://x.example/1", "/1", ""] {
            assert!(!may_carry_token(url, root), "{url}");
        }
    }
}
