//! Calls the Bot API: JSON or `multipart/form-data` posted to `/bot<token>/<method>`.
//! <https://core.telegram.org/bots/api#making-requests>

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use nuncio_channel_http::{FilePart, multipart};
use nuncio_domain::Redacted;
use nuncio_net::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use nuncio_net::{Client, FetchError, FetchLimits, Fetched, Method, Response, Url};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::Config;
use crate::map::{RequestError, refusal};
use crate::wire::ApiResponse;

/// Longest response that is read, in bytes. A hundred updates of the greatest length are shorter.
const RESPONSE_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ApiCall<'a> {
    pub(crate) method: &'static str,
    pub(crate) parameters: Map<String, Value>,
    /// A file to upload with it.
    pub(crate) file: Option<File<'a>>,
}

/// A file to upload.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct File<'a> {
    /// The parameter that it is the value of.
    pub(crate) parameter: &'static str,
    pub(crate) name: Cow<'a, str>,
    /// MIME type; empty if unknown.
    pub(crate) content_type: Cow<'a, str>,
    pub(crate) source: Source<'a>,
}

/// Where the bytes of a file are.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Source<'a> {
    Bytes(Cow<'a, [u8]>),
    /// A URL that a caller gave.
    Url(&'a str),
}

impl ApiCall<'_> {
    /// A call without a file. `parameters` must be an object.
    pub(crate) fn new(method: &'static str, parameters: Value) -> Self {
        let Value::Object(parameters) = parameters else { unreachable!("the parameters of {method} are an object") };
        Self { method, parameters, file: None }
    }
}

/// The Bot API with one bot's token.
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

    /// Makes a call that Telegram responds to at once. Its file, if any, must be [`Source::Bytes`].
    pub(crate) async fn call<T: DeserializeOwned>(&self, call: &ApiCall<'_>) -> Result<T, RequestError> {
        self.call_waiting(call, Duration::ZERO).await
    }

    /// Makes a call that Telegram can keep open for `open`.
    pub(crate) async fn call_waiting<T: DeserializeOwned>(&self, call: &ApiCall<'_>, open: Duration) -> Result<T, RequestError> {
        let url = format!("{}/bot{}/{}", self.base_url, self.token.expose(), call.method);
        let (content_type, body) = encode(call);
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type)]);
        let limits = FetchLimits { max_bytes: RESPONSE_BYTES, timeout: self.timeout + open };
        let response = self.client.request(Method::POST, &url, headers, body, limits).await?;
        self.read(&response)
    }

    fn read<T: DeserializeOwned>(&self, response: &Response) -> Result<T, RequestError> {
        match serde_json::from_slice(&response.body) {
            Ok(ApiResponse { ok: true, result: Some(result), .. }) => Ok(result),
            Ok(ApiResponse { ok: false, error_code: Some(code), description, parameters, .. }) => {
                // A proxy may quote the URL, which contains the token.
                let description = description.replace(self.token.expose().as_str(), "***");
                let retry_after = parameters.retry_after.filter(|seconds| *seconds > 0).map(Duration::from_secs);
                Err(RequestError::Refused(refusal(code, &description, retry_after, parameters.migrate_to_chat_id)))
            }
            _ => Err(RequestError::unreadable(response)),
        }
    }

    /// Downloads a file by the path that `getFile` returned: <https://core.telegram.org/bots/api#getfile>.
    pub(crate) async fn download(&self, path: &str, most: u64) -> Result<Fetched, FetchError> {
        let mut url = Url::parse(&format!("{}/file/bot{}/", self.base_url, self.token.expose()))?;
        if let Ok(mut segments) = url.path_segments_mut() {
            // Segments are escaped, so the path cannot contain `..` or a query.
            segments.pop_if_empty().extend(path.split('/').filter(|part| !part.is_empty()));
        }
        self.client.fetch(url.as_str(), FetchLimits { max_bytes: most, timeout: self.timeout }).await
    }
}

fn encode(call: &ApiCall<'_>) -> (HeaderValue, Vec<u8>) {
    let Some(file) = &call.file else {
        let body = serde_json::to_vec(&call.parameters).expect("JSON objects can be serialized");
        return (HeaderValue::from_static("application/json"), body);
    };
    let Source::Bytes(bytes) = &file.source else { unreachable!("the file was not fetched") };
    let text = |value: &'_ Value| value.as_str().map_or_else(|| Cow::Owned(value.to_string()), |text| Cow::Owned(text.to_owned()));
    let fields: Vec<_> = call.parameters.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
    let part = FilePart { field: file.parameter, filename: &file.name, content_type: &file.content_type, bytes };
    let (content_type, body) = multipart(&fields, part);
    (HeaderValue::from_str(&content_type).expect("a boundary is hexadecimal"), body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_has_all_parameters_as_text() {
        let source = Source::Bytes(b"x".into());
        let file = File { parameter: "photo", name: "a.png".into(), content_type: "image/png".into(), source };
        let call =
            ApiCall { file: Some(file), ..ApiCall::new("sendPhoto", json!({"chat_id": 5, "caption": "Hi", "reply_markup": {"a": [1]}})) };
        let (content_type, body) = encode(&call);
        assert!(content_type.to_str().unwrap().starts_with("multipart/form-data; boundary="));
        let body = String::from_utf8(body).unwrap();
        for (name, value) in [("caption", "Hi"), ("chat_id", "5"), ("reply_markup", "{\"a\":[1]}")] {
            assert!(body.contains(&format!("name=\"{name}\"\r\n\r\n{value}\r\n")), "{body}");
        }
        assert!(body.contains("name=\"photo\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\nx\r\n"), "{body}");
    }
}
