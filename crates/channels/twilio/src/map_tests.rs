use nuncio_channel::Outcome;
use nuncio_channel::testing::kind_and_code;
use nuncio_net::StatusCode;
use nuncio_net::header::HeaderMap;
use serde_json::json;

use super::*;

fn response(status: u16, body: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    Response { status, headers: HeaderMap::new(), body: body.into(), truncated: false }
}

fn refused(status: u16, code: u32) -> Response {
    let more_info = "https://www.twilio.com/docs/errors/1";
    response(status, &json!({"code": code, "message": "m", "more_info": more_info, "status": status}).to_string())
}

fn outcome(response: &Response) -> Outcome {
    sent(response, "the-token").unwrap_err().outcome(|refusal| refusal.details)
}

#[test]
fn every_code_has_its_class() {
    use FailureCode as Code;
    let table: &[(&str, FailureCode, &[u32])] = &[
        ("connection", Code::CredentialsInvalid, &[10_001, 20_003, 20_005, 20_006, 20_404, 30_002]),
        ("connection", Code::RateLimited, &[10_004, 14_107, 20_429, 21_611, 30_001, 30_022]),
        ("connection", Code::Undeliverable, &[20_503]),
        ("rejected", Code::InvalidRecipient, &[13_223, 13_224, 21_211, 21_217, 21_421, 21_614, 30_005]),
        ("rejected", Code::RecipientSuppressed, &[21_610]),
        ("rejected", Code::BlockedByRecipient, &[30_004]),
        ("rejected", Code::Undeliverable, &[21_612, 30_003, 30_006, 30_008]),
        ("rejected", Code::Expired, &[30_036]),
        ("rejected", Code::ContentRejected, &[21_602, 21_617, 30_007, 12_100]),
        ("rejected", Code::AttachmentUnavailable, &[11_751, 21_620]),
        ("rejected", Code::ProviderRejected, &[21_215, 21_408, 21_606, 21_608, 21_659, 21_703, 30_034, 99_999]),
    ];
    for (kind, code, numbers) in table {
        for number in *numbers {
            assert_eq!(kind_and_code(&outcome(&refused(400, *number))), (*kind, *code), "{number}");
        }
    }
}

#[test]
fn an_unknown_code_goes_by_the_status() {
    for status in [302, 400, 401, 403, 404, 408, 429, 500, 503, 504] {
        let wanted = SendError::Unreadable { status, retry_after: None }.outcome(|_| unreachable!("it has no code"));
        assert_eq!(kind_and_code(&outcome(&refused(status, 1))), kind_and_code(&wanted), "{status}");
        assert_eq!(kind_and_code(&outcome(&response(status, "<html>"))), kind_and_code(&wanted), "{status}");
    }
    for body in ["<html>", "[]", "{}", "{\"sid\": null}", "{\"sid\": \"\"}", ""] {
        assert_eq!(kind_and_code(&outcome(&response(201, body))), ("unknown", FailureCode::UnknownOutcome), "{body}");
    }
    let taken = response(201, r#"{"sid": "SM1", "status": "queued", "price": null, "num_segments": "1"}"#);
    assert_eq!(sent(&taken, "the-token"), Ok(vec!["SM1".to_owned()]));
}

#[test]
fn the_token_is_not_repeated() {
    let error = read(&response(401, r#"{"code": 20003, "message": "the-token\nis wrong"}"#), "the-token").unwrap_err();
    assert_eq!(error.to_string(), "the provider returned code 20003: *** is wrong");
    assert!(advice(&error).contains("check account_sid and auth_token"));
}

#[test]
fn what_statuses_of_messages_say() {
    for sent in ["accepted", "scheduled", "queued", "sending", "sent"] {
        assert_eq!(message_status(sent, "", ""), Some(ReceiptKind::Sent));
    }
    assert_eq!(message_status("delivered", "", ""), Some(ReceiptKind::Delivered));
    assert_eq!(message_status("read", "", ""), Some(ReceiptKind::Read));
    for (status, error, text, code, provider_code, words) in [
        ("undelivered", "30003", "", FailureCode::Undeliverable, "30003", "the phone is off, out of reach, or cannot receive messages"),
        ("failed", "30005", "Unknown\ndestination", FailureCode::InvalidRecipient, "30005", "Unknown destination"),
        ("failed", "21610", "", FailureCode::RecipientSuppressed, "21610", "the recipient opted out at the provider"),
        ("failed", "30001", "", FailureCode::RateLimited, "30001", "the sender's queue is full"),
        ("failed", "63999", "", FailureCode::Undeliverable, "63999", "see https://www.twilio.com/docs/api/errors/63999"),
        ("failed", "", "", FailureCode::Undeliverable, "failed", "the provider gives no reason"),
        ("canceled", "", "", FailureCode::ProviderRejected, "canceled", "it was cancelled at the provider"),
    ] {
        let failure = Failure { code, provider_code: Some(provider_code.to_owned()), message: words.to_owned() };
        assert_eq!(message_status(status, error, text), Some(ReceiptKind::Failed(failure)));
    }
    for unknown in ["", "receiving", "received", "partially_delivered"] {
        assert_eq!(message_status(unknown, "", ""), None);
    }
}
