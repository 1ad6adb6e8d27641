//! The adapter keeps the contract in every mode that HTTP has.

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Report, Rig, run_all};
use nuncio_channel::testing::services;
use nuncio_channel::{Account, AdapterFactory, Services};
use nuncio_channel_http::testing::{Provider, RETRY_AFTER, Reply, Seen};
use nuncio_channel_kannel::KannelFactory;
use nuncio_domain::Channel;
use serde_json::{Value, json};

use crate::support::{PASSWORD, SECRET, account, factory, identity};

#[derive(Debug)]
struct Kannel {
    factory: KannelFactory,
    channel: Channel,
    settings: Value,
}

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

#[async_trait]
impl Harness for Kannel {
    fn factory(&self) -> &dyn AdapterFactory {
        &self.factory
    }

    fn account(&self) -> Account {
        Account { channel: self.channel, ..account("https://gateway.example", self.settings.clone()) }
    }

    fn more_secrets(&self) -> Vec<String> {
        vec![PASSWORD.replace('&', "%26").replace(' ', "+"), PASSWORD.replace('&', "%26").replace(' ', "%20"), SECRET.replace('+', "%2B")]
    }

    fn services(&self) -> Services {
        services()
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let account = |base: &str| Account { channel: self.channel, ..account(base, self.settings.clone()) };
        let open = |base: &str| self.factory.open(&account(base), &services()).unwrap();
        Provider::rig(mode, "+34600111222", identity, move |seen| respond(mode, seen), open).await
    }
}

#[tokio::test]
async fn it_keeps_the_contract() {
    for channel in [Channel::Sms, Channel::SmsOneway] {
        for settings in [json!({}), json!({"method": "post"})] {
            let report = run_all(&Kannel { factory: factory(), channel, settings }).await;
            assert_eq!(report, Report { missing: vec![Mode::AnswersNever] });
        }
    }
}
