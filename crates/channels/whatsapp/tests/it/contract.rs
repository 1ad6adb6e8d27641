//! The adapter keeps the contract in every mode that the Cloud API has.

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Report, Rig, run_all};
use nuncio_channel::{Account, AdapterFactory, Services};
use nuncio_channel_meta::scripted::{Api, RETRY_AFTER, Reply, Seen, refusal};
use nuncio_channel_whatsapp::WhatsappFactory;
use serde_json::json;

use crate::support::{SECRET, TOKEN, account, factory, identity, services, taken, try_open};

#[derive(Debug)]
struct Meta(WhatsappFactory);

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
        let open = |base: &str| try_open(&account(base, json!({}))).unwrap();
        Api::rig(mode, "+34600111222", identity, move |seen| respond(mode, seen), open).await
    }
}

#[tokio::test]
async fn the_cloud_api_keeps_the_contract() {
    assert_eq!(run_all(&Meta(factory())).await, Report { missing: vec![Mode::AnswersNever] });
}
