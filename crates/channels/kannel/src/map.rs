//! Maps the gateway's responses and receipts. Pure.
//!
//! Source: Kannel 1.4.5 User's Guide, table "Status codes of HTTP responses", and the texts of its smsbox.

use nuncio_channel::Scope;
use nuncio_channel_http::{Disposition, SendError, plain};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::Response;

pub(crate) fn read(response: &Response, password: &str) -> Result<(), SendError> {
    let text = plain(&String::from_utf8_lossy(&response.body), password);
    match response.status.as_u16() {
        // `0: Accepted for delivery`, `3: Queued for later delivery`, and `Sent.` if it does not wait for its queue.
        200..=299 if ["0:", "3:", "Sent"].iter().any(|head| text.starts_with(head)) => Ok(()),
        // Compatible gateways return an id here. 202 has no other meaning.
        202 => Ok(()),
        200..=299 => Err(SendError::unreadable(response)),
        status => Err(SendError::refused(response, classify(status, &text), status.to_string(), text)),
    }
}

/// What a refusal means where the HTTP status alone does not say.
fn classify(status: u16, text: &str) -> Option<Disposition> {
    let text = text.to_ascii_lowercase();
    Some(match status {
        // Besides a wrong login, the only 403: no connection of the gateway can reach the recipient.
        403 if text.starts_with("not routable") => Disposition::Reject(FailureCode::Undeliverable),
        407 => Disposition::BAD_CREDENTIALS,
        500 if text.starts_with("sending failed") => Disposition::Defer(Scope::Message, FailureCode::Undeliverable),
        401 | 403..=405 | 408 | 429 => return None,
        400..=499 if text.contains("receiver") || text.contains("denied") => Disposition::Reject(FailureCode::InvalidRecipient),
        400..=499 if text.contains("charset or body") => Disposition::Reject(FailureCode::ContentRejected),
        _ => return None,
    })
}

/// A failed check, with advice for the operator.
pub(crate) fn advice(error: &SendError) -> String {
    let address = "check url: it is the gateway's sendsms-port with the path /cgi-bin/sendsms; and that the gateway's smsbox runs";
    error.explain(address, |refusal| match refusal.status {
        401 | 403 | 407 => "check username and password, and that user-allow-ip of the gateway's group sendsms-user permits this machine",
        300..=399 | 404 | 405 => address,
        _ => "try again; if it keeps failing, look into the gateway's log",
    })
}

/// Maps a receipt's type (`%d`) and the SMSC's response (`%A`); `None` for unknown types.
pub(crate) fn receipt(kind: &str, answer: &str) -> Option<ReceiptKind> {
    let failed = |code, what: &str| {
        let answer = plain(answer, "");
        let message = if answer.is_empty() { what.to_owned() } else { format!("{what}: {answer}") };
        Some(ReceiptKind::Failed(Failure { code, provider_code: Some(kind.to_owned()), message }))
    };
    match kind {
        "1" => Some(ReceiptKind::Delivered),
        "4" | "8" => Some(ReceiptKind::Sent),
        "2" => failed(FailureCode::Undeliverable, "it was not delivered"),
        // SMPP's ESME_RINVDSTADR, as Kannel's drivers write it.
        "16" if answer.to_ascii_lowercase().contains("0x0000000b") => {
            failed(FailureCode::InvalidRecipient, "the SMSC refused the recipient")
        }
        "16" => failed(FailureCode::ProviderRejected, "the SMSC refused it"),
        "34" => failed(FailureCode::Expired, "it expired at the SMSC"),
        "66" => failed(FailureCode::Undeliverable, "the SMSC does not know its status"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use nuncio_channel::testing::kind_and_code;
    use nuncio_net::StatusCode;
    use nuncio_net::header::HeaderMap;

    use super::*;

    fn answered(status: u16, body: &str) -> Result<(), SendError> {
        let status = StatusCode::from_u16(status).unwrap();
        read(&Response { status, headers: HeaderMap::new(), body: body.into(), truncated: false }, "foobar")
    }

    #[test]
    fn accepted() {
        for (status, body) in [
            (202, "0: Accepted for delivery"),
            (202, "3: Queued for later delivery"),
            (202, "Sent. Message splits: 3"),
            (200, "Sent."),
            (202, "5c1e2c36-2b1a-4d0f-9a53-6f6f9b6c1a11"),
            (202, ""),
        ] {
            assert_eq!(answered(status, body), Ok(()), "{status} {body}");
        }
        assert_eq!(answered(200, "<html>"), Err(SendError::Unreadable { status: 200, retry_after: None }));
    }

    #[test]
    fn refused() {
        use FailureCode::{
            ContentRejected, CredentialsInvalid, InvalidRecipient, ProviderRejected, RateLimited, Undeliverable, UnknownOutcome,
        };
        for (status, body, kind, code) in [
            (403, "Authorization failed for sendsms", "connection", CredentialsInvalid),
            (401, "", "connection", CredentialsInvalid),
            (403, "Not routable. Do not try again.", "rejected", Undeliverable),
            (503, "Temporal failure, try again later.", "connection", Undeliverable),
            (404, "Unknown request.", "connection", Undeliverable),
            (302, "", "connection", Undeliverable),
            (429, "", "connection", RateLimited),
            (408, "", "message", Undeliverable),
            (500, "Sending failed.", "message", Undeliverable),
            (500, "", "unknown", UnknownOutcome),
            (502, "", "unknown", UnknownOutcome),
            (504, "", "unknown", UnknownOutcome),
            (400, "Empty receiver number not allowed, rejected", "rejected", InvalidRecipient),
            (400, "Number(s) has/have been denied by white- and/or black-lists.", "rejected", InvalidRecipient),
            (400, "Charset or body misformed, rejected", "rejected", ContentRejected),
            (400, "Sender missing and no global set, rejected", "rejected", ProviderRejected),
            (200, "<html>", "unknown", UnknownOutcome),
        ] {
            let error = answered(status, body).unwrap_err();
            assert_eq!(kind_and_code(&error.outcome(|refusal| refusal.details)), (kind, code), "{status} {body}");
            assert!(advice(&error).contains("What to do"));
        }
        let error = answered(400, "password foobar\nis bad").unwrap_err();
        assert_eq!(error.to_string(), "the provider returned code 400: password *** is bad");
        assert_eq!(answered(429, "").unwrap_err().to_string(), "the provider returned code 429: no reason given");
    }

    #[test]
    fn receipts() {
        assert_eq!(receipt("1", ""), Some(ReceiptKind::Delivered));
        for sent in ["4", "8"] {
            assert_eq!(receipt(sent, "ACK/"), Some(ReceiptKind::Sent));
        }
        for (kind, answer, code, text) in [
            ("2", "", FailureCode::Undeliverable, "it was not delivered"),
            ("2", "id:7 stat:UNDELIV", FailureCode::Undeliverable, "it was not delivered: id:7 stat:UNDELIV"),
            (
                "16",
                "NACK/0x0000000B/Invalid Destination Address",
                FailureCode::InvalidRecipient,
                "the SMSC refused the recipient: NACK/0x0000000B/Invalid Destination Address",
            ),
            ("16", "NACK/", FailureCode::ProviderRejected, "the SMSC refused it: NACK/"),
            ("34", "", FailureCode::Expired, "it expired at the SMSC"),
            ("66", "", FailureCode::Undeliverable, "the SMSC does not know its status"),
        ] {
            let failure = Failure { code, provider_code: Some(kind.to_owned()), message: text.to_owned() };
            assert_eq!(receipt(kind, answer), Some(ReceiptKind::Failed(failure)));
        }
        for unknown in ["", "0", "3", "64", "%d", "x"] {
            assert_eq!(receipt(unknown, ""), None);
        }
    }
}
