//! The adapter keeps the contract in every mode.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Peer, Report, Rig, run_all};
use nuncio_channel::{Account, AdapterFactory, Services, stop};
use rusmpp::pdus::SubmitSm;
use serde_json::json;
use tokio::sync::watch;

use crate::smsc::{Act, Script, Smsc};
use crate::support::{TO, account, factory, keep, services};

#[derive(Debug)]
struct Smpp(AdapterFactory);

#[derive(Debug)]
struct Taken {
    taken: Arc<Mutex<Vec<SubmitSm>>>,
    _stop: watch::Sender<bool>,
}

impl Peer for Taken {
    /// SMPP 3.4 has no id of ours in a submit_sm: recipient and content are what an SMSC compares.
    fn taken(&self) -> Vec<String> {
        let octets = |submit: &SubmitSm| {
            submit.short_message().as_ref().iter().fold(format!("{:?} ", submit.destination_addr), |mut text, octet| {
                write!(text, "{octet:02x}").unwrap();
                text
            })
        };
        self.taken.lock().unwrap().iter().map(octets).collect()
    }
}

fn script(mode: Mode) -> Script {
    match mode {
        Mode::Accepts | Mode::Unreachable => Script::takes(),
        Mode::RejectsPermanently => Script::new(|_, _| Act::Refuse(0x0B)),
        Mode::Throttles => Script::new(|_, _| Act::Refuse(0x58)),
        Mode::FailsTemporarily => Script::new(|_, _| Act::Refuse(0x08)),
        Mode::AnswersNever => Script { bind: |_| None, ..Script::takes() },
        Mode::LosesAnswer => Script::new(|_, _| Act::HangUp),
        Mode::Garbage => Script::new(|_, _| Act::Say(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())),
        Mode::BadCredentials => Script { bind: |_| Some(0x0E), ..Script::takes() },
    }
}

#[async_trait]
impl Harness for Smpp {
    fn factory(&self) -> &AdapterFactory {
        &self.0
    }

    fn account(&self) -> Account {
        account(1, json!({}))
    }

    fn services(&self) -> Services {
        services().0
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let smsc = Smsc::start(script(mode)).await;
        // Nobody listens on port 1.
        let port = if mode == Mode::Unreachable { 1 } else { smsc.port };
        let timeout = if mode == Mode::AnswersNever { 1 } else { 20 };
        let (services, ..) = services();
        let adapter = self.0.open(&account(port, json!({ "timeout_seconds": timeout })), &services).unwrap();
        let (ask, asked) = stop();
        keep(&adapter, asked);
        Some(Rig { adapter, to: TO.to_owned(), retry_after: None, peer: Box::new(Taken { taken: smsc.taken, _stop: ask }) })
    }
}

#[tokio::test]
async fn the_adapter_keeps_the_contract() {
    assert_eq!(run_all(&Smpp(factory())).await, Report { missing: vec![] });
}
