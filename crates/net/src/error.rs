//! Errors of HTTP requests.

use std::error::Error;
use std::io;

use rustls::CertificateError;

use crate::guard::Refused;

/// Why a request failed.
///
/// Neither `Display` nor `Debug` shows credentials, paths, queries or headers: a path can contain a token too (some provider APIs and
/// webhook receivers).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// Not an absolute URL.
    #[error("the URL cannot be read: {0}")]
    InvalidUrl(#[from] url::ParseError),
    /// The policy forbids the URL, the address behind it, or a redirect it led to.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A fetch ended with a status other than 200. A redirect without a readable target, or
    /// beyond the limit of redirects, ends with its own 3xx status.
    #[error("the server answered with status {0}")]
    Status(u16),
    /// The body is compressed, although the request did not offer that.
    #[error("the server compressed the body (Content-Encoding: {0:?}), which it was not asked to; it must be sent as it is")]
    Encoded(String),
    /// The body is longer than the limit, in bytes.
    #[error("the body is longer than {limit} bytes")]
    TooLarge { limit: u64 },
    /// No connection, or no complete response, in time.
    #[error("the server did not answer in time")]
    Timeout,
    /// Resolving, connecting or TLS failed: the request was not sent. Names the host and the cause.
    #[error("{0}")]
    Unreachable(String),
    /// The HTTP exchange failed. Names the host and the cause.
    #[error("{0}")]
    Network(String),
}

impl FetchError {
    /// Returns whether the same request can succeed later: timeouts, network failures, and the statuses 408, 429 and 5xx.
    ///
    /// The server may already have processed the request.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Timeout | Self::Unreachable(_) | Self::Network(_) => true,
            Self::Status(status) => matches!(status, 408 | 429 | 500..=599),
            Self::InvalidUrl(_) | Self::Refused(_) | Self::Encoded(_) | Self::TooLarge { .. } => false,
        }
    }

    /// Returns whether the request may have been sent, so that the server may have processed it.
    #[must_use]
    pub fn may_have_left(&self) -> bool {
        !matches!(self, Self::InvalidUrl(_) | Self::Refused(_) | Self::Unreachable(_))
    }

    pub(crate) fn from_exchange(host: &str, error: reqwest::Error) -> Self {
        // Removes the URL: the error would print it in full.
        let error = error.without_url();
        let (timed_out, connecting) = (error.is_timeout(), error.is_connect());
        let mut cause: &dyn Error = &error;
        loop {
            if let Some(refused) = cause.downcast_ref::<Refused>() {
                return Self::Refused(refused.clone());
            }
            match cause.source() {
                Some(deeper) => cause = deeper,
                None if connecting => return Self::Unreachable(format!("{host}: {}", in_words(cause))),
                None if timed_out => return Self::Timeout,
                None => return Self::Network(format!("{host}: {cause}")),
            }
        }
    }
}

/// Returns a cause in words, also where the library names only the value of an enumeration.
fn in_words(cause: &(dyn Error + 'static)) -> String {
    match tls_error(cause) {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "its TLS certificate, or one between it and its root, is from no authority that this server trusts".to_owned()
        }
        // The verifier's own errors have no variant; this one means that the certificate is its own authority.
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(other))) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its TLS certificate is self-signed".to_owned()
        }
        _ => explained(&cause.to_string()),
    }
}

/// Returns the error of TLS in a cause: errors of sockets wrap it, also more than once.
fn tls_error<'a>(cause: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match cause.downcast_ref::<io::Error>() {
        Some(error) => tls_error(error.get_ref()?),
        None => cause.downcast_ref(),
    }
}

/// Explains what an error of the TLS library means, if its words do not say it.
#[must_use]
pub fn explained(why: &str) -> String {
    if why.contains("InvalidContentType") { "it does not speak TLS; use http://".to_owned() } else { why.to_owned() }
}

/// The HTTP client could not be set up, for example because the system has no root certificates.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the HTTP client")]
pub struct SetupError(#[source] pub(crate) reqwest::Error);
