//! The adapter keeps the contract in every mode that HTTP has.

use nuncio_channel::contract::Mode;
use nuncio_channel_http::testing::{Case, RETRY_AFTER, Reply, Seen};
use nuncio_domain::Channel;
use serde_json::json;

use crate::support::{GATEWAY, PASSWORD, SECRET, identity};

fn respond(mode: Mode, seen: &Seen) -> Reply {
    match mode {
        // Some gateways repeat what they were sent.
        Mode::BadCredentials => Reply::text(403, &format!("Authorization failed for sendsms ({PASSWORD})")),
        _ if identity(seen).is_none() => Reply::text(400, "Missing receiver number, rejected"),
        Mode::RejectsPermanently => Reply::text(403, "Not routable. Do not try again."),
        Mode::Throttles => Reply::text(429, "Slow down").with("Retry-After", RETRY_AFTER),
        Mode::FailsTemporarily => Reply::text(503, "Temporal failure, try again later."),
        Mode::Garbage => Reply::text(200, "<html>"),
        _ => Reply::text(202, "0: Accepted for delivery"),
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let plus = PASSWORD.replace('&', "%26").replace(' ', "+");
    let more_secrets = vec![plus.replace('+', "%20"), plus, SECRET.replace('+', "%2B")];
    for channel in [Channel::Sms, Channel::SmsOneway] {
        for settings in [json!({}), json!({"method": "post"})] {
            let more_secrets = more_secrets.clone();
            Case { accounts: GATEWAY.on(channel), settings, identity, respond, more_secrets }.holds().await;
        }
    }
}
