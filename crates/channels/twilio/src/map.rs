//! Maps the provider's responses and reports to outcomes and receipts. Pure.
//!
//! Codes: <https://www.twilio.com/docs/api/errors>

use nuncio_channel::Scope;
use nuncio_channel_http::{Disposition, SendError, plain};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::Response;
use serde::Deserialize;
use serde_json::Value;

pub(crate) fn read(response: &Response, token: &str) -> Result<Value, SendError> {
    #[derive(Deserialize)]
    struct Error {
        code: u32,
        #[serde(default)]
        message: String,
    }
    if response.status.is_success() {
        let value = serde_json::from_slice(&response.body).ok().filter(Value::is_object);
        return value.ok_or_else(|| SendError::unreadable(response));
    }
    let Ok(Error { code, message }) = serde_json::from_slice(&response.body) else { return Err(SendError::unreadable(response)) };
    let disposition = known(code).map(|(disposition, _)| disposition);
    Err(SendError::refused(response, disposition, code.to_string(), words(code, &message, token)))
}

/// Reads the response to a message or a call: its SID.
pub(crate) fn sent(response: &Response, token: &str) -> Result<Vec<String>, SendError> {
    let message = read(response, token)?;
    match message.get("sid").and_then(Value::as_str).filter(|sid| !sid.is_empty()) {
        Some(sid) => Ok(vec![sid.to_owned()]),
        None => Err(SendError::unreadable(response)),
    }
}

/// The provider's text, or what is known of the code.
fn words(code: u32, text: &str, token: &str) -> String {
    match (plain(text, token), known(code)) {
        (text, Some((_, words))) if text.is_empty() => words.to_owned(),
        (text, None) if text.is_empty() => format!("see https://www.twilio.com/docs/api/errors/{code}"),
        (text, _) => text,
    }
}

/// What an error code means, and its text where the provider sends only the code.
const fn known(code: u32) -> Option<(Disposition, &'static str)> {
    use Disposition::{Defer, Reject};
    use FailureCode as Code;
    Some(match code {
        10_001 | 20_005 | 30_002 => (Disposition::BAD_CREDENTIALS, "the account is not active"),
        20_003 | 20_006 | 20_404 => {
            (Disposition::BAD_CREDENTIALS, "the account_sid or the auth_token is wrong, or lacks permission for this")
        }
        10_004 => (Disposition::RATE_LIMITED, "too many calls at once"),
        14_107 | 20_429 | 30_022 | 51_002 => (Disposition::RATE_LIMITED, "the account exceeds its sending limit"),
        21_611 | 30_001 => (Disposition::RATE_LIMITED, "the sender's queue is full"),
        20_503 => (Defer(Scope::Connection, Code::Undeliverable), "the provider is unavailable"),
        13_223 | 13_224 | 21_211 | 21_217 | 21_421 => (Reject(Code::InvalidRecipient), "the number is not valid"),
        21_614 => (Reject(Code::InvalidRecipient), "the number is not a mobile phone"),
        30_005 => (Reject(Code::InvalidRecipient), "the number is unknown, or no longer in use"),
        21_610 => (Reject(Code::RecipientSuppressed), "the recipient opted out at the provider"),
        30_004 => (Reject(Code::BlockedByRecipient), "the recipient cannot or does not want to receive messages"),
        30_003 => (Reject(Code::Undeliverable), "the phone is off, out of reach, or cannot receive messages"),
        30_006 => (Reject(Code::Undeliverable), "the number is a landline, or its carrier cannot be reached"),
        21_612 => (Reject(Code::Undeliverable), "the sender cannot reach this recipient"),
        30_008 | 30_009 | 30_010 | 30_410 => (Reject(Code::Undeliverable), "it was not delivered, for an unknown reason"),
        30_036 => (Reject(Code::Expired), "its validity ended before it could be delivered"),
        21_617 | 21_605 => (Reject(Code::ContentRejected), "the text is too long"),
        21_602 | 21_619 => (Reject(Code::ContentRejected), "there is nothing to send"),
        30_007 => (Reject(Code::ContentRejected), "it was filtered as spam"),
        12_100 | 12_200 | 13_512 => (Reject(Code::ContentRejected), "the TwiML was refused"),
        11_751 | 21_620 | 21_623 | 30_019 => (Reject(Code::AttachmentUnavailable), "the media could not be fetched, or are too large"),
        13_227 | 21_215 | 21_408 => (Reject(Code::ProviderRejected), "this country is not permitted: see geo permissions in the console"),
        21_608 | 21_219 => (Reject(Code::ProviderRejected), "a trial account can reach verified numbers only"),
        21_210 | 21_212 | 21_603 | 21_606 | 21_659 | 21_660 => {
            (Reject(Code::ProviderRejected), "the sender does not belong to the account")
        }
        21_703 | 21_705 => (Reject(Code::ProviderRejected), "the messaging service has no sender, or does not exist"),
        30_032 | 30_034 | 30_035 => (Reject(Code::ProviderRejected), "the sender is not registered with the carriers"),
        _ => return None,
    })
}

/// A failed check, with advice for the operator.
pub(crate) fn advice(error: &SendError) -> String {
    error.explain("check base_url, account_sid and this machine's network access", |refusal| {
        match refusal.details.unwrap_or_else(|| Disposition::of_status(refusal.status)) {
            Disposition::BAD_CREDENTIALS => {
                "check account_sid and auth_token against the first page of the provider's console, and that the account is active"
            }
            _ => "look the code up at https://www.twilio.com/docs/api/errors",
        }
    })
}

/// Maps the status of a message to a receipt; `None` for an unknown status.
pub(crate) fn message_status(status: &str, error: &str, text: &str) -> Option<ReceiptKind> {
    match status {
        "accepted" | "scheduled" | "queued" | "sending" | "sent" => Some(ReceiptKind::Sent),
        "delivered" => Some(ReceiptKind::Delivered),
        "read" => Some(ReceiptKind::Read),
        "canceled" => Some(ReceiptKind::Failed(reported(FailureCode::ProviderRejected, status, "it was cancelled at the provider"))),
        "undelivered" | "failed" => Some(ReceiptKind::Failed(match error.parse() {
            Ok(number) => {
                let code = known(number).map_or(FailureCode::Undeliverable, |(disposition, _)| disposition.failure_code());
                Failure { code, provider_code: Some(error.to_owned()), message: words(number, text, "") }
            }
            Err(_) => reported(FailureCode::Undeliverable, status, "the provider gives no reason"),
        })),
        _ => None,
    }
}

/// The failure that a status stands for.
pub(crate) fn reported(code: FailureCode, status: &str, what: &str) -> Failure {
    Failure { code, provider_code: Some(status.to_owned()), message: what.to_owned() }
}

#[cfg(test)]
#[path = "map_tests.rs"]
mod tests;
