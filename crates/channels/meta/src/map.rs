//! From what the Graph API answers to verdicts and failures, as far as it is the same for all channels. Pure.
//!
//! Codes: <https://developers.facebook.com/docs/graph-api/guides/error-handling>,
//! <https://developers.facebook.com/docs/graph-api/overview/rate-limiting>

use nuncio_channel::{Scope, Verdict};
use nuncio_domain::message::{Failure, FailureCode};

use crate::graph::{Fault, GraphError};

/// What to do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Come back later.
    Later(Scope, FailureCode),
    /// Do not come back.
    Never(FailureCode),
    /// Nobody can tell whether it was carried out.
    Unsure,
}

/// The account's own fault: nothing goes out until somebody corrects it.
pub const STOP: Class = Class::Later(Scope::Connection, FailureCode::CredentialsInvalid);

/// The class of an error by a channel's own list, which goes before the list of all; `None` for what it does not hold.
pub type Classify = fn(&GraphError) -> Option<Class>;

/// Codes that mean the same wherever they come.
const fn common(error: &GraphError) -> Option<Class> {
    Some(match error.code {
        0 | 3 | 10 | 190 | 200..=299 | 368 => STOP,
        4 | 17 | 32 | 613 | 80_007 => Class::Later(Scope::Connection, FailureCode::RateLimited),
        // "Received invalid JSON reply": Meta says that the messages were sent.
        1 if matches!(error.error_subcode, Some(1_357_046)) => Class::Unsure,
        1 | 2 => Class::Later(Scope::Message, FailureCode::Undeliverable),
        100 => Class::Never(FailureCode::ContentRejected),
        _ => return None,
    })
}

/// What to do about an error, and about one that no list knows.
fn judge(status: u16, error: &GraphError, own: Classify) -> Class {
    match (own(error).or_else(|| common(error)), status) {
        (Some(Class::Never(_)) | None, _) if error.is_transient => Class::Later(Scope::Message, FailureCode::Undeliverable),
        (Some(class), _) => class,
        (None, 401 | 403) => STOP,
        (None, 429) => Class::Later(Scope::Connection, FailureCode::RateLimited),
        (None, 500..=599) => Class::Later(Scope::Message, FailureCode::Undeliverable),
        (None, _) => Class::Never(FailureCode::ProviderRejected),
    }
}

/// The same for an answer that is no error of the Graph API, from something in between. `None` when the call may have been carried out.
const fn judge_status(status: u16) -> Option<Class> {
    match status {
        200..=299 | 500..=502 | 504..=599 => None,
        401 | 403 => Some(STOP),
        408 => Some(Class::Later(Scope::Message, FailureCode::Undeliverable)),
        429 => Some(Class::Later(Scope::Connection, FailureCode::RateLimited)),
        503 | 300..=399 | 404 | 405 => Some(Class::Later(Scope::Connection, FailureCode::Undeliverable)),
        _ => Some(Class::Never(FailureCode::ProviderRejected)),
    }
}

/// What became of a call that came to nothing. `harmless`: nobody would have seen anything of it, so that it may be made again.
pub fn verdict(fault: &Fault, harmless: bool, own: Classify) -> Verdict {
    let plainly = |code| Failure::own(code, fault.to_string());
    let (class, refusal, retry_after) = match fault {
        Fault::Unreachable(_) => (Some(Class::Later(Scope::Connection, FailureCode::Undeliverable)), None, None),
        Fault::Lost(_) => (None, None, None),
        Fault::Garbled { status, retry_after } => (judge_status(*status), None, *retry_after),
        Fault::Refused { status, error, text, retry_after } => (Some(judge(*status, error, own)), Some((error, text)), *retry_after),
    };
    let tell = |code| refusal.map_or_else(|| plainly(code), |(error, text)| told(code, error, text));
    match class {
        Some(Class::Later(scope, code)) => Verdict::Deferred { retry_after, failure: tell(code), scope },
        Some(Class::Never(code)) => Verdict::Rejected { failure: tell(code) },
        None | Some(Class::Unsure) if harmless => {
            Verdict::Deferred { retry_after, failure: plainly(FailureCode::Undeliverable), scope: Scope::Message }
        }
        None | Some(Class::Unsure) => Verdict::Unknown { failure: plainly(FailureCode::UnknownOutcome), refs: Vec::new() },
    }
}

fn told(code: FailureCode, error: &GraphError, text: &str) -> Failure {
    let message = if text.trim().is_empty() { format!("Meta gives no reason for code {}", error.code) } else { text.to_owned() };
    Failure { code, provider_code: Some(error.code.to_string()), message }
}

/// Why a callback says that a message failed.
pub fn failed(error: &GraphError, own: Classify) -> Failure {
    let code = match judge(0, error, own) {
        Class::Later(_, code) | Class::Never(code) => code,
        Class::Unsure => FailureCode::Undeliverable,
    };
    told(code, error, &error.text(""))
}

/// Why a call that is no message came to nothing.
pub fn failure(fault: &Fault, own: Classify) -> Failure {
    match verdict(fault, true, own) {
        Verdict::Deferred { failure, .. } | Verdict::Rejected { failure } | Verdict::Unknown { failure, .. } => failure,
        Verdict::Accepted { .. } => Failure::own(FailureCode::Internal, fault.to_string()),
    }
}
