//! Maps responses of the Graph API to outcomes and failures. Pure.
//!
//! Codes: <https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes>

use std::time::Duration;

use nuncio_channel::{Outcome, ProfileError, Scope};
use nuncio_channel_http::{Disposition, Refusal};
use nuncio_channel_meta::{GraphError, RequestError};
use nuncio_domain::message::{Failure, FailureCode};
use serde_json::Value;

/// Pause for a recipient who was sent too many messages in a row (131056): Meta allows one every six seconds.
const PAIR_PAUSE: Duration = Duration::from_secs(6);
/// A successful response that lacks the id it must have.
pub(crate) const NO_ID: RequestError = RequestError::Unreadable { status: 200, retry_after: None };

/// WhatsApp's own codes.
const fn class(error: &GraphError) -> Option<Disposition> {
    use FailureCode as Code;
    Some(match error.code {
        // "Object does not exist or permissions are missing": the account's ids or its token.
        100 if matches!(error.error_subcode, Some(33)) => Disposition::BAD_CREDENTIALS,
        131_005 | 131_031 | 131_037 | 131_042 | 131_045 | 133_010 => Disposition::BAD_CREDENTIALS,
        130_429 | 131_048 | 131_064 => Disposition::RATE_LIMITED,
        131_056 => Disposition::Defer(Scope::Message, Code::RateLimited),
        131_000 => Disposition::Defer(Scope::Message, Code::Undeliverable),
        131_016 | 131_057 => Disposition::Defer(Scope::Connection, Code::Undeliverable),
        131_021 | 131_030 => Disposition::Reject(Code::InvalidRecipient),
        131_026 | 131_049 | 130_472 => Disposition::Reject(Code::Undeliverable),
        131_050 => Disposition::Reject(Code::BlockedByRecipient),
        131_047 => Disposition::Reject(Code::WindowClosed),
        131_052 | 131_053 => Disposition::Reject(Code::AttachmentUnavailable),
        131_008 | 131_009 | 131_051 | 132_000..=132_999 => Disposition::Reject(Code::ContentRejected),
        130_497 | 135_000 => Disposition::Reject(Code::ProviderRejected),
        _ => return None,
    })
}

/// The outcome on a message, by the response to it.
pub(crate) fn sent(response: Result<Value, RequestError>) -> Outcome {
    let error = match response {
        Ok(body) => match body.pointer("/messages/0/id").and_then(Value::as_str) {
            Some(id) => return Outcome::Accepted { refs: vec![id.to_owned()], cost: None },
            None => NO_ID,
        },
        Err(error) => error,
    };
    paused(nuncio_channel_meta::outcome(&error, class), &error)
}

/// The outcome on a message whose media could not be uploaded: the message itself was not sent.
pub(crate) fn not_uploaded(error: &RequestError) -> Outcome {
    paused(nuncio_channel_meta::repeatable(error, class), error)
}

fn paused(mut outcome: Outcome, error: &RequestError) -> Outcome {
    if let (Outcome::Deferred { retry_after, .. }, RequestError::Refused(Refusal { details, .. })) = (&mut outcome, error)
        && details.code == 131_056
    {
        retry_after.get_or_insert(PAIR_PAUSE);
    }
    outcome
}

/// Why a status reports a message as failed.
pub(crate) fn failed(error: GraphError) -> Failure {
    nuncio_channel_meta::failed(Box::new(error), class)
}

/// Why a request that is not a message failed.
pub(crate) fn failure(error: &RequestError) -> Failure {
    nuncio_channel_meta::failure(error, class)
}

/// Why a request about the profile failed.
pub(crate) fn profile_error(error: &RequestError) -> ProfileError {
    match nuncio_channel_meta::repeatable(error, class) {
        Outcome::Rejected { failure } => ProfileError::Refused(failure.message),
        _ => ProfileError::Unavailable(error.to_string()),
    }
}

/// A failed check, with advice for the operator.
pub(crate) fn advice(error: &RequestError) -> String {
    nuncio_channel_meta::advice(error, |code| match code {
        0 | 190 => "make a new access_token for the system user, and give the connection that",
        3 | 10 | 200..=299 => {
            "give the token's system user the permissions whatsapp_business_messaging and whatsapp_business_management, and the account"
        }
        100 => "check phone_number_id: it is the id next to the number in WhatsApp > API Setup, and the token must have access to it",
        133_010 => "register the number with the Cloud API first",
        _ => "look the code up in Meta's list of WhatsApp error codes",
    })
}

#[cfg(test)]
mod tests {
    use nuncio_channel::testing::kind_and_code;
    use serde_json::json;

    use super::*;

    fn refused(status: u16, error: Value) -> RequestError {
        let error: Box<GraphError> = serde_json::from_value(error).unwrap();
        RequestError::Refused(error.refusal(status, None, "EAAtoken"))
    }

    #[test]
    fn every_code_has_its_class() {
        use FailureCode::{
            AttachmentUnavailable, BlockedByRecipient, ContentRejected, CredentialsInvalid, InvalidRecipient, ProviderRejected,
            RateLimited, Undeliverable, WindowClosed,
        };
        let table: &[(&str, FailureCode, &[i64])] = &[
            ("message", Undeliverable, &[1, 2, 131_000]),
            ("connection", Undeliverable, &[131_016, 131_057]),
            ("connection", RateLimited, &[4, 80_007, 80_008, 130_429, 131_048, 131_064]),
            ("message", RateLimited, &[131_056]),
            ("connection", CredentialsInvalid, &[0, 3, 10, 190, 200, 299, 368, 131_005, 131_031, 131_042, 131_045, 133_010]),
            ("rejected", Undeliverable, &[131_026, 131_049, 130_472]),
            ("rejected", InvalidRecipient, &[131_030, 131_021]),
            ("rejected", BlockedByRecipient, &[131_050]),
            ("rejected", WindowClosed, &[131_047]),
            ("rejected", AttachmentUnavailable, &[131_052, 131_053]),
            (
                "rejected",
                ContentRejected,
                &[100, 131_008, 131_009, 131_051, 132_000, 132_001, 132_005, 132_007, 132_008, 132_012, 132_015, 132_016],
            ),
            ("rejected", ProviderRejected, &[130_497, 135_000, 999_999]),
        ];
        for (kind, code, numbers) in table {
            for number in *numbers {
                let error = refused(400, json!({"code": number, "message": "m"}));
                let outcome = sent(Err(error));
                assert_eq!(kind_and_code(&outcome), (*kind, *code), "{number}");
            }
        }
        assert_eq!(kind_and_code(&sent(Err(refused(400, json!({"code": 100, "error_subcode": 33}))))), ("connection", CredentialsInvalid));
        assert_eq!(kind_and_code(&sent(Err(refused(400, json!({"code": 100, "is_transient": true}))))), ("message", Undeliverable));
        assert_eq!(kind_and_code(&sent(Err(refused(500, json!({"code": 7}))))), ("message", Undeliverable));
        assert_eq!(kind_and_code(&sent(Err(refused(401, json!({"code": 7}))))), ("connection", CredentialsInvalid));
        assert_eq!(kind_and_code(&sent(Err(refused(429, json!({"code": 7}))))), ("connection", RateLimited));
    }

    #[test]
    fn requests_without_a_result() {
        use FailureCode::{Undeliverable, UnknownOutcome};
        assert_eq!(kind_and_code(&sent(Ok(json!({"messages": []})))), ("unknown", UnknownOutcome), "no id");
        for error in [RequestError::NoResponse("x".into()), RequestError::Unreadable { status: 502, retry_after: None }] {
            assert_eq!(kind_and_code(&sent(Err(error.clone()))), ("unknown", UnknownOutcome));
            assert_eq!(kind_and_code(&not_uploaded(&error)), ("message", Undeliverable), "an upload sends nothing");
        }
    }

    #[test]
    fn ids_pauses_and_words() {
        let answer = json!({"messaging_product": "whatsapp", "contacts": [{"input": "1", "wa_id": "1"}],
            "messages": [{"id": "wamid.A", "message_status": "held_for_quality_assessment"}]});
        assert_eq!(sent(Ok(answer)), Outcome::Accepted { refs: vec!["wamid.A".into()], cost: None });
        let Outcome::Deferred { retry_after, .. } = sent(Err(refused(400, json!({"code": 131_056})))) else { panic!() };
        assert_eq!(retry_after, Some(PAIR_PAUSE));
        let error =
            json!({"code": 131_026, "message": "(#131026) Message undeliverable", "error_data": {"details": "Message\nUndeliverable."}});
        let Outcome::Rejected { failure } = sent(Err(refused(400, error))) else { panic!() };
        assert_eq!(failure.provider_code.as_deref(), Some("131026"));
        assert_eq!(failure.message, "(#131026) Message undeliverable: Message Undeliverable.");
    }

    #[test]
    fn the_token_is_not_repeated() {
        let error = refused(401, json!({"code": 190, "message": "Malformed access token EAAtoken"}));
        assert_eq!(failure(&error).message, "Malformed access token ***");
        assert!(!advice(&error).contains("EAAtoken") && advice(&error).contains("access_token"));
    }
}
