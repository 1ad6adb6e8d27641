//! Callbacks: what providers post to `/providers/{kind}/{connectionId}`.

use http::HeaderMap;
use nuncio_domain::Timestamp;

use crate::ProviderEvent;

/// One HTTP request of a provider.
#[derive(Clone, Copy, Debug)]
pub struct CallbackRequest<'a> {
    /// HTTP method, in capitals.
    pub method: &'a str,
    /// The whole URL as the provider called it, with the server's public address: some providers sign it.
    pub url: &'a str,
    /// The path after the connection's callback URL, without its leading slash; usually empty.
    pub rest: &'a str,
    /// The query as sent, without `?`.
    pub query: &'a str,
    /// HTTP headers.
    pub headers: &'a HeaderMap,
    /// The body as sent: signatures cover these bytes.
    pub body: &'a [u8],
    /// When it was received.
    pub now: Timestamp,
}

impl<'a> CallbackRequest<'a> {
    /// Returns a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// Events from a callback, and the reply to send once they are stored.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ParsedCallback {
    /// The events, in the order reported.
    pub events: Vec<ProviderEvent>,
    pub reply: CallbackReply,
}

impl<T: IntoIterator<Item = ProviderEvent>> From<T> for ParsedCallback {
    /// With an empty reply.
    fn from(events: T) -> Self {
        Self { events: events.into_iter().collect(), reply: CallbackReply::default() }
    }
}

/// The reply to a callback, with status 200.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallbackReply {
    /// `Content-Type`; `""` for none.
    pub content_type: &'static str,
    pub body: String,
}

/// Why a callback is rejected. Nothing of it is stored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// This kind of provider has no callbacks. 404.
    #[error("this provider has no callbacks")]
    NotCalled,
    /// The caller is not verified to be the provider. 401, with a text that shows no secret.
    #[error("{0}")]
    Unproved(String),
    /// It cannot be read. 400; it is logged, and the provider sends it again.
    #[error("{0}")]
    Malformed(String),
}

impl CallError {
    /// The caller is not verified, for this reason.
    pub fn unproved(why: impl Into<String>) -> Self {
        Self::Unproved(why.into())
    }

    /// The callback cannot be read, for this reason.
    pub fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed(why.into())
    }
}
