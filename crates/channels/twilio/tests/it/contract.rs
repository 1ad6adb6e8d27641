//! The adapter keeps the contract on every channel, in every mode that HTTP has.

use nuncio_channel::contract::Mode;
use nuncio_channel_http::testing::{Case, RETRY_AFTER, Reply, Seen};
use nuncio_domain::Channel;
use serde_json::json;

use crate::support::{TOKEN, TWILIO, refusal, taken};

fn respond(mode: Mode, seen: &Seen) -> Reply {
    match (mode, seen.method.as_str()) {
        (Mode::BadCredentials, _) => refusal(401, 20_003, &format!("Authenticate: {TOKEN} is wrong")),
        (_, "GET") => Reply::json(200, &json!({"friendly_name": "Acme", "status": "active"})),
        (Mode::RejectsPermanently, _) => refusal(400, 21_211, "Invalid 'To' Phone Number"),
        (Mode::Throttles, _) => refusal(429, 20_429, "Too Many Requests").with("Retry-After", RETRY_AFTER),
        (Mode::FailsTemporarily, _) => refusal(503, 20_503, "Service Unavailable"),
        (Mode::Garbage, _) => Reply::text(201, "<html>"),
        _ => taken(),
    }
}

fn identity(seen: &Seen) -> Option<String> {
    if seen.method == "POST" { seen.parameter("StatusCallback") } else { None }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    // The login of the requests.
    let more_secrets = vec!["QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMTowMTIzNDU2Nzg5YWJjZGVmLWF1dGgtdG9rZW4=".to_owned()];
    for channel in [Channel::Sms, Channel::SmsOneway, Channel::Voice] {
        let more_secrets = more_secrets.clone();
        Case { accounts: TWILIO.on(channel), settings: json!({}), identity, respond, more_secrets }.holds().await;
    }
}
