//! Maps errors of the Graph API to outcomes and failures, as far as all channels share them. Pure.
//!
//! Codes: <https://developers.facebook.com/docs/graph-api/guides/error-handling>,
//! <https://developers.facebook.com/docs/graph-api/overview/rate-limiting>

use nuncio_channel::{Outcome, Scope};
use nuncio_channel_http::{Disposition, Refusal};
use nuncio_domain::message::{Failure, FailureCode};

use crate::graph::{GraphError, RequestError};

/// What a channel's own error codes mean; takes precedence over the codes of all channels. `None` for unknown codes.
pub type Classify = fn(&GraphError) -> Option<Disposition>;

/// Codes that mean the same on every channel.
const fn common(error: &GraphError) -> Option<Disposition> {
    Some(match error.code {
        0 | 3 | 10 | 190 | 200..=299 | 368 => Disposition::BAD_CREDENTIALS,
        4 | 17 | 32 | 613 => Disposition::RATE_LIMITED,
        // The limits of the business use cases: pages, Instagram, Messenger, WhatsApp.
        80_001 | 80_002 | 80_006..=80_008 => Disposition::RATE_LIMITED,
        // "Received invalid JSON reply": Meta documents that the messages were sent.
        1 if matches!(error.error_subcode, Some(1_357_046)) => Disposition::Unknown,
        1 | 2 => Disposition::Defer(Scope::Message, FailureCode::Undeliverable),
        100 => Disposition::Reject(FailureCode::ContentRejected),
        _ => return None,
    })
}

fn classify(status: u16, error: &GraphError, own: Classify) -> Disposition {
    let later = Disposition::Defer(Scope::Message, FailureCode::Undeliverable);
    match (own(error).or_else(|| common(error)), status) {
        (Some(Disposition::Reject(_)) | None, _) if error.is_transient => later,
        (Some(disposition), _) => disposition,
        (None, 401 | 403) => Disposition::BAD_CREDENTIALS,
        (None, 429) => Disposition::RATE_LIMITED,
        (None, 500..=599) => later,
        (None, _) => Disposition::Reject(FailureCode::ProviderRejected),
    }
}

/// The outcome on a message whose request failed.
pub fn outcome(error: &RequestError, own: Classify) -> Outcome {
    error.outcome(|refusal| Some(classify(refusal.status, &refusal.details, own)))
}

/// The same for a request that can be repeated because nobody sees its effect, such as an upload: no outcome is unknown.
pub fn repeatable(error: &RequestError, own: Classify) -> Outcome {
    match outcome(error, own) {
        Outcome::Unknown { failure, .. } => {
            let failure = Failure { code: FailureCode::Undeliverable, ..failure };
            Outcome::Deferred { retry_after: error.retry_after(), failure, scope: Scope::Message }
        }
        outcome => outcome,
    }
}

/// Why a callback reports a message as failed.
pub fn failed(error: Box<GraphError>, own: Classify) -> Failure {
    let code = classify(0, &error, own).failure_code();
    let Refusal { code: provider_code, text, .. } = error.refusal(0, None, "");
    Failure { code, provider_code: Some(provider_code), message: text }
}

/// A failed check, with advice for the operator; `refused` gives that on an error code.
pub fn advice(error: &RequestError, refused: fn(i64) -> &'static str) -> String {
    error.explain("check base_url, api_version and this machine's network access", |refusal| refused(refusal.details.code))
}

/// Why a request that is not a message failed.
pub fn failure(error: &RequestError, own: Classify) -> Failure {
    match repeatable(error, own) {
        Outcome::Deferred { failure, .. } | Outcome::Rejected { failure } | Outcome::Unknown { failure, .. } => failure,
        Outcome::Accepted { .. } => Failure::own(FailureCode::Internal, error.to_string()),
    }
}
