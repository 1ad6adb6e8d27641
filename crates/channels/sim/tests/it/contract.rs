//! The simulator keeps the contract of adapters in every mode that a recipient can put it into.

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Peer, Report, Rig, run_all};
use nuncio_channel::{Account, AdapterFactory, ProviderEvent, ReceiptTarget, Services};
use nuncio_channel_sim::{RETRY_AFTER, factory};
use nuncio_domain::Channel;

use crate::support::{Recorder, account, services};

#[derive(Debug)]
struct Simulated(Channel, AdapterFactory);

#[derive(Debug)]
struct Recipient(Arc<Recorder>);

impl Peer for Recipient {
    fn taken(&self) -> Vec<String> {
        let taken = self.0.all().into_iter().filter_map(|(event, _)| match event {
            ProviderEvent::Receipt { target: ReceiptTarget::Attempt { message, attempt: Some(attempt), .. }, .. } => {
                Some(format!("{message} {attempt}"))
            }
            _ => None,
        });
        taken.collect()
    }
}

impl Simulated {
    fn recipient(&self, mode: Mode) -> Option<String> {
        let (digit, name) = match mode {
            Mode::Accepts => (Some(9), Some("ada")),
            Mode::RejectsPermanently => (Some(1), Some("invalid")),
            Mode::Throttles => (Some(4), Some("throttle")),
            Mode::AnswersNever => (Some(3), Some("delay")),
            Mode::LosesAnswer => (Some(8), Some("unknown")),
            Mode::Unreachable | Mode::BadCredentials => (Some(9), Some("ada")),
            Mode::FailsTemporarily | Mode::Garbage => (None, None),
        };
        match self.0 {
            Channel::Email => name.map(|name| format!("{name}@example.org")),
            Channel::Telegram | Channel::Instagram => digit.map(|n| format!("90000000{n}")),
            Channel::Sms | Channel::SmsOneway | Channel::Whatsapp | Channel::Voice => digit.map(|n| format!("+1212555000{n}")),
        }
    }
}

#[async_trait]
impl Harness for Simulated {
    fn factory(&self) -> &AdapterFactory {
        &self.1
    }

    fn account(&self) -> Account {
        account(self.0)
    }

    fn services(&self) -> Services {
        services(Arc::new(Recorder::default()))
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let to = self.recipient(mode)?;
        let events = Arc::new(Recorder::default());
        let mut account = self.account();
        let fails = match mode {
            Mode::Unreachable => Some("unreachable"),
            Mode::BadCredentials => Some("refused"),
            _ => None,
        };
        account.settings.extend(fails.map(|fails| ("fails".to_owned(), fails.into())));
        let adapter = self.1.open(&account, &services(events.clone())).expect("good settings");
        let retry_after = (mode == Mode::Throttles).then_some(RETRY_AFTER);
        Some(Rig { adapter, to, retry_after, peer: Box::new(Recipient(events)) })
    }
}

#[tokio::test]
async fn the_simulator_keeps_the_contract_on_every_channel() {
    for channel in Channel::ALL {
        let missing = vec![Mode::FailsTemporarily, Mode::Garbage];
        assert_eq!(run_all(&Simulated(*channel, factory())).await, Report { missing }, "{channel}");
    }
}
