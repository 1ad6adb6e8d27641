//! The adapter keeps the contract on every channel, in every mode that HTTP has.

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Report, Rig, run_all};
use nuncio_channel::testing::services;
use nuncio_channel::{Account, AdapterFactory, Services};
use nuncio_channel_http::testing::{Provider, RETRY_AFTER, Reply, Seen};
use nuncio_channel_twilio::TwilioFactory;
use nuncio_domain::Channel;
use serde_json::json;

use crate::support::{TOKEN, account, factory, refusal, said, taken, try_open};

#[derive(Debug)]
struct Twilio(TwilioFactory, Channel);

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

#[async_trait]
impl Harness for Twilio {
    fn factory(&self) -> &dyn AdapterFactory {
        &self.0
    }

    fn account(&self) -> Account {
        account(self.1, "https://api.example", json!({}))
    }

    fn more_secrets(&self) -> Vec<String> {
        // The login of the requests.
        vec!["QUMwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMTowMTIzNDU2Nzg5YWJjZGVmLWF1dGgtdG9rZW4=".to_owned()]
    }

    fn services(&self) -> Services {
        services()
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let identity = |seen: &Seen| if seen.method == "POST" { said(seen, "StatusCallback") } else { None };
        let open = |base: &str| try_open(&account(self.1, base, json!({}))).unwrap();
        Provider::rig(mode, "+34600111333", identity, move |seen| respond(mode, seen), open).await
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    for channel in [Channel::Sms, Channel::SmsOneway, Channel::Voice] {
        assert_eq!(run_all(&Twilio(factory(), channel)).await, Report { missing: vec![Mode::AnswersNever] });
    }
}
