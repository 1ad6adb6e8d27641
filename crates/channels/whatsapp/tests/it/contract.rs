//! The adapter keeps the contract in every mode that the Cloud API has.

use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Report, Rig, run_all};
use nuncio_channel::{Account, AdapterFactory, Services};
use nuncio_channel_meta::scripted::{Reply, refusal};
use nuncio_channel_whatsapp::WhatsappFactory;
use serde_json::json;

use crate::support::{SECRET, account, factory, open_with, services, start, taken, try_open};

#[derive(Debug)]
struct Meta(WhatsappFactory);

#[async_trait]
impl Harness for Meta {
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
            (Mode::BadCredentials, _) => refusal(401, 190, &format!("Malformed access token {}", crate::support::TOKEN)),
            (_, "GET") => Reply::json(200, &json!({"display_phone_number": "+34 600 111 222", "verified_name": "Acme", "id": "1"})),
            (Mode::RejectsPermanently, _) => refusal(400, 131_009, "(#131009) Parameter value is not valid"),
            (Mode::Throttles, _) => {
                let body = json!({"error": {"message": "(#130429) Rate limit hit", "code": 130_429}}).to_string().into_bytes();
                Reply::raw(429, vec![("Retry-After", "17".to_owned())], body)
            }
            (Mode::FailsTemporarily, _) => refusal(500, 131_016, "(#131016) Service unavailable"),
            (Mode::LosesAnswer, _) => Reply::HangUp,
            (Mode::Garbage, _) => Reply::raw(200, Vec::new(), b"<html>".to_vec()),
            _ => taken(),
        });
        let api = match mode {
            // Over HTTP the message is written before anybody could fall silent.
            Mode::AnswersNever => return None,
            _ => api.await,
        };
        let adapter = if mode == Mode::Unreachable {
            try_open(&account("http://127.0.0.1:9", json!({}))).unwrap()
        } else {
            open_with(&api, json!({}))
        };
        Some(Rig { adapter, to: "+34600111222".to_owned(), retry_after, peer: Box::new(api) })
    }
}

#[tokio::test]
async fn the_cloud_api_keeps_the_contract() {
    assert_eq!(run_all(&Meta(factory())).await, Report { missing: vec![Mode::AnswersNever] });
}
