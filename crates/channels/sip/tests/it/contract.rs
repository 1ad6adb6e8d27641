//! The adapter keeps the contract in every mode.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Peer, Report, Rig, run_all};
use nuncio_channel::{Account, AdapterFactory, ProviderEvent, Services};
use serde_json::json;
use tokio::sync::mpsc;

use crate::carrier::{Act, Carrier, Script, Talk};
use crate::support::{TO, account, factory, services};

#[derive(Debug)]
struct Sip(AdapterFactory);

#[derive(Debug)]
struct Taken {
    taken: Arc<Mutex<Vec<String>>>,
    _carrier: Carrier,
    _events: mpsc::UnboundedReceiver<ProviderEvent>,
}

impl Peer for Taken {
    /// The Call-ID is what names a call.
    fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap().clone()
    }
}

fn script(mode: Mode) -> Script {
    match mode {
        Mode::Accepts | Mode::Unreachable => Script::new(Act::Answer(Talk::listens())),
        Mode::RejectsPermanently => Script::new(Act::Refuse(404, "")),
        Mode::Throttles => Script::new(Act::Refuse(503, "Retry-After: 17\r\n")),
        Mode::FailsTemporarily => Script::new(Act::Refuse(500, "")),
        Mode::AnswersNever => Script { options: None, ..Script::new(Act::Silence) },
        Mode::LosesAnswer => Script::new(Act::Silence),
        Mode::Garbage => Script::new(Act::Garbage),
        Mode::BadCredentials => Script { login: Some(false), ..Script::new(Act::Silence) },
    }
}

#[async_trait]
impl Harness for Sip {
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
        let carrier = Carrier::start(script(mode)).await;
        // Nobody listens on port 1.
        let port = if mode == Mode::Unreachable { 1 } else { carrier.port };
        let (services, _, events) = services();
        let timeout = match mode {
            Mode::AnswersNever | Mode::Unreachable => 1,
            // OPTIONS is answered within this time, INVITE is not.
            Mode::LosesAnswer | Mode::Garbage => 3,
            _ => 20,
        };
        let adapter = self.0.open(&account(port, json!({ "timeout_seconds": timeout })), &services).unwrap();
        let retry_after = (mode == Mode::Throttles).then_some(Duration::from_secs(17));
        let taken = Arc::clone(&carrier.taken);
        Some(Rig { adapter, to: TO.to_owned(), retry_after, peer: Box::new(Taken { taken, _carrier: carrier, _events: events }) })
    }
}

#[tokio::test]
async fn the_adapter_keeps_the_contract() {
    assert_eq!(run_all(&Sip(factory())).await, Report { missing: vec![] });
}
