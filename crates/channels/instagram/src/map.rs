//! Maps responses of the Graph API to outcomes. Pure.
//!
//! Codes: <https://developers.facebook.com/docs/messenger-platform/error-codes>

use nuncio_channel::{Outcome, Scope};
use nuncio_channel_http::Disposition;
use nuncio_channel_meta::{GraphError, RequestError};
use nuncio_domain::message::FailureCode;
use serde_json::Value;

/// Instagram's own codes.
const fn class(error: &GraphError) -> Option<Disposition> {
    use FailureCode as Code;
    Some(match (error.code, error.error_subcode) {
        (10, Some(2_534_022 | 2_018_278 | 2_018_065)) => Disposition::Reject(Code::WindowClosed),
        (551, _) | (200, Some(1_545_041)) | (10, Some(2_018_108)) => Disposition::Reject(Code::Undeliverable),
        // Other subcodes concern a recipient as often as the account, and one recipient must not stop the account.
        (10 | 200..=299, Some(_)) => Disposition::Defer(Scope::Message, Code::Undeliverable),
        (100, Some(2_534_014 | 2_018_001)) => Disposition::Reject(Code::InvalidRecipient),
        (100, Some(2_018_007 | 2_018_008 | 2_018_047)) => Disposition::Reject(Code::AttachmentUnavailable),
        // "Object does not exist or permissions are missing", of the recipient or of the account; the code does not say which.
        (100, Some(33)) | (1_200, _) => Disposition::Defer(Scope::Message, Code::Undeliverable),
        _ => return None,
    })
}

/// The id in the response to a message.
pub(crate) fn reference(answer: &Value) -> Option<&str> {
    answer.get("message_id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

/// The outcome on a message of `total` requests, of which one failed after those in `refs`.
pub(crate) fn stopped(error: &RequestError, refs: Vec<String>, total: usize) -> Outcome {
    let alone = nuncio_channel_meta::outcome(error, class);
    if refs.is_empty() { alone } else { error.partly_sent(refs, total, alone) }
}

/// A failed check, with advice for the operator.
pub(crate) fn advice(error: &RequestError) -> String {
    nuncio_channel_meta::advice(error, |code| match code {
        0 | 190 => "make a new access_token and give the connection that; if it is new, check that login matches it",
        3 | 10 | 200..=299 => "give the token instagram_business_manage_messages (with login=page: instagram_manage_messages)",
        100 => "check that login matches the token: page for one of a Page, else instagram",
        _ => "look the code up in Meta's list of error codes",
    })
}

#[cfg(test)]
mod tests {
    use nuncio_channel::testing::kind_and_code;
    use serde_json::json;

    use super::*;

    fn refused(code: i64, subcode: Option<i64>) -> RequestError {
        let error: Box<GraphError> = serde_json::from_value(json!({"code": code, "error_subcode": subcode, "message": "m"})).unwrap();
        RequestError::Refused(error.refusal(400, None, ""))
    }

    #[test]
    fn every_code_has_its_class() {
        use FailureCode::{
            AttachmentUnavailable, ContentRejected, CredentialsInvalid, InvalidRecipient, ProviderRejected, RateLimited, Undeliverable,
            WindowClosed,
        };
        for (code, subcode, kind, failure) in [
            (10, Some(2_534_022), "rejected", WindowClosed),
            (10, Some(2_018_278), "rejected", WindowClosed),
            (10, Some(2_018_108), "rejected", Undeliverable),
            (10, Some(7), "message", Undeliverable),
            (10, None, "connection", CredentialsInvalid),
            (190, Some(463), "connection", CredentialsInvalid),
            (200, None, "connection", CredentialsInvalid),
            (200, Some(1_545_041), "rejected", Undeliverable),
            (551, Some(1_545_041), "rejected", Undeliverable),
            (100, None, "rejected", ContentRejected),
            (100, Some(2_534_014), "rejected", InvalidRecipient),
            (100, Some(2_018_001), "rejected", InvalidRecipient),
            (100, Some(2_018_008), "rejected", AttachmentUnavailable),
            (100, Some(33), "message", Undeliverable),
            (4, None, "connection", RateLimited),
            (32, None, "connection", RateLimited),
            (613, None, "connection", RateLimited),
            (80_001, None, "connection", RateLimited),
            (80_002, None, "connection", RateLimited),
            (80_006, None, "connection", RateLimited),
            (1, Some(1_357_046), "unknown", FailureCode::UnknownOutcome),
            (2, None, "message", Undeliverable),
            (1_200, None, "message", Undeliverable),
            (999_999, None, "rejected", ProviderRejected),
        ] {
            assert_eq!(kind_and_code(&stopped(&refused(code, subcode), Vec::new(), 1)), (kind, failure), "{code}/{subcode:?}");
        }
    }

    #[test]
    fn a_message_sent_in_part_is_unknown() {
        let Outcome::Unknown { failure, refs } = stopped(&refused(190, None), vec!["a".into()], 2) else { panic!() };
        assert_eq!((failure.code, refs), (FailureCode::UnknownOutcome, vec!["a".to_owned()]));
        assert!(failure.message.starts_with("1 of 2 parts were sent; then: "), "{}", failure.message);
    }

    #[test]
    fn ids() {
        assert_eq!(reference(&json!({"recipient_id": "1", "message_id": "m"})), Some("m"));
        for answer in [json!({"recipient_id": "1"}), json!({"message_id": ""}), json!({"message_id": 7})] {
            assert_eq!(reference(&answer), None);
        }
    }
}
