//! What adapters of HTTP providers share: accounts and their settings, how a request can fail and what that means for the message,
//! parameters and proofs of callbacks, and common headers and bodies.
//!
//! It has no kind of its own. An adapter adds its requests, its error codes and its callbacks.

mod adapter;
mod callback;
mod endpoint;
mod error;
mod multipart;
#[cfg(feature = "testing")]
pub mod testing;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_channel::ResolvedAttachment;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use nuncio_net::{Client, FetchLimits};

pub use adapter::{MessageApi, SendError, adapter};
pub use callback::{Parameters, is_secret, mac, unix_seconds};
pub use endpoint::{Endpoint, Request, from, timeout_seconds, window};
pub use error::{Disposition, Refusal, RequestError};
pub use multipart::{FilePart, multipart};

/// Most characters kept of a provider's text.
const TEXT: usize = 500;

/// A provider's text for people: on one line, at most 500 characters, with `secret` replaced. Providers repeat what they were sent.
pub fn plain(text: &str, secret: &str) -> String {
    let text = if secret.is_empty() { text.to_owned() } else { text.replace(secret, "***") };
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
}

/// `Retry-After` in seconds (RFC 9110 §10.2.3). `None` for dates and for 0.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    (seconds > 0).then_some(Duration::from_secs(seconds))
}

/// `Authorization: Basic` (RFC 7617), which logs do not show.
pub fn basic(username: &str, password: &str) -> HeaderValue {
    let login = STANDARD.encode(format!("{username}:{password}"));
    let mut value = HeaderValue::from_str(&format!("Basic {login}")).unwrap_or_else(|_| unreachable!("base64 is ASCII"));
    value.set_sensitive(true);
    value
}

/// `Authorization: Bearer` (RFC 6750), which logs do not show. `None` if the token has characters that a header cannot carry.
pub fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A file named by the end of the URL or path it came from.
pub fn attachment(location: &str, content_type: Option<String>, bytes: Vec<u8>) -> ResolvedAttachment {
    let filename = location.rsplit('/').next().unwrap_or_default().to_owned();
    let content_type = content_type.unwrap_or_else(|| "application/octet-stream".to_owned());
    ResolvedAttachment { filename, content_type, content_id: None, bytes }
}

/// Why media of an inbound message cannot be fetched.
pub fn unavailable(why: impl ToString) -> Failure {
    Failure::own(FailureCode::AttachmentUnavailable, why.to_string())
}

/// Fetches media that need no credentials; at most `most` bytes.
pub async fn fetch(client: &Client, url: &str, most: usize, timeout: Duration) -> Result<ResolvedAttachment, Failure> {
    let limits = FetchLimits { max_bytes: u64::try_from(most).unwrap_or(u64::MAX), timeout };
    let file = client.fetch(url, limits).await.map_err(unavailable)?;
    Ok(attachment(url, file.content_type, file.bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_one_line_without_secrets() {
        assert_eq!(plain(" password foobar\nis bad ", "foobar"), "password *** is bad");
        assert_eq!(plain(&"é".repeat(900), "").chars().count(), TEXT);
    }

    #[test]
    fn retry_after_is_in_seconds() {
        for (value, wanted) in [("17", Some(17)), (" 3 ", Some(3)), ("0", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(retry_after(&headers), wanted.map(Duration::from_secs), "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn credentials_are_sensitive() {
        let value = basic("Aladdin", "open sesame");
        assert_eq!(value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(value.is_sensitive() && bearer("t").is_some_and(|value| value.is_sensitive() && value == "Bearer t"));
        assert_eq!(bearer("a\nb"), None);
    }
}
