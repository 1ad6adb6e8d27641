//! From what the provider answers and reports to verdicts and failures. Pure.
//!
//! Codes: <https://www.twilio.com/docs/api/errors>

use std::fmt;
use std::time::Duration;

use nuncio_channel::{Scope, Verdict};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::header::{HeaderMap, RETRY_AFTER};
use nuncio_net::{FetchError, Response};
use serde::Deserialize;
use serde_json::Value;

/// Most characters of a text that people read.
const TEXT: usize = 500;

/// Why a call came to nothing. The texts hold no secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The request never left.
    Unreachable(String),
    /// The request was written, and no answer came.
    Lost(String),
    /// The answer cannot be read.
    Garbled {
        /// HTTP status.
        status: u16,
        /// When to come back, if it says.
        retry_after: Option<Duration>,
    },
    /// An error as the API tells it.
    Refused {
        /// HTTP status.
        status: u16,
        /// What decides.
        code: u32,
        /// What happened.
        text: String,
        /// When to come back, if it says.
        retry_after: Option<Duration>,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the provider cannot be reached: {why}"),
            Self::Lost(why) => write!(f, "the provider gave no answer: {why}"),
            Self::Garbled { status, .. } => write!(f, "the provider answered {status} with something that cannot be read"),
            Self::Refused { code, text, .. } => write!(f, "the provider says (code {code}): {text}"),
        }
    }
}

/// A call that failed in the network.
pub(crate) fn fault(error: &FetchError) -> Fault {
    if error.may_have_left() { Fault::Lost(error.to_string()) } else { Fault::Unreachable(error.to_string()) }
}

/// Reads an answer.
pub(crate) fn read(answer: &Response, token: &str) -> Result<Value, Fault> {
    #[derive(Deserialize)]
    struct Refusal {
        code: u32,
        #[serde(default)]
        message: String,
    }
    let (status, retry_after) = (answer.status.as_u16(), retry_after(&answer.headers));
    if answer.status.is_success() {
        let value = serde_json::from_slice(&answer.body).ok().filter(Value::is_object);
        return value.ok_or(Fault::Garbled { status, retry_after });
    }
    match serde_json::from_slice::<Refusal>(&answer.body) {
        Ok(Refusal { code, message }) => Err(Fault::Refused { status, code, text: plain(&message, token), retry_after }),
        Err(_) => Err(Fault::Garbled { status, retry_after }),
    }
}

/// On one line, not too long, and without the token.
fn plain(text: &str, token: &str) -> String {
    let text = if token.is_empty() { text.to_owned() } else { text.replace(token, "***") };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
}

/// `Retry-After` in seconds (RFC 9110 §10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    (seconds > 0).then_some(Duration::from_secs(seconds))
}

/// What to do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    /// Come back later.
    Later(Scope, FailureCode),
    /// Do not come back.
    Never(FailureCode),
}

/// The account's own fault: nothing goes out until somebody corrects it.
const STOP: Class = Class::Later(Scope::Connection, FailureCode::CredentialsInvalid);

/// What an error is about, and what it says in words, for callbacks that only name its number.
const fn known(code: u32) -> Option<(Class, &'static str)> {
    use FailureCode as Code;
    Some(match code {
        10_001 | 20_005 | 30_002 => (STOP, "the account is not active"),
        20_003 | 20_006 | 20_404 => (STOP, "the account_sid or the auth_token is wrong, or may not do this"),
        10_004 => (Class::Later(Scope::Connection, Code::RateLimited), "too many calls at once"),
        14_107 | 20_429 | 30_022 | 51_002 => (Class::Later(Scope::Connection, Code::RateLimited), "more than the account may send"),
        21_611 | 30_001 => (Class::Later(Scope::Connection, Code::RateLimited), "the sender's queue is full"),
        20_503 => (Class::Later(Scope::Connection, Code::Undeliverable), "the provider has trouble of its own"),
        13_223 | 13_224 | 21_211 | 21_217 | 21_421 => (Class::Never(Code::InvalidRecipient), "the number is not valid"),
        21_614 => (Class::Never(Code::InvalidRecipient), "the number is no mobile phone"),
        30_005 => (Class::Never(Code::InvalidRecipient), "the number is unknown, or not in use any more"),
        21_610 => (Class::Never(Code::RecipientSuppressed), "the recipient told the provider to stop"),
        30_004 => (Class::Never(Code::BlockedByRecipient), "the recipient cannot or does not want to receive messages"),
        30_003 => (Class::Never(Code::Undeliverable), "the phone is off, out of reach, or cannot receive messages"),
        30_006 => (Class::Never(Code::Undeliverable), "the number is a landline, or its carrier cannot be reached"),
        21_612 => (Class::Never(Code::Undeliverable), "the sender cannot reach this recipient"),
        30_008 | 30_009 | 30_010 | 30_410 => (Class::Never(Code::Undeliverable), "it was lost on the way, for a reason that is not known"),
        30_036 => (Class::Never(Code::Expired), "its validity ended before it could be delivered"),
        21_617 | 21_605 => (Class::Never(Code::ContentRejected), "the text is too long"),
        21_602 | 21_619 => (Class::Never(Code::ContentRejected), "there is nothing to send"),
        30_007 => (Class::Never(Code::ContentRejected), "it was taken for spam"),
        12_100 | 12_200 | 13_512 => (Class::Never(Code::ContentRejected), "the TwiML was refused"),
        11_751 | 21_620 | 21_623 | 30_019 => {
            (Class::Never(Code::AttachmentUnavailable), "the media could not be fetched, or are too large")
        }
        13_227 | 21_215 | 21_408 => {
            (Class::Never(Code::ProviderRejected), "this country is not permitted: see geo permissions in the console")
        }
        21_608 | 21_219 => (Class::Never(Code::ProviderRejected), "a trial account reaches verified numbers only"),
        21_210 | 21_212 | 21_603 | 21_606 | 21_659 | 21_660 => (Class::Never(Code::ProviderRejected), "the sender is not the account's"),
        21_703 | 21_705 => (Class::Never(Code::ProviderRejected), "the messaging service has no sender, or does not exist"),
        30_032 | 30_034 | 30_035 => (Class::Never(Code::ProviderRejected), "the sender is not registered with the carriers"),
        _ => return None,
    })
}

/// What to do about an answer; `None` when the call may have been carried out.
const fn judge(status: u16, code: Option<u32>) -> Option<Class> {
    if let Some(code) = code
        && let Some((class, _)) = known(code)
    {
        return Some(class);
    }
    match status {
        401 | 403 => Some(STOP),
        429 => Some(Class::Later(Scope::Connection, FailureCode::RateLimited)),
        503 | 300..=399 | 404 | 405 => Some(Class::Later(Scope::Connection, FailureCode::Undeliverable)),
        408 => Some(Class::Later(Scope::Message, FailureCode::Undeliverable)),
        400..=499 => Some(Class::Never(FailureCode::ProviderRejected)),
        _ => None,
    }
}

/// What became of a message, by the answer to it.
pub(crate) fn sent(answer: Result<Value, Fault>) -> Verdict {
    let fault = match answer {
        Ok(answer) => match answer.get("sid").and_then(Value::as_str).filter(|sid| !sid.is_empty()) {
            Some(sid) => return Verdict::Accepted { refs: vec![sid.to_owned()], cost: None },
            None => Fault::Garbled { status: 201, retry_after: None },
        },
        Err(fault) => fault,
    };
    let own = |code| Failure::own(code, fault.to_string());
    let (class, retry_after) = match &fault {
        Fault::Unreachable(_) => (Some(Class::Later(Scope::Connection, FailureCode::Undeliverable)), None),
        Fault::Lost(_) => (None, None),
        Fault::Garbled { status, retry_after } => (judge(*status, None), *retry_after),
        Fault::Refused { status, code, retry_after, .. } => (judge(*status, Some(*code)), *retry_after),
    };
    let told = |failure_code| match &fault {
        Fault::Refused { code, text, .. } => failure(failure_code, *code, text),
        _ => own(failure_code),
    };
    match class {
        Some(Class::Later(scope, code)) => Verdict::Deferred { retry_after, failure: told(code), scope },
        Some(Class::Never(code)) => Verdict::Rejected { failure: told(code) },
        None => Verdict::Unknown { failure: own(FailureCode::UnknownOutcome), refs: Vec::new() },
    }
}

fn failure(code: FailureCode, number: u32, text: &str) -> Failure {
    let message = match (text.trim(), known(number)) {
        ("", Some((_, words))) => words.to_owned(),
        ("", None) => format!("see https://www.twilio.com/docs/api/errors/{number}"),
        (text, _) => text.to_owned(),
    };
    Failure { code, provider_code: Some(number.to_string()), message }
}

/// What a check found wrong, and what to do.
pub(crate) fn advice(fault: &Fault) -> String {
    let todo = match fault {
        Fault::Refused { status, code, .. } if judge(*status, Some(*code)) == Some(STOP) => {
            "check account_sid and auth_token against the first page of the provider's console, and that the account is active"
        }
        Fault::Unreachable(_) | Fault::Garbled { .. } => "check base_url, account_sid, and the way out of this machine",
        Fault::Lost(_) => "try again; if it stays so, check the way out of this machine",
        Fault::Refused { .. } => "look the code up at https://www.twilio.com/docs/api/errors",
    };
    format!("{fault}. What to do: {todo}")
}

/// What the status of a message says; `None` for one that is not known.
pub(crate) fn message_status(status: &str, error: &str, text: &str) -> Option<ReceiptKind> {
    match status {
        "accepted" | "scheduled" | "queued" | "sending" | "sent" => Some(ReceiptKind::Sent),
        "delivered" => Some(ReceiptKind::Delivered),
        "read" => Some(ReceiptKind::Read),
        "canceled" => Some(ReceiptKind::Failed(reported(FailureCode::ProviderRejected, status, "it was cancelled at the provider"))),
        "undelivered" | "failed" => Some(ReceiptKind::Failed(match error.parse() {
            Ok(number) => {
                let code = match known(number) {
                    Some((Class::Later(_, code) | Class::Never(code), _)) => code,
                    None => FailureCode::Undeliverable,
                };
                failure(code, number, &plain(text, ""))
            }
            Err(_) => reported(FailureCode::Undeliverable, status, "the provider gives no reason"),
        })),
        _ => None,
    }
}

/// What the status of a call says, and the answer of the other side (SIP, RFC 3261 §21); `None` for one that is not known.
pub(crate) fn call_status(status: &str, sip: &str) -> Option<ReceiptKind> {
    let failed = |code, what| Some(ReceiptKind::Failed(reported(code, status, what)));
    match (status, sip) {
        ("queued" | "initiated" | "ringing" | "in-progress", _) => Some(ReceiptKind::Sent),
        ("completed", _) => Some(ReceiptKind::Delivered),
        ("busy", _) => failed(FailureCode::Undeliverable, "the line was busy"),
        ("no-answer", _) => failed(FailureCode::Undeliverable, "nobody answered"),
        ("canceled", _) => failed(FailureCode::ProviderRejected, "the call was cancelled at the provider"),
        ("failed", "404" | "410" | "484" | "604") => failed(FailureCode::InvalidRecipient, "the number does not exist"),
        ("failed", _) => failed(FailureCode::Undeliverable, "the call could not be put through"),
        _ => None,
    }
}

fn reported(code: FailureCode, status: &str, what: &str) -> Failure {
    Failure { code, provider_code: Some(status.to_owned()), message: what.to_owned() }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
