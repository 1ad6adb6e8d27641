//! The adapter keeps the contract in every mode that the API has.

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Report, Rig, run_all};
use nuncio_channel::{Account, AdapterFactory, Services};
use nuncio_channel_instagram::InstagramFactory;
use nuncio_channel_meta::scripted::{Api, RETRY_AFTER, Reply, SECRET, Seen, TOKEN, refusal, services};
use serde_json::json;

use crate::support::{ACCOUNT, ADA, account, factory, identity, taken, try_open};

#[derive(Debug)]
struct Instagram(InstagramFactory);

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

#[async_trait]
impl Harness for Instagram {
    fn factory(&self) -> &dyn AdapterFactory {
        &self.0
    }

    fn account(&self) -> Account {
        account("https://graph.example", json!({}))
    }

    fn more_secrets(&self) -> Vec<String> {
        vec![SECRET.replace('-', "%2D")]
    }

    fn services(&self) -> Services {
        services()
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let open = |base: &str| try_open(&account(base, json!({}))).unwrap();
        Api::rig(mode, ADA, identity, move |seen| respond(mode, seen), open).await
    }
}

#[tokio::test]
async fn the_messaging_api_keeps_the_contract() {
    assert_eq!(run_all(&Instagram(factory())).await, Report { missing: vec![Mode::AnswersNever] });
}
