//! Maps failed requests to outcomes.

use std::fmt;
use std::time::Duration;

use nuncio_channel::{Outcome, Scope};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::{FetchError, Response};

use crate::{plain, retry_after};

/// What an error response means for the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// It was not sent; the same route may work later.
    Defer(Scope, FailureCode),
    /// It was not sent, and never will be by this route.
    Reject(FailureCode),
    /// It may have been sent.
    Unknown,
}

impl Disposition {
    /// The account does not work: nothing can be sent until the operator corrects it.
    pub const BAD_CREDENTIALS: Self = Self::Defer(Scope::Connection, FailureCode::CredentialsInvalid);
    /// The account sends too much.
    pub const RATE_LIMITED: Self = Self::Defer(Scope::Connection, FailureCode::RateLimited);

    /// By the HTTP status alone (RFC 9110 §15). 503, and statuses that say the API is elsewhere, concern the whole connection. Other 5xx
    /// leave open whether the provider acted on the request, and so does success without a body that can be read.
    pub const fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::BAD_CREDENTIALS,
            408 => Self::Defer(Scope::Message, FailureCode::Undeliverable),
            429 => Self::RATE_LIMITED,
            503 | 300..=399 | 404 | 405 => Self::Defer(Scope::Connection, FailureCode::Undeliverable),
            400..=499 => Self::Reject(FailureCode::ProviderRejected),
            _ => Self::Unknown,
        }
    }

    /// Why a message failed, for receipts. A receipt is final, so `Unknown` counts as undeliverable.
    pub const fn failure_code(self) -> FailureCode {
        match self {
            Self::Defer(_, code) | Self::Reject(code) => code,
            Self::Unknown => FailureCode::Undeliverable,
        }
    }
}

/// An error response in the provider's format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal<E = ()> {
    /// HTTP status.
    pub status: u16,
    /// The provider's own code, or the status if it has none.
    pub code: String,
    /// The provider's text for people, without secrets. Not empty.
    pub text: String,
    /// When to try again, if the provider says.
    pub retry_after: Option<Duration>,
    /// What else the adapter needs to classify it.
    pub details: E,
}

/// Why a request failed. The texts hold no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestError<E = ()> {
    /// The request was not sent.
    Unreachable(String),
    /// The request was sent, and no response arrived.
    NoResponse(String),
    /// The response is not in the provider's format.
    Unreadable {
        /// HTTP status.
        status: u16,
        /// When to try again, if the response says.
        retry_after: Option<Duration>,
    },
    /// The provider refused the request.
    Refused(Refusal<E>),
}

impl<E> fmt::Display for RequestError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the provider cannot be reached: {why}"),
            Self::NoResponse(why) => write!(f, "the provider did not respond: {why}"),
            Self::Unreadable { status, .. } => write!(f, "the provider returned status {status} with a body that cannot be read"),
            Self::Refused(Refusal { code, text, .. }) => write!(f, "the provider returned code {code}: {text}"),
        }
    }
}

impl<E> From<FetchError> for RequestError<E> {
    fn from(error: FetchError) -> Self {
        let why = plain(&error.to_string(), "");
        if error.may_have_left() { Self::NoResponse(why) } else { Self::Unreachable(why) }
    }
}

impl<E> RequestError<E> {
    /// A response that the adapter cannot read.
    pub fn unreadable(response: &Response) -> Self {
        Self::Unreadable { status: response.status.as_u16(), retry_after: retry_after(&response.headers) }
    }

    /// The provider refused the request, with its own code and its text for people, which must not hold secrets.
    pub fn refused(response: &Response, details: E, code: String, text: String) -> Self {
        let text = if text.is_empty() { "no reason given".to_owned() } else { text };
        Self::Refused(Refusal { status: response.status.as_u16(), code, text, retry_after: retry_after(&response.headers), details })
    }

    /// The refusal, if the provider sent one.
    pub const fn refusal(&self) -> Option<&Refusal<E>> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// When the provider asks to try again.
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unreachable(_) | Self::NoResponse(_) => None,
            Self::Unreadable { retry_after, .. } | Self::Refused(Refusal { retry_after, .. }) => *retry_after,
        }
    }

    /// The outcome on a message that consists of this request. `classify` knows the provider's codes; what it returns `None` for goes by
    /// the HTTP status.
    pub fn outcome(&self, classify: impl FnOnce(&Refusal<E>) -> Option<Disposition>) -> Outcome {
        self.outcome_of(match self {
            Self::Unreachable(_) => Disposition::Defer(Scope::Connection, FailureCode::Undeliverable),
            Self::NoResponse(_) => Disposition::Unknown,
            Self::Unreadable { status, .. } => Disposition::of_status(*status),
            Self::Refused(refusal) => classify(refusal).unwrap_or_else(|| Disposition::of_status(refusal.status)),
        })
    }

    /// The outcome that a disposition stands for, with this error as the failure.
    pub fn outcome_of(&self, disposition: Disposition) -> Outcome {
        match disposition {
            Disposition::Defer(scope, code) => Outcome::Deferred { retry_after: self.retry_after(), failure: self.failure(code), scope },
            Disposition::Reject(code) => Outcome::Rejected { failure: self.failure(code) },
            Disposition::Unknown => Outcome::Unknown { failure: self.failure(FailureCode::UnknownOutcome), refs: Vec::new() },
        }
    }

    /// The outcome on a message of `total` requests, of which this one failed after those in `refs`: nothing can be taken back. `alone` is
    /// the outcome if it had been the only one. If it was rejected, repeating the message would only repeat the parts before it.
    pub fn partly_sent(&self, refs: Vec<String>, total: usize, alone: Outcome) -> Outcome {
        let message = format!("{} of {total} parts were sent; then: {self}", refs.len());
        match alone {
            Outcome::Rejected { failure } => Outcome::Rejected { failure: Failure { message, ..failure } },
            _ => Outcome::Unknown { failure: Failure { message, ..self.failure(FailureCode::UnknownOutcome) }, refs },
        }
    }

    fn failure(&self, code: FailureCode) -> Failure {
        match self {
            Self::Refused(refusal) => Failure { code, provider_code: Some(refusal.code.clone()), message: refusal.text.clone() },
            _ => Failure::own(code, self.to_string()),
        }
    }

    /// The error with advice for the operator, as the check of a connection shows it: `address` if it is not an API of this kind that
    /// responds, and what `refused` says of a refusal.
    pub fn explain(&self, address: &str, refused: impl FnOnce(&Refusal<E>) -> &'static str) -> String {
        let advice = match self {
            Self::Unreachable(_) | Self::Unreadable { .. } => address,
            Self::NoResponse(_) => "try again; if it keeps failing, check this machine's network access",
            Self::Refused(refusal) => refused(refusal),
        };
        self.with_advice(advice)
    }

    /// The error with this advice.
    pub fn with_advice(&self, advice: &str) -> String {
        format!("{self}. What to do: {advice}")
    }
}

#[cfg(test)]
mod tests {
    use nuncio_channel::testing::kind_and_code;

    use super::*;

    fn refused(status: u16) -> RequestError {
        RequestError::Refused(Refusal { status, code: "7".into(), text: "no".into(), retry_after: None, details: () })
    }

    #[test]
    fn statuses() {
        use FailureCode::{CredentialsInvalid, ProviderRejected, RateLimited, Undeliverable, UnknownOutcome};
        for (status, kind, code) in [
            (200, "unknown", UnknownOutcome),
            (302, "connection", Undeliverable),
            (400, "rejected", ProviderRejected),
            (401, "connection", CredentialsInvalid),
            (403, "connection", CredentialsInvalid),
            (404, "connection", Undeliverable),
            (405, "connection", Undeliverable),
            (408, "message", Undeliverable),
            (413, "rejected", ProviderRejected),
            (429, "connection", RateLimited),
            (500, "unknown", UnknownOutcome),
            (502, "unknown", UnknownOutcome),
            (503, "connection", Undeliverable),
            (504, "unknown", UnknownOutcome),
        ] {
            assert_eq!(kind_and_code(&refused(status).outcome(|_| None)), (kind, code), "{status}");
            let unreadable: RequestError = RequestError::Unreadable { status, retry_after: None };
            assert_eq!(kind_and_code(&unreadable.outcome(|_| unreachable!("it has no code"))), (kind, code), "{status}");
        }
    }

    #[test]
    fn requests_without_a_response() {
        for (error, kind, code) in [
            (FetchError::Unreachable("x: refused".into()), "connection", FailureCode::Undeliverable),
            (FetchError::Timeout, "unknown", FailureCode::UnknownOutcome),
            (FetchError::Network("x: closed".into()), "unknown", FailureCode::UnknownOutcome),
        ] {
            assert_eq!(kind_and_code(&RequestError::<()>::from(error.clone()).outcome(|_| None)), (kind, code), "{error:?}");
        }
    }

    #[test]
    fn a_classified_refusal_keeps_code_text_and_delay() {
        let retry_after = Some(Duration::from_secs(17));
        let refusal = Refusal { status: 400, code: "20429".into(), text: "slow down".into(), retry_after, details: () };
        let failure = Failure { code: FailureCode::RateLimited, provider_code: Some("20429".into()), message: "slow down".into() };
        let wanted = Outcome::Deferred { retry_after, failure, scope: Scope::Connection };
        assert_eq!(RequestError::Refused(refusal).outcome(|_| Some(Disposition::RATE_LIMITED)), wanted);
    }

    #[test]
    fn a_message_sent_in_part_is_rejected_with_the_part_that_is_and_unknown_otherwise() {
        let error = refused(400);
        let outcome = error.partly_sent(vec!["a".into()], 2, error.outcome_of(Disposition::Reject(FailureCode::ContentRejected)));
        let Outcome::Rejected { failure } = outcome else { panic!("{outcome:?}") };
        assert_eq!((failure.code, failure.provider_code.as_deref()), (FailureCode::ContentRejected, Some("7")));
        assert!(failure.message.starts_with("1 of 2 parts were sent; then: "), "{}", failure.message);
        for error in [refused(429), RequestError::NoResponse("x".into()), RequestError::Unreachable("x".into())] {
            let alone = error.outcome(|_| None);
            let Outcome::Unknown { failure, refs } = error.partly_sent(vec!["a".into()], 2, alone) else { panic!("{error:?}") };
            assert_eq!((failure.code, refs), (FailureCode::UnknownOutcome, vec!["a".to_owned()]));
            assert!(failure.message.starts_with("1 of 2 parts were sent; then: "), "{}", failure.message);
            assert_eq!(failure.provider_code.as_deref(), error.refusal().map(|_| "7"));
        }
    }
}
