//! From what the Graph API answers to verdicts. Pure.
//!
//! Codes: <https://developers.facebook.com/docs/messenger-platform/error-codes>

use nuncio_channel::{Scope, Verdict};
use nuncio_channel_meta::{Class, Fault, GraphError};
use nuncio_domain::message::{Failure, FailureCode};
use serde_json::Value;

/// What codes mean when they come from Instagram.
const fn class(error: &GraphError) -> Option<Class> {
    use FailureCode as Code;
    Some(match (error.code, error.error_subcode) {
        (10, Some(2_534_022 | 2_018_278 | 2_018_065)) => Class::Never(Code::WindowClosed),
        (551, _) | (200, Some(1_545_041)) | (10, Some(2_018_108)) => Class::Never(Code::Undeliverable),
        // What else is said with a subcode concerns a person as often as the account, which must not stop for one.
        (10 | 200..=299, Some(_)) => Class::Later(Scope::Message, Code::Undeliverable),
        (100, Some(2_534_014 | 2_018_001)) => Class::Never(Code::InvalidRecipient),
        (100, Some(2_018_007 | 2_018_008 | 2_018_047)) => Class::Never(Code::AttachmentUnavailable),
        // "Object does not exist or permissions are missing", of the recipient or of the account: nobody can tell.
        (100, Some(33)) | (1_200, _) => Class::Later(Scope::Message, Code::Undeliverable),
        _ => return None,
    })
}

/// The id of what was taken, by the answer to it.
pub(crate) fn reference(answer: &Value) -> Option<&str> {
    answer.get("message_id").and_then(Value::as_str).filter(|id| !id.is_empty())
}

/// The verdict on a message whose part after those in `refs` came to nothing; `parts` in all.
pub(crate) fn stopped(fault: &Fault, refs: Vec<String>, parts: usize) -> Verdict {
    let verdict = nuncio_channel_meta::verdict(fault, false, class);
    if refs.is_empty() {
        return verdict;
    }
    let provider_code = match fault {
        Fault::Refused { error, .. } => Some(error.code.to_string()),
        Fault::Unreachable(_) | Fault::Lost(_) | Fault::Garbled { .. } => None,
    };
    let message = format!("{} of {parts} parts were sent; then: {fault}", refs.len());
    Verdict::Unknown { failure: Failure { code: FailureCode::UnknownOutcome, provider_code, message }, refs }
}

/// What a check found wrong, and what to do.
pub(crate) fn advice(fault: &Fault) -> String {
    let todo = match fault {
        Fault::Refused { error, .. } if matches!(error.code, 0 | 190) => {
            "make a new access_token and give the connection that; if it is new, see whether login fits it"
        }
        Fault::Refused { error, .. } if matches!(error.code, 3 | 10 | 200..=299) => {
            "give the token instagram_business_manage_messages (with login=page: instagram_manage_messages)"
        }
        Fault::Refused { error, .. } if error.code == 100 => "see whether login fits the token: page for one of a Page, else instagram",
        Fault::Unreachable(_) | Fault::Garbled { .. } => "check base_url and api_version, and the way out of this machine",
        Fault::Lost(_) => "try again; if it stays so, check the way out of this machine",
        Fault::Refused { .. } => "look the code up in Meta's list of error codes",
    };
    format!("{fault}. What to do: {todo}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(code: i64, subcode: Option<i64>) -> Fault {
        let error: Box<GraphError> = serde_json::from_value(json!({"code": code, "error_subcode": subcode, "message": "m"})).unwrap();
        Fault::Refused { status: 400, text: "m".into(), error, retry_after: None }
    }

    fn short(verdict: &Verdict) -> (&'static str, FailureCode) {
        match verdict {
            Verdict::Deferred { failure, scope: Scope::Message, .. } => ("message", failure.code),
            Verdict::Deferred { failure, scope: Scope::Connection, .. } => ("connection", failure.code),
            Verdict::Rejected { failure } => ("rejected", failure.code),
            Verdict::Unknown { failure, .. } => ("unknown", failure.code),
            Verdict::Accepted { .. } => panic!("accepted"),
        }
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
            (1, Some(1_357_046), "unknown", FailureCode::UnknownOutcome),
            (2, None, "message", Undeliverable),
            (1_200, None, "message", Undeliverable),
            (999_999, None, "rejected", ProviderRejected),
        ] {
            assert_eq!(short(&stopped(&refused(code, subcode), Vec::new(), 1)), (kind, failure), "{code}/{subcode:?}");
        }
    }

    #[test]
    fn what_went_out_in_part_is_unknown() {
        let faults = [
            refused(190, None),
            refused(100, None),
            Fault::Lost("x".into()),
            Fault::Unreachable("x".into()),
            Fault::Garbled { status: 503, retry_after: None },
        ];
        for fault in faults {
            let Verdict::Unknown { failure, refs } = stopped(&fault, vec!["a".into()], 2) else { panic!("{fault:?}") };
            assert_eq!((failure.code, refs), (FailureCode::UnknownOutcome, vec!["a".to_owned()]));
            assert!(failure.message.starts_with("1 of 2 parts were sent; then: "), "{}", failure.message);
        }
    }

    #[test]
    fn ids() {
        assert_eq!(reference(&json!({"recipient_id": "1", "message_id": "m"})), Some("m"));
        for answer in [json!({"recipient_id": "1"}), json!({"message_id": ""}), json!({"message_id": 7})] {
            assert_eq!(reference(&answer), None);
        }
    }
}
