//! From what the Graph API answers to verdicts and failures. Pure.
//!
//! Codes: <https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes>

use std::time::Duration;

use nuncio_channel::{ProfileError, Scope, Verdict};
use nuncio_channel_meta::{Class, Fault, GraphError, STOP};
use nuncio_domain::message::{Failure, FailureCode};
use serde_json::Value;

/// How long to leave a recipient alone who got too many messages in a row (131056): Meta allows one in six seconds.
const PAIR_PAUSE: Duration = Duration::from_secs(6);

/// What WhatsApp's own codes mean.
const fn class(error: &GraphError) -> Option<Class> {
    use FailureCode as Code;
    Some(match error.code {
        // "Object does not exist or permissions are missing": the account's ids or its token.
        100 if matches!(error.error_subcode, Some(33)) => STOP,
        131_005 | 131_031 | 131_037 | 131_042 | 131_045 | 133_010 => STOP,
        130_429 | 131_048 | 131_064 => Class::Later(Scope::Connection, Code::RateLimited),
        131_056 => Class::Later(Scope::Message, Code::RateLimited),
        131_000 => Class::Later(Scope::Message, Code::Undeliverable),
        131_016 | 131_057 => Class::Later(Scope::Connection, Code::Undeliverable),
        131_021 | 131_030 => Class::Never(Code::InvalidRecipient),
        131_026 | 131_049 | 130_472 => Class::Never(Code::Undeliverable),
        131_050 => Class::Never(Code::BlockedByRecipient),
        131_047 => Class::Never(Code::WindowClosed),
        131_052 | 131_053 => Class::Never(Code::AttachmentUnavailable),
        131_008 | 131_009 | 131_051 | 132_000..=132_999 => Class::Never(Code::ContentRejected),
        130_497 | 135_000 => Class::Never(Code::ProviderRejected),
        _ => return None,
    })
}

/// What became of a message, by the answer to it.
pub(crate) fn sent(answer: Result<Value, Fault>) -> Verdict {
    let fault = match answer {
        Ok(answer) => match answer.pointer("/messages/0/id").and_then(Value::as_str) {
            Some(id) => return Verdict::Accepted { refs: vec![id.to_owned()], cost: None },
            None => Fault::Garbled { status: 200, retry_after: None },
        },
        Err(fault) => fault,
    };
    verdict(&fault, false)
}

/// What becomes of a message whose media could not be uploaded: nobody has seen it yet.
pub(crate) fn not_uploaded(fault: &Fault) -> Verdict {
    verdict(fault, true)
}

fn verdict(fault: &Fault, harmless: bool) -> Verdict {
    let mut verdict = nuncio_channel_meta::verdict(fault, harmless, class);
    if let (Verdict::Deferred { retry_after, .. }, Fault::Refused { error, .. }) = (&mut verdict, fault)
        && error.code == 131_056
    {
        retry_after.get_or_insert(PAIR_PAUSE);
    }
    verdict
}

/// Why a status says that a message failed.
pub(crate) fn failed(error: &GraphError) -> Failure {
    nuncio_channel_meta::failed(error, class)
}

/// Why a call that is no message came to nothing.
pub(crate) fn failure(fault: &Fault) -> Failure {
    nuncio_channel_meta::failure(fault, class)
}

/// Why a call about the profile came to nothing.
pub(crate) fn profile_error(fault: &Fault) -> ProfileError {
    match verdict(fault, true) {
        Verdict::Rejected { failure } => ProfileError::Refused(failure.message),
        _ => ProfileError::Unavailable(fault.to_string()),
    }
}

/// What a check found wrong, and what to do.
pub(crate) fn advice(fault: &Fault) -> String {
    let todo = match fault {
        Fault::Refused { error, .. } if error.code == 190 || error.code == 0 => {
            "make a new access_token for the system user, and give the connection that"
        }
        Fault::Refused { error, .. } if matches!(error.code, 3 | 10 | 200..=299) => {
            "give the token's system user the permissions whatsapp_business_messaging and whatsapp_business_management, and the account"
        }
        Fault::Refused { error, .. } if error.code == 100 => {
            "check phone_number_id: it is the id beside the number in WhatsApp > API Setup, and the token must be allowed to see it"
        }
        Fault::Refused { error, .. } if error.code == 133_010 => "register the number with the Cloud API first",
        Fault::Unreachable(_) | Fault::Garbled { .. } => "check base_url and api_version, and the way out of this machine",
        Fault::Lost(_) => "try again; if it stays so, check the way out of this machine",
        Fault::Refused { .. } => "look the code up in Meta's list of WhatsApp error codes",
    };
    format!("{fault}. What to do: {todo}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(status: u16, error: Value) -> Fault {
        let error: Box<GraphError> = serde_json::from_value(error).unwrap();
        Fault::Refused { status, text: error.text("EAAtoken"), error, retry_after: None }
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
            AttachmentUnavailable, BlockedByRecipient, ContentRejected, CredentialsInvalid, InvalidRecipient, ProviderRejected,
            RateLimited, Undeliverable, WindowClosed,
        };
        let table: &[(&str, FailureCode, &[i64])] = &[
            ("message", Undeliverable, &[1, 2, 131_000]),
            ("connection", Undeliverable, &[131_016, 131_057]),
            ("connection", RateLimited, &[4, 80_007, 130_429, 131_048, 131_064]),
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
                let fault = refused(400, json!({"code": number, "message": "m"}));
                let verdict = sent(Err(fault));
                assert_eq!(short(&verdict), (*kind, *code), "{number}");
            }
        }
        assert_eq!(short(&sent(Err(refused(400, json!({"code": 100, "error_subcode": 33}))))), ("connection", CredentialsInvalid));
        assert_eq!(short(&sent(Err(refused(400, json!({"code": 100, "is_transient": true}))))), ("message", Undeliverable));
        assert_eq!(short(&sent(Err(refused(500, json!({"code": 7}))))), ("message", Undeliverable));
        assert_eq!(short(&sent(Err(refused(401, json!({"code": 7}))))), ("connection", CredentialsInvalid));
        assert_eq!(short(&sent(Err(refused(429, json!({"code": 7}))))), ("connection", RateLimited));
    }

    #[test]
    fn answers_that_are_no_errors_of_the_api() {
        use FailureCode::{CredentialsInvalid, ProviderRejected, RateLimited, Undeliverable, UnknownOutcome};
        for (status, kind, code) in [
            (200, "unknown", UnknownOutcome),
            (500, "unknown", UnknownOutcome),
            (502, "unknown", UnknownOutcome),
            (504, "unknown", UnknownOutcome),
            (503, "connection", Undeliverable),
            (302, "connection", Undeliverable),
            (404, "connection", Undeliverable),
            (401, "connection", CredentialsInvalid),
            (429, "connection", RateLimited),
            (408, "message", Undeliverable),
            (413, "rejected", ProviderRejected),
        ] {
            assert_eq!(short(&sent(Err(Fault::Garbled { status, retry_after: None }))), (kind, code), "{status}");
        }
        assert_eq!(short(&sent(Ok(json!({"messages": []})))), ("unknown", UnknownOutcome), "taken without an id");
        assert_eq!(short(&sent(Err(Fault::Lost("x".into())))), ("unknown", UnknownOutcome));
        assert_eq!(short(&not_uploaded(&Fault::Lost("x".into()))), ("message", Undeliverable), "an upload sends nothing");
        assert_eq!(short(&sent(Err(Fault::Unreachable("x".into())))), ("connection", Undeliverable));
    }

    #[test]
    fn ids_pauses_and_words() {
        let answer = json!({"messaging_product": "whatsapp", "contacts": [{"input": "1", "wa_id": "1"}],
            "messages": [{"id": "wamid.A", "message_status": "held_for_quality_assessment"}]});
        assert_eq!(sent(Ok(answer)), Verdict::Accepted { refs: vec!["wamid.A".into()], cost: None });
        let Verdict::Deferred { retry_after, .. } = sent(Err(refused(400, json!({"code": 131_056})))) else { panic!() };
        assert_eq!(retry_after, Some(PAIR_PAUSE));
        let error =
            json!({"code": 131_026, "message": "(#131026) Message undeliverable", "error_data": {"details": "Message\nUndeliverable."}});
        let Verdict::Rejected { failure } = sent(Err(refused(400, error))) else { panic!() };
        assert_eq!(failure.provider_code.as_deref(), Some("131026"));
        assert_eq!(failure.message, "(#131026) Message undeliverable: Message Undeliverable.");
    }

    #[test]
    fn the_token_is_not_repeated() {
        let fault = refused(401, json!({"code": 190, "message": "Malformed access token EAAtoken"}));
        assert_eq!(failure(&fault).message, "Malformed access token ***");
        assert!(!advice(&fault).contains("EAAtoken") && advice(&fault).contains("access_token"));
    }
}
