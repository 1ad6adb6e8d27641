//! Calls of the Bot API: JSON or `multipart/form-data` posted to `/bot<token>/<method>`.
//! <https://core.telegram.org/bots/api#making-requests>

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use nuncio_domain::Redacted;
use nuncio_net::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use nuncio_net::{Client, FetchError, FetchLimits, Fetched, Method, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::Config;
use crate::wire::{Answer, Parameters};

/// The longest answer that is read, in bytes. A hundred updates with the longest texts and their formatting stay below it.
const LONGEST_ANSWER: u64 = 16 * 1024 * 1024;

/// One call.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Call<'a> {
    /// The method's name.
    pub(crate) method: &'static str,
    /// Its parameters.
    pub(crate) parameters: Map<String, Value>,
    /// A file that goes along.
    pub(crate) file: Option<File<'a>>,
}

/// A file that is uploaded.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct File<'a> {
    /// The parameter that it is.
    pub(crate) parameter: &'static str,
    /// Its name.
    pub(crate) name: Cow<'a, str>,
    /// Its type; that of any bytes when none is known.
    pub(crate) content_type: Cow<'a, str>,
    /// Where its bytes are.
    pub(crate) source: Source<'a>,
}

/// Where the bytes of a file are.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Source<'a> {
    /// Here.
    Bytes(Cow<'a, [u8]>),
    /// Behind a URL that a caller gave.
    Url(&'a str),
}

impl Call<'_> {
    /// A call without a file. `parameters` is an object.
    pub(crate) fn new(method: &'static str, parameters: Value) -> Self {
        let Value::Object(parameters) = parameters else { unreachable!("the parameters of {method} are an object") };
        Self { method, parameters, file: None }
    }
}

/// Why a call gave no result.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Fault {
    /// It never left.
    Unsent(String),
    /// It left, and no whole answer came.
    Lost(String),
    /// The Bot API refused it.
    Refused(Refusal),
    /// What answered is no Bot API, or not as it should be.
    Garbled {
        /// The status of the answer.
        status: u16,
    },
    /// The file that should go along could not be fetched.
    NoFile {
        /// Why.
        why: String,
        /// Whether it may be there later.
        later: bool,
    },
}

/// What the Bot API says when it refuses.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Refusal {
    /// `error_code`, which follows HTTP.
    pub(crate) code: u16,
    /// For people; without the token.
    pub(crate) description: String,
    /// When to come back.
    pub(crate) retry_after: Option<Duration>,
    /// The new id of a group that became a supergroup.
    pub(crate) moved_to: Option<i64>,
}

/// A bot's way to the Bot API.
pub(crate) struct Api {
    client: Client,
    base_url: String,
    token: Redacted<String>,
    timeout: Duration,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api").field("base_url", &self.base_url).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Api {
    pub(crate) fn new(config: &Config, client: Client) -> Self {
        Self { client, base_url: config.base_url.clone(), token: config.token.clone(), timeout: config.timeout }
    }

    /// Makes a call that is answered at once. Its file, if any, must be [`Source::Bytes`].
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<T, Fault> {
        self.call_waiting(call, Duration::ZERO).await
    }

    /// Makes a call that Telegram may keep open for so long.
    pub(crate) async fn call_waiting<T: DeserializeOwned>(&self, call: &Call<'_>, open: Duration) -> Result<T, Fault> {
        let url = format!("{}/bot{}/{}", self.base_url, self.token.expose(), call.method);
        let (content_type, body) = encode(call);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type)]);
        let limits = FetchLimits { max_bytes: LONGEST_ANSWER, timeout: self.timeout + open };
        let response = self.client.request(Method::POST, &url, headers, body, limits).await.map_err(fault)?;
        self.read(&response)
    }

    fn read<T: DeserializeOwned>(&self, response: &Response) -> Result<T, Fault> {
        let garbled = Fault::Garbled { status: response.status.as_u16() };
        let Ok(answer) = serde_json::from_slice::<Answer<T>>(&response.body) else { return Err(garbled) };
        match answer {
            Answer { ok: true, result: Some(result), .. } => Ok(result),
            Answer {
                ok: false, error_code: Some(code), description, parameters: Parameters { retry_after, migrate_to_chat_id }, ..
            } => {
                Err(Fault::Refused(Refusal {
                    code,
                    // Whoever stands in for Telegram may repeat the URL.
                    description: description.replace(self.token.expose().as_str(), "***"),
                    retry_after: retry_after.map(Duration::from_secs),
                    moved_to: migrate_to_chat_id,
                }))
            }
            _ => Err(garbled),
        }
    }

    /// Downloads a file by the path that `getFile` told: <https://core.telegram.org/bots/api#getfile>.
    pub(crate) async fn download(&self, path: &str, most: u64) -> Result<Fetched, FetchError> {
        let mut url = Url::parse(&format!("{}/file/bot{}/", self.base_url, self.token.expose()))?;
        if let Ok(mut segments) = url.path_segments_mut() {
            // Neither `..` nor a query can come of it.
            segments.pop_if_empty().extend(path.split('/').filter(|part| !part.is_empty()));
        }
        self.client.fetch(url.as_str(), FetchLimits { max_bytes: most, timeout: self.timeout }).await
    }
}

fn fault(error: FetchError) -> Fault {
    if error.may_have_left() { Fault::Lost(error.to_string()) } else { Fault::Unsent(error.to_string()) }
}

fn encode(call: &Call<'_>) -> (HeaderValue, Vec<u8>) {
    let Some(file) = &call.file else {
        let body = serde_json::to_vec(&call.parameters).expect("JSON with names for keys can be written");
        return (HeaderValue::from_static("application/json"), body);
    };
    let bytes = match &file.source {
        Source::Bytes(bytes) => bytes,
        Source::Url(_) => unreachable!("the file was not fetched"),
    };
    let boundary = boundary(bytes);
    let mut body = Vec::with_capacity(bytes.len() + 2_048);
    for (name, value) in &call.parameters {
        let text = value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed);
        body.extend_from_slice(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n").as_bytes());
    }
    let (parameter, name, content_type) = (file.parameter, quotable(&file.name), plain(&file.content_type));
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{parameter}\"; filename=\"{name}\"\r\nContent-Type: {content_type}\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    let content_type = HeaderValue::from_str(&format!("multipart/form-data; boundary={boundary}"));
    (content_type.expect("hexadecimal digits may stand in a header"), body)
}

/// A line that does not stand in the content, the same whenever the same content is sent.
fn boundary(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    // The content would have to hold its own hash.
    format!("nuncio{}", hex::encode(&sha2::Sha256::digest(bytes)[..16]))
}

/// A file name as it may stand between quotes in a header (RFC 7578 §4.2, WHATWG's form encoding).
fn quotable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || matches!(c, '"' | '\\' | '/') { '_' } else { c }).collect()
}

fn plain(content_type: &str) -> &str {
    let good = content_type.contains('/') && content_type.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    if good { content_type } else { "application/octet-stream" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn upload(name: &'static str, content_type: &'static str, bytes: &'static [u8]) -> Call<'static> {
        let file = File { parameter: "photo", name: name.into(), content_type: content_type.into(), source: Source::Bytes(bytes.into()) };
        Call { file: Some(file), ..Call::new("sendPhoto", json!({"chat_id": 5, "caption": "Hi", "reply_markup": {"a": [1]}})) }
    }

    #[test]
    fn a_form_as_a_whole() {
        let (content_type, body) = encode(&upload("a.png", "image/png", b"\r\n--x"));
        let boundary = content_type.to_str().unwrap().strip_prefix("multipart/form-data; boundary=").unwrap().to_owned();
        let expected = [
            "--B\r\nContent-Disposition: form-data; name=\"caption\"\r\n\r\nHi\r\n",
            "--B\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n5\r\n",
            "--B\r\nContent-Disposition: form-data; name=\"reply_markup\"\r\n\r\n{\"a\":[1]}\r\n",
            "--B\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\r\n--x\r\n",
            "--B--\r\n",
        ];
        assert_eq!(String::from_utf8(body).unwrap(), expected.concat().replace("--B", &format!("--{boundary}")));
    }

    #[test]
    fn no_name_and_no_type_can_add_a_header() {
        let (_, body) = encode(&upload("a\"\r\nX-Evil: 1\r\n\r\nb/../c", "image/png\r\nX-Evil: 1", b""));
        let body = String::from_utf8(body).unwrap();
        assert!(!body.contains("\nX-Evil") && body.contains("Content-Type: application/octet-stream\r\n"), "{body}");
        assert!(body.contains("filename=\"a___X-Evil: 1____b_.._c\""), "{body}");
    }

    #[test]
    fn what_left_and_what_did_not() {
        assert!(matches!(fault(FetchError::Unreachable("x: refused".into())), Fault::Unsent(_)));
        assert!(matches!(fault(FetchError::Timeout), Fault::Lost(_)));
        assert!(matches!(fault(FetchError::Network("x: closed".into())), Fault::Lost(_)));
    }
}
