//! The adapter keeps the contract in every mode that the API has.

use nuncio_channel::contract::Mode;
use nuncio_channel_meta::scripted::{Case, RETRY_AFTER, Reply, SECRET, Seen, TOKEN, refusal};
use serde_json::json;

use crate::support::{ACCOUNT, INSTAGRAM, identity, taken};

fn respond(mode: Mode, seen: &Seen) -> Reply {
    match (mode, seen.method.as_str()) {
        // The real API's texts repeat what it was sent.
        (Mode::BadCredentials, _) => refusal(401, 190, &format!("Malformed access token {TOKEN}")),
        (_, "GET") => Reply::json(200, &json!({"user_id": ACCOUNT, "username": "acme", "id": "1"})),
        (Mode::RejectsPermanently, _) => refusal(400, 100, "(#100) Invalid parameter"),
        (Mode::Throttles, _) => {
            let body = json!({"error": {"message": "(#613) Calls to this api have exceeded the rate limit.", "code": 613}});
            Reply::json(429, &body).with("Retry-After", RETRY_AFTER)
        }
        (Mode::FailsTemporarily, _) => refusal(500, 2, "Service temporarily unavailable"),
        (Mode::Garbage, _) => Reply::raw(200, Vec::new(), b"<html>".to_vec()),
        _ => taken("aWdfZAG1faXRlbToxOklHT"),
    }
}

#[tokio::test]
async fn the_messaging_api_keeps_the_contract() {
    let more_secrets = vec![SECRET.replace('-', "%2D")];
    Case { accounts: INSTAGRAM, settings: json!({}), identity, respond, more_secrets }.holds().await;
}
