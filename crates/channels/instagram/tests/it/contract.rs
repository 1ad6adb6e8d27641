//! The adapter keeps the contract in every mode that the API has.

use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Report, Rig, run_all};
use nuncio_channel::{Account, AdapterFactory, Services};
use nuncio_channel_instagram::InstagramFactory;
use nuncio_channel_meta::scripted::{Reply, SECRET, TOKEN, refusal, services};
use serde_json::json;

use crate::support::{ACCOUNT, ADA, account, factory, open, start, taken, try_open};

#[derive(Debug)]
struct Instagram(InstagramFactory);

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
        let retry_after = (mode == Mode::Throttles).then_some(Duration::from_secs(17));
        let api = start(move |seen| match (mode, seen.method.as_str()) {
            // The words of the real API repeat what it got.
            (Mode::BadCredentials, _) => refusal(401, 190, &format!("Malformed access token {TOKEN}")),
            (_, "GET") => Reply::json(200, &json!({"user_id": ACCOUNT, "username": "acme", "id": "1"})),
            (Mode::RejectsPermanently, _) => refusal(400, 100, "(#100) Invalid parameter"),
            (Mode::Throttles, _) => {
                let body = json!({"error": {"message": "(#613) Calls to this api have exceeded the rate limit.", "code": 613}});
                Reply::raw(429, vec![("Retry-After", "17".to_owned())], body.to_string().into_bytes())
            }
            (Mode::FailsTemporarily, _) => refusal(500, 2, "Service temporarily unavailable"),
            (Mode::LosesAnswer, _) => Reply::HangUp,
            (Mode::Garbage, _) => Reply::raw(200, Vec::new(), b"<html>".to_vec()),
            _ => taken("aWdfZAG1faXRlbToxOklHT"),
        });
        let api = match mode {
            // Over HTTP the message is written before anybody could fall silent.
            Mode::AnswersNever => return None,
            _ => api.await,
        };
        let adapter = if mode == Mode::Unreachable { try_open(&account("http://127.0.0.1:9", json!({}))).unwrap() } else { open(&api) };
        Some(Rig { adapter, to: ADA.to_owned(), retry_after, peer: Box::new(api) })
    }
}

#[tokio::test]
async fn the_messaging_api_keeps_the_contract() {
    assert_eq!(run_all(&Instagram(factory())).await, Report { missing: vec![Mode::AnswersNever] });
}
