//! From what the gateway answers to verdicts. Pure.
//!
//! Source: Kannel 1.4.5 User's Guide, table "Status codes of HTTP responses", and the texts of its smsbox.

use std::fmt;
use std::time::Duration;

use nuncio_channel::{Scope, Verdict};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::header::{HeaderMap, RETRY_AFTER};
use nuncio_net::{FetchError, Response};

/// Most characters of a text that people read.
const TEXT: usize = 300;

/// Why a call came to nothing. The texts hold no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The request never left.
    Unreachable(String),
    /// The request was written, and no answer came.
    Lost(String),
    /// Something that no gateway of this shape says.
    Garbled {
        /// HTTP status.
        status: u16,
    },
    /// It was refused.
    Refused {
        /// HTTP status.
        status: u16,
        /// In the gateway's words.
        text: String,
        /// When to come back, if it says.
        retry_after: Option<Duration>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the gateway cannot be reached: {why}"),
            Self::Lost(why) => write!(f, "the gateway gave no answer: {why}"),
            Self::Garbled { status } => write!(f, "the gateway answered {status} with something that cannot be read"),
            Self::Refused { status, text, .. } if text.is_empty() => write!(f, "the gateway answered {status}"),
            Self::Refused { status, text, .. } => write!(f, "the gateway answered {status}: {text}"),
        }
    }
}

/// Reads the answer to a call.
pub(crate) fn judge(answer: Result<Response, FetchError>, password: &str) -> Result<(), Fault> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if error.may_have_left() => return Err(Fault::Lost(error.to_string())),
        Err(error) => return Err(Fault::Unreachable(error.to_string())),
    };
    let status = answer.status.as_u16();
    let text = plain(&String::from_utf8_lossy(&answer.body), password);
    match status {
        // `0: Accepted for delivery`, `3: Queued for later delivery`, and `Sent.` where it does not wait for its queue.
        200..=299 if ["0:", "3:", "Sent"].iter().any(|head| text.starts_with(head)) => Ok(()),
        // Gateways of its shape name an id of their own here. 202 is no other answer than this.
        202 => Ok(()),
        200..=299 => Err(Fault::Garbled { status }),
        _ => Err(Fault::Refused { status, text, retry_after: retry_after(&answer.headers) }),
    }
}

/// On one line, not too long, and without the password, which some gateways repeat.
fn plain(text: &str, password: &str) -> String {
    let text = if password.is_empty() { text.to_owned() } else { text.replace(password, "***") };
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
}

/// `Retry-After` in seconds (RFC 9110 §10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    (seconds > 0).then_some(Duration::from_secs(seconds))
}

/// What became of a message that was not simply taken.
pub(crate) fn verdict(fault: &Fault) -> Verdict {
    let deferred = |code, scope, retry_after| Verdict::Deferred { retry_after, failure: failure(code, fault), scope };
    let rejected = |code| Verdict::Rejected { failure: failure(code, fault) };
    let Fault::Refused { status, text, retry_after } = fault else {
        return match fault {
            Fault::Unreachable(_) => deferred(FailureCode::Undeliverable, Scope::Connection, None),
            _ => Verdict::Unknown { failure: failure(FailureCode::UnknownOutcome, fault), refs: Vec::new() },
        };
    };
    match status {
        // The only thing besides a wrong login that Kannel answers so: no connection takes the message.
        403 if text.starts_with("Not routable") => rejected(FailureCode::Undeliverable),
        401 | 403 | 407 => deferred(FailureCode::CredentialsInvalid, Scope::Connection, *retry_after),
        429 => deferred(FailureCode::RateLimited, Scope::Connection, *retry_after),
        // Its queue is full, or it has no connection at all.
        503 | 404 | 405 | 300..=399 => deferred(FailureCode::Undeliverable, Scope::Connection, *retry_after),
        408 => deferred(FailureCode::Undeliverable, Scope::Message, *retry_after),
        500 if text.starts_with("Sending failed") => deferred(FailureCode::Undeliverable, Scope::Message, *retry_after),
        400..=499 => rejected(refusal(text)),
        _ => Verdict::Unknown { failure: failure(FailureCode::UnknownOutcome, fault), refs: Vec::new() },
    }
}

fn refusal(text: &str) -> FailureCode {
    let text = text.to_ascii_lowercase();
    if text.contains("receiver") || text.contains("denied") {
        return FailureCode::InvalidRecipient;
    }
    if text.contains("charset or body") { FailureCode::ContentRejected } else { FailureCode::ProviderRejected }
}

fn failure(code: FailureCode, fault: &Fault) -> Failure {
    let provider_code = match fault {
        Fault::Refused { status, .. } => Some(status.to_string()),
        _ => None,
    };
    Failure { code, provider_code, message: fault.to_string() }
}

/// What a check found wrong, and what to do.
pub(crate) fn advice(fault: &Fault) -> String {
    let todo = match fault {
        Fault::Refused { status: 401 | 403 | 407, .. } => {
            "check username and password, and that user-allow-ip of the gateway's group sendsms-user permits this machine"
        }
        Fault::Refused { status: 300..=399 | 404 | 405, .. } | Fault::Garbled { .. } => {
            "check url: it is the gateway's sendsms-port with the path /cgi-bin/sendsms"
        }
        Fault::Unreachable(_) => "check url, that the gateway's smsbox runs, and the way to it",
        Fault::Lost(_) | Fault::Refused { .. } => "try again; if it stays so, look into the gateway's log",
    };
    format!("{fault}. What to do: {todo}")
}

/// What a receipt says, by its type (`%d`) and the SMSC's answer (`%A`); `None` for types that are not known.
pub(crate) fn receipt(kind: &str, answer: &str) -> Option<ReceiptKind> {
    let failed = |code, what: &str| {
        let answer = plain(answer, "");
        let message = if answer.is_empty() { what.to_owned() } else { format!("{what}: {answer}") };
        Some(ReceiptKind::Failed(Failure { code, provider_code: Some(kind.to_owned()), message }))
    };
    match kind {
        "1" => Some(ReceiptKind::Delivered),
        "4" | "8" => Some(ReceiptKind::Sent),
        "2" => failed(FailureCode::Undeliverable, "it was not delivered"),
        // SMPP's status for a recipient that does not exist; its drivers write it so.
        "16" if answer.to_ascii_lowercase().contains("0x0000000b") => {
            failed(FailureCode::InvalidRecipient, "the SMSC refused the recipient")
        }
        "16" => failed(FailureCode::ProviderRejected, "the SMSC refused it"),
        "34" => failed(FailureCode::Expired, "it expired at the SMSC"),
        "66" => failed(FailureCode::Undeliverable, "the SMSC does not know what became of it"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use nuncio_net::StatusCode;

    use super::*;

    fn answered(status: u16, body: &str) -> Result<(), Fault> {
        let status = StatusCode::from_u16(status).unwrap();
        judge(Ok(Response { status, headers: HeaderMap::new(), body: body.into(), truncated: false }), "foobar")
    }

    fn short(fault: &Fault) -> (&'static str, FailureCode) {
        match verdict(fault) {
            Verdict::Deferred { failure, scope: Scope::Message, .. } => ("message", failure.code),
            Verdict::Deferred { failure, scope: Scope::Connection, .. } => ("connection", failure.code),
            Verdict::Rejected { failure } => ("rejected", failure.code),
            Verdict::Unknown { failure, .. } => ("unknown", failure.code),
            Verdict::Accepted { .. } => panic!("accepted"),
        }
    }

    #[test]
    fn what_is_taken() {
        for (status, body) in [
            (202, "0: Accepted for delivery"),
            (202, "3: Queued for later delivery"),
            (202, "Sent. Message splits: 3"),
            (200, "Sent."),
            (202, "5c1e2c36-2b1a-4d0f-9a53-6f6f9b6c1a11"),
            (202, ""),
        ] {
            assert_eq!(answered(status, body), Ok(()), "{status} {body}");
        }
        assert_eq!(answered(200, "<html>"), Err(Fault::Garbled { status: 200 }));
    }

    #[test]
    fn what_is_not() {
        use FailureCode::{
            ContentRejected, CredentialsInvalid, InvalidRecipient, ProviderRejected, RateLimited, Undeliverable, UnknownOutcome,
        };
        for (status, body, kind, code) in [
            (403, "Authorization failed for sendsms", "connection", CredentialsInvalid),
            (401, "", "connection", CredentialsInvalid),
            (403, "Not routable. Do not try again.", "rejected", Undeliverable),
            (503, "Temporal failure, try again later.", "connection", Undeliverable),
            (404, "Unknown request.", "connection", Undeliverable),
            (302, "", "connection", Undeliverable),
            (429, "", "connection", RateLimited),
            (408, "", "message", Undeliverable),
            (500, "Sending failed.", "message", Undeliverable),
            (500, "", "unknown", UnknownOutcome),
            (502, "", "unknown", UnknownOutcome),
            (504, "", "unknown", UnknownOutcome),
            (400, "Empty receiver number not allowed, rejected", "rejected", InvalidRecipient),
            (400, "Number(s) has/have been denied by white- and/or black-lists.", "rejected", InvalidRecipient),
            (400, "Charset or body misformed, rejected", "rejected", ContentRejected),
            (400, "Sender missing and no global set, rejected", "rejected", ProviderRejected),
            (200, "<html>", "unknown", UnknownOutcome),
        ] {
            let fault = answered(status, body).unwrap_err();
            assert_eq!(short(&fault), (kind, code), "{status} {body}");
            assert!(advice(&fault).contains("What to do"));
        }
        assert_eq!(short(&Fault::Unreachable("x".into())), ("connection", Undeliverable));
        assert_eq!(short(&Fault::Lost("x".into())), ("unknown", UnknownOutcome));
        assert_eq!(answered(400, "password foobar\nis bad").unwrap_err().to_string(), "the gateway answered 400: password *** is bad");
    }

    #[test]
    fn what_receipts_say() {
        assert_eq!(receipt("1", ""), Some(ReceiptKind::Delivered));
        for sent in ["4", "8"] {
            assert_eq!(receipt(sent, "ACK/"), Some(ReceiptKind::Sent));
        }
        for (kind, answer, code, text) in [
            ("2", "", FailureCode::Undeliverable, "it was not delivered"),
            ("2", "id:7 stat:UNDELIV", FailureCode::Undeliverable, "it was not delivered: id:7 stat:UNDELIV"),
            (
                "16",
                "NACK/0x0000000B/Invalid Destination Address",
                FailureCode::InvalidRecipient,
                "the SMSC refused the recipient: NACK/0x0000000B/Invalid Destination Address",
            ),
            ("16", "NACK/", FailureCode::ProviderRejected, "the SMSC refused it: NACK/"),
            ("34", "", FailureCode::Expired, "it expired at the SMSC"),
            ("66", "", FailureCode::Undeliverable, "the SMSC does not know what became of it"),
        ] {
            let failure = Failure { code, provider_code: Some(kind.to_owned()), message: text.to_owned() };
            assert_eq!(receipt(kind, answer), Some(ReceiptKind::Failed(failure)));
        }
        for unknown in ["", "0", "3", "64", "%d", "x"] {
            assert_eq!(receipt(unknown, ""), None);
        }
    }
}
