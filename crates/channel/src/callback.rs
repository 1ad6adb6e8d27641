//! What providers post to `/providers/{kind}/{connectionId}`.

use http::HeaderMap;
use nuncio_domain::Timestamp;

use crate::ProviderEvent;

/// One call of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The whole URL as the provider called it, by the server's public address: some sign it.
    pub url: &'a str,
    /// What stands behind the connection's address, without a slash at its start; usually nothing.
    pub rest: &'a str,
    /// The query as sent, without `?`.
    pub query: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// The body as sent, byte by byte: signatures are of these bytes.
    pub body: &'a [u8],
    /// When it came.
    pub now: Timestamp,
}

/// What a call told, and what to answer when that is on disk.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Told {
    /// In the order told.
    pub events: Vec<ProviderEvent>,
    /// The answer.
    pub answer: Answer,
}

/// An answer to a provider, with status 200.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// The type of the body; `""` for none.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

/// Why a call is refused. Nothing of it is kept.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// This kind of provider is never called back. 404.
    #[error("this provider posts nothing")]
    NotCalled,
    /// It is not proved that the provider calls. 401, with a text that names no secret.
    #[error("{0}")]
    Unproved(String),
    /// It cannot be read. 400; providers post it again, and it is logged.
    #[error("{0}")]
    Malformed(String),
}
