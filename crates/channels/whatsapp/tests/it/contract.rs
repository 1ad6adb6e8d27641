//! The adapter keeps the contract in every mode that the Cloud API has.

use nuncio_channel::contract::Mode;
use nuncio_channel_meta::scripted::{Case, RETRY_AFTER, Reply, Seen, refusal};
use serde_json::json;

use crate::support::{CLOUD, SECRET, TOKEN, identity, taken};

fn respond(mode: Mode, seen: &Seen) -> Reply {
    match (mode, seen.method.as_str()) {
        // The real API's texts repeat what it was sent.
        (Mode::BadCredentials, _) => refusal(401, 190, &format!("Malformed access token {}", TOKEN)),
        (_, "GET") => Reply::json(200, &json!({"display_phone_number": "+34 600 111 222", "verified_name": "Acme", "id": "1"})),
        (Mode::RejectsPermanently, _) => refusal(400, 131_009, "(#131009) Parameter value is not valid"),
        (Mode::Throttles, _) => {
            let body = json!({"error": {"message": "(#130429) Rate limit hit", "code": 130_429}});
            Reply::json(429, &body).with("Retry-After", RETRY_AFTER)
        }
        (Mode::FailsTemporarily, _) => refusal(500, 131_016, "(#131016) Service unavailable"),
        (Mode::Garbage, _) => Reply::raw(200, Vec::new(), b"<html>".to_vec()),
        _ => taken(),
    }
}

#[tokio::test]
async fn the_cloud_api_keeps_the_contract() {
    let more_secrets = vec![SECRET.replace('-', "%2D")];
    Case { accounts: CLOUD, settings: json!({}), identity, respond, more_secrets }.holds().await;
}
