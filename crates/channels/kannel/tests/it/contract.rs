//! The adapter keeps the contract in every mode that HTTP has.

use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Report, Rig, run_all};
use nuncio_channel::scripted::{Reply, Scripted};
use nuncio_channel::{Account, AdapterFactory, Services};
use nuncio_channel_kannel::KannelFactory;
use nuncio_domain::Channel;
use serde_json::{Value, json};

use crate::support::{Gateway, PASSWORD, SECRET, account, factory, identity, services};

#[derive(Debug)]
struct Kannel {
    factory: KannelFactory,
    channel: Channel,
    settings: Value,
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
        let retry_after = (mode == Mode::Throttles).then_some(Duration::from_secs(17));
        let gateway = Scripted::start(move |seen| match mode {
            // Some gateways repeat what they got.
            Mode::BadCredentials => Reply::text(403, &format!("Authorization failed for sendsms ({PASSWORD})")),
            _ if identity(seen).is_none() => Reply::text(400, "Missing receiver number, rejected"),
            Mode::RejectsPermanently => Reply::text(403, "Not routable. Do not try again."),
            Mode::Throttles => Reply::text(429, "Slow down").with("Retry-After", "17"),
            Mode::FailsTemporarily => Reply::text(503, "Temporal failure, try again later."),
            Mode::LosesAnswer => Reply::HangUp,
            Mode::Garbage => Reply::text(200, "<html>"),
            _ => Reply::text(202, "0: Accepted for delivery"),
        });
        let gateway = match mode {
            // Over HTTP the message is written before anybody could fall silent.
            Mode::AnswersNever => return None,
            _ => gateway.await,
        };
        let base = if mode == Mode::Unreachable { "http://127.0.0.1:9".to_owned() } else { gateway.base() };
        let account = Account { channel: self.channel, ..account(&base, self.settings.clone()) };
        let adapter = self.factory.open(&account, &services()).unwrap();
        Some(Rig { adapter, to: "+34600111222".to_owned(), retry_after, peer: Box::new(Gateway(gateway)) })
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
