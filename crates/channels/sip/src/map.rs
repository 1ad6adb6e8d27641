//! From the outcome of a call to an outcome. Pure.
//!
//! Sources: RFC 3261 §21 (status codes), RFC 8197 and RFC 8688 (607, 608), RFC 3326 with ITU-T Q.850 (causes).

use std::time::Duration;

use nuncio_channel::{Outcome, Scope};
use nuncio_domain::message::{Failure, FailureCode};

/// Delay before calling a busy line again.
const BUSY: Duration = Duration::from_secs(120);
/// Delay before calling again after no answer: ringing again at once would be a nuisance.
const NO_ANSWER: Duration = Duration::from_secs(600);

/// A final response to an INVITE other than success.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Refusal {
    /// Status code, 300 to 699.
    pub(crate) status: u16,
    /// Why, in the network's numbers (Q.850).
    pub(crate) cause: Option<u8>,
    /// Delay requested by the trunk.
    pub(crate) retry_after: Option<Duration>,
    /// Whether it requests a login of an unsupported kind.
    pub(crate) is_unsupported: bool,
}

/// The cause of a header `Reason: Q.850;cause=17;text="User busy"`.
pub(crate) fn cause(reason: &str) -> Option<u8> {
    let mut parts = reason.split(';').map(str::trim);
    parts.next().filter(|protocol| protocol.eq_ignore_ascii_case("Q.850"))?;
    parts.find_map(|part| part.strip_prefix("cause=")?.trim().parse().ok())
}

/// The seconds of a header `Retry-After: 120 (overload);duration=60`. Zero counts as none: calling again at once would not end.
pub(crate) fn retry_after(value: &str) -> Option<Duration> {
    let digits = value.trim().split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().map(Duration::from_secs).filter(|wait| !wait.is_zero())
}

/// Class of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Busy,
    NoAnswer,
    Declined,
    BadNumber,
    Refused,
    Credit,
    Trouble,
}

/// Causes that are more specific than the status that gateways map them to (RFC 3398 §7.2.4.1).
const fn by_cause(cause: u8) -> Option<Class> {
    Some(match cause {
        1 | 22 | 28 => Class::BadNumber,
        17 => Class::Busy,
        18..=20 => Class::NoAnswer,
        21 => Class::Declined,
        27 | 31 | 34 | 38 | 41 | 42 | 44 | 47 => Class::Trouble,
        _ => return None,
    })
}

const fn by_status(status: u16) -> Class {
    match status {
        486 | 600 => Class::Busy,
        408 | 480 | 487 => Class::NoAnswer,
        603 | 607 | 608 => Class::Declined,
        404 | 410 | 416 | 484 | 485 | 604 => Class::BadNumber,
        402 => Class::Credit,
        500 | 502..=504 | 580 | 491 => Class::Trouble,
        _ => Class::Refused,
    }
}

/// The outcome on a call that the trunk did not put through. 401, 407 and, if `login_refused`, 403 concern the login.
pub(crate) fn refused(refusal: &Refusal, login_refused: bool) -> Outcome {
    let Refusal { status, cause, retry_after, is_unsupported } = refusal;
    let failure = |code, text: String| {
        let provider_code = cause.map_or_else(|| status.to_string(), |cause| format!("{status} Q.850 {cause}"));
        Failure { code, provider_code: Some(provider_code), message: text }
    };
    let later = |code, text: &str, wait: Option<Duration>, scope| Outcome::Deferred {
        retry_after: retry_after.or(wait),
        failure: failure(code, text.to_owned()),
        scope,
    };
    let never = |code, text: String| Outcome::Rejected { failure: failure(code, text) };
    if matches!(status, 401 | 407) || (*status == 403 && login_refused) {
        let text = if *is_unsupported {
            "the trunk requests a login of an unsupported kind: have it accept digest with MD5, or this server's address allowed"
        } else {
            "the trunk refuses the login: correct username and password, or have this server's address allowed"
        };
        return Outcome::Deferred {
            retry_after: None,
            failure: failure(FailureCode::CredentialsInvalid, text.to_owned()),
            scope: Scope::Connection,
        };
    }
    if *status == 503 && retry_after.is_some() {
        return later(FailureCode::RateLimited, "the trunk has too much to do", None, Scope::Connection);
    }
    match cause.and_then(by_cause).unwrap_or_else(|| by_status(*status)) {
        Class::Busy => later(FailureCode::Undeliverable, "the line is busy", Some(BUSY), Scope::Message),
        Class::NoAnswer => later(FailureCode::Undeliverable, "the call was not answered", Some(NO_ANSWER), Scope::Message),
        Class::Declined => never(FailureCode::Undeliverable, "the call was declined".to_owned()),
        Class::BadNumber => never(FailureCode::InvalidRecipient, "the trunk knows no such number".to_owned()),
        Class::Credit => later(FailureCode::Undeliverable, "the account has no credit left", None, Scope::Connection),
        Class::Trouble => later(FailureCode::Undeliverable, "the trunk could not put the call through", None, Scope::Message),
        Class::Refused if *status == 403 => {
            never(FailureCode::ProviderRejected, "the trunk forbids this call: the number called, or the one that calls".to_owned())
        }
        Class::Refused if *status < 400 => {
            never(FailureCode::ProviderRejected, "the trunk sends the call elsewhere, which is not followed".to_owned())
        }
        Class::Refused => never(FailureCode::ProviderRejected, format!("the trunk refused the call with status {status}")),
    }
}

/// Returns the outcome on a call that was not answered in time. It has the status of a cancelled call: the trunk responded.
pub(crate) fn rang_out(seconds: u64) -> Outcome {
    let message = format!("the call was not answered within {seconds} seconds");
    let failure = Failure { code: FailureCode::Undeliverable, provider_code: Some("487".to_owned()), message };
    Outcome::Deferred { retry_after: Some(NO_ANSWER), failure, scope: Scope::Message }
}

/// Returns the outcome on a call that was answered in vain.
pub(crate) fn answered(code: FailureCode, why: String) -> Outcome {
    Outcome::Rejected { failure: Failure { code, provider_code: Some("200".to_owned()), message: why } }
}

/// Returns the outcome on an unanswered call at the end of the session: the server stops, or the connection changed.
pub(crate) fn stopped() -> Outcome {
    let failure = Failure::own(FailureCode::Undeliverable, "the session ended before the call was answered");
    Outcome::Deferred { retry_after: None, failure, scope: Scope::Message }
}

/// Returns the outcome on a call that may have been answered.
pub(crate) fn unknown(why: &str) -> Outcome {
    Outcome::Unknown { failure: Failure::own(FailureCode::UnknownOutcome, why), refs: Vec::new() }
}

/// The outcome on a call that was not begun, for a reason that concerns all calls.
pub(crate) fn unreachable(why: impl Into<String>) -> Outcome {
    Outcome::Deferred { retry_after: None, failure: Failure::own(FailureCode::Undeliverable, why), scope: Scope::Connection }
}

/// The outcome on a message that this channel or recipient will never get.
pub(crate) fn rejected(code: FailureCode, why: impl Into<String>) -> Outcome {
    Outcome::Rejected { failure: Failure::own(code, why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(outcome: &Outcome) -> (&'static str, &str, Option<u64>, Option<&str>) {
        let (kind, wait, failure) = match outcome {
            Outcome::Deferred { retry_after, failure, scope: Scope::Message } => ("later", retry_after, failure),
            Outcome::Deferred { retry_after, failure, scope: Scope::Connection } => ("all later", retry_after, failure),
            Outcome::Rejected { failure } => ("never", &None, failure),
            other => panic!("{other:?}"),
        };
        (kind, failure.code.as_str(), wait.map(|w| w.as_secs()), failure.provider_code.as_deref())
    }

    #[test]
    fn statuses_and_causes() {
        for (status, cause, wait, wanted) in [
            (486, None, None, ("later", "undeliverable", Some(120), "486")),
            (600, None, None, ("later", "undeliverable", Some(120), "600")),
            (486, None, Some(30), ("later", "undeliverable", Some(30), "486")),
            (480, None, None, ("later", "undeliverable", Some(600), "480")),
            (408, None, None, ("later", "undeliverable", Some(600), "408")),
            (487, None, None, ("later", "undeliverable", Some(600), "487")),
            (480, Some(17), None, ("later", "undeliverable", Some(120), "480 Q.850 17")),
            (480, Some(1), None, ("never", "invalid_recipient", None, "480 Q.850 1")),
            (403, Some(21), None, ("never", "undeliverable", None, "403 Q.850 21")),
            (404, Some(34), None, ("later", "undeliverable", None, "404 Q.850 34")),
            (500, Some(16), None, ("later", "undeliverable", None, "500 Q.850 16")),
            (603, None, None, ("never", "undeliverable", None, "603")),
            (607, None, None, ("never", "undeliverable", None, "607")),
            (404, None, None, ("never", "invalid_recipient", None, "404")),
            (410, None, None, ("never", "invalid_recipient", None, "410")),
            (484, None, None, ("never", "invalid_recipient", None, "484")),
            (604, None, None, ("never", "invalid_recipient", None, "604")),
            (402, None, None, ("all later", "undeliverable", None, "402")),
            (403, None, None, ("never", "provider_rejected", None, "403")),
            (302, None, None, ("never", "provider_rejected", None, "302")),
            (488, None, None, ("never", "provider_rejected", None, "488")),
            (606, None, None, ("never", "provider_rejected", None, "606")),
            (401, None, None, ("all later", "credentials_invalid", None, "401")),
            (407, None, None, ("all later", "credentials_invalid", None, "407")),
            (500, None, None, ("later", "undeliverable", None, "500")),
            (503, None, None, ("later", "undeliverable", None, "503")),
            (503, None, Some(7), ("all later", "rate_limited", Some(7), "503")),
            (504, None, None, ("later", "undeliverable", None, "504")),
        ] {
            let refusal = Refusal { status, cause, retry_after: wait.map(Duration::from_secs), is_unsupported: false };
            let (kind, code, after, provider) = wanted;
            assert_eq!(short(&refused(&refusal, false)), (kind, code, after, Some(provider)), "{refusal:?}");
        }
        let forbidden = Refusal { status: 403, ..Refusal::default() };
        assert_eq!(short(&refused(&forbidden, true)), ("all later", "credentials_invalid", None, Some("403")));
    }

    #[test]
    fn headers() {
        assert_eq!(cause("Q.850;cause=17;text=\"User busy\""), Some(17));
        assert_eq!(cause("q.850 ; text=\"x\" ; cause=1"), Some(1));
        assert_eq!(cause("SIP;cause=200"), None);
        assert_eq!(cause("Q.850;cause=999"), None);
        assert_eq!(retry_after("120 (I'm in a meeting)"), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("18000;duration=3600"), Some(Duration::from_secs(18_000)));
        assert_eq!(retry_after("soon"), None);
        assert_eq!(retry_after("0"), None);
    }
}
