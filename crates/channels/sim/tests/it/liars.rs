//! The suite of the contract finds the faults that it is there to find: adapters with one fault each, and the panic that each earns.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Peer, Rig, checks, description, identity, outcome, run_all, settings};
use nuncio_channel::{Account, Adapter, AdapterFactory, Capabilities, Field, FieldKind, Outcome, Scope, SendRequest, Services, Settings};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, FieldError, MessageType, Redacted};
use parking_lot::Mutex;
use serde_json::json;

use crate::support::{Recorder, account, services};

const PASSWORD: &str = "correct-horse-battery";
const RETRY_AFTER: Duration = Duration::from_secs(7);
static CAPABILITIES: Capabilities =
    Capabilities { message_types: &[MessageType::Text], receipts: nuncio_channel::Receipts::Never, window: 1 };
static FIELDS: &[Field] = &[
    Field { name: "host", kind: FieldKind::Text, secret: false, required: true, help: "where the peer is" },
    Field { name: "password", kind: FieldKind::Text, secret: true, required: true, help: "what the peer wants to hear" },
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    None,
    /// This mode is answered with the outcome that another one wants.
    Answers(Mode, Mode),
    /// The delay that the peer asked for is not passed on.
    ForgetsDelay,
    SendsTwice,
    /// What was sent is said not to have been sent.
    SendsAndDefers,
    NewIdentity,
    OneIdentity,
    LeaksInDebug,
    LeaksInFailure,
    LeaksInCheck,
    ChecksNothing,
    ChecksBySending,
    FirstFaultOnly,
    IgnoresUnknown,
    ShowsSecretSetting,
}

type Taken = Arc<Mutex<Vec<String>>>;

#[derive(Debug)]
struct Recorded(Taken);

impl Peer for Recorded {
    fn taken(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

struct Liar {
    fault: Fault,
    mode: Mode,
    taken: Taken,
}

impl fmt::Debug for Liar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.fault == Fault::LeaksInDebug { PASSWORD } else { "Liar" })
    }
}

impl Liar {
    fn take(&self, request: &SendRequest<'_>) {
        let mut taken = self.taken.lock();
        let id = match self.fault {
            Fault::NewIdentity => format!("{} {}", request.message.id, taken.len()),
            Fault::OneIdentity => "always the same".to_owned(),
            _ => request.message.id.to_string(),
        };
        taken.push(id);
    }

    fn failure(&self, code: FailureCode) -> Failure {
        Failure::own(code, if self.fault == Fault::LeaksInFailure { format!("AUTH {PASSWORD}") } else { "it did not work".to_owned() })
    }

    fn deferred(&self, code: FailureCode, scope: Scope) -> Outcome {
        let asked = code == FailureCode::RateLimited && self.fault != Fault::ForgetsDelay;
        Outcome::Deferred { retry_after: asked.then_some(RETRY_AFTER), failure: self.failure(code), scope }
    }
}

#[async_trait]
impl Adapter for Liar {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let mode = match self.fault {
            Fault::Answers(mode, other) if mode == self.mode => other,
            _ => self.mode,
        };
        if matches!(self.mode, Mode::Accepts | Mode::LosesAnswer | Mode::Garbage) || self.fault == Fault::SendsAndDefers {
            self.take(request);
        }
        if self.fault == Fault::SendsTwice && self.mode == Mode::LosesAnswer {
            self.take(request);
        }
        match mode {
            Mode::Accepts => Outcome::Accepted { refs: Vec::new(), cost: None },
            Mode::RejectsPermanently => Outcome::Rejected { failure: self.failure(FailureCode::ProviderRejected) },
            Mode::Throttles => self.deferred(FailureCode::RateLimited, Scope::Connection),
            Mode::FailsTemporarily | Mode::AnswersNever => self.deferred(FailureCode::Undeliverable, Scope::Message),
            Mode::LosesAnswer | Mode::Garbage => Outcome::Unknown { failure: self.failure(FailureCode::UnknownOutcome), refs: Vec::new() },
            Mode::Unreachable => self.deferred(FailureCode::Undeliverable, Scope::Connection),
            Mode::BadCredentials => self.deferred(FailureCode::CredentialsInvalid, Scope::Connection),
        }
    }

    async fn check(&self) -> Result<String, String> {
        if self.fault == Fault::ChecksBySending {
            self.taken.lock().push("a test message".to_owned());
        }
        match self.mode {
            Mode::Unreachable | Mode::BadCredentials if self.fault == Fault::LeaksInCheck => Err(format!("{PASSWORD} was refused")),
            Mode::Unreachable | Mode::BadCredentials if self.fault != Fault::ChecksNothing => Err("it does not work".to_owned()),
            _ => Ok("logged in".to_owned()),
        }
    }
}

fn factory(fault: Fault) -> AdapterFactory {
    AdapterFactory::new("liar", &[Channel::Email], FIELDS, move |account, _| {
        if let Err(mut faults) = Settings::new(FIELDS, account).finish() {
            match fault {
                Fault::FirstFaultOnly => faults.truncate(1),
                Fault::IgnoresUnknown => faults.retain(|f| !f.path.ends_with("unknown")),
                Fault::ShowsSecretSetting => faults.push(FieldError::new("secrets", format!("{:?}", account.secrets.expose()))),
                _ => {}
            }
            return Err(faults);
        }
        Ok(Arc::new(Liar { fault, mode: Mode::Accepts, taken: Taken::default() }))
    })
}

#[derive(Debug)]
struct LiarHarness(Fault, AdapterFactory);

#[async_trait]
impl Harness for LiarHarness {
    fn factory(&self) -> &AdapterFactory {
        &self.1
    }

    fn account(&self) -> Account {
        let mut account = account(Channel::Email);
        account.settings.insert("host".to_owned(), json!("mail.example.org"));
        account.secrets = Redacted::new([("password".to_owned(), json!(PASSWORD))].into_iter().collect());
        account
    }

    fn services(&self) -> Services {
        services(Arc::new(Recorder::default()))
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let taken = Taken::default();
        let adapter = Arc::new(Liar { fault: self.0, mode, taken: taken.clone() });
        Some(Rig {
            adapter,
            to: "ada@example.org".to_owned(),
            retry_after: (mode == Mode::Throttles).then_some(RETRY_AFTER),
            peer: Box::new(Recorded(taken)),
        })
    }
}

fn harness(fault: Fault) -> LiarHarness {
    LiarHarness(fault, factory(fault))
}

/// The words of the panic that the suite ends in.
async fn caught(fault: Fault) -> String {
    let ended = tokio::spawn(async move {
        let _ = run_all(&harness(fault)).await;
    });
    let panic: Box<dyn Any + Send> = ended.await.expect_err("the suite found nothing").into_panic();
    panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
}

#[tokio::test]
async fn an_honest_adapter_passes_whole_and_case_by_case() {
    let honest = harness(Fault::None);
    assert_eq!(run_all(&honest).await.missing, []);
    for mode in Mode::ALL {
        assert!(outcome(&honest, mode).await, "{mode:?}");
    }
    identity(&honest).await;
    checks(&honest).await;
    description(&honest);
    settings(&honest);
}

#[tokio::test]
async fn a_outcome_that_belongs_to_another_mode_is_found() {
    // These answer alike, or one is a stricter form of the other.
    let alike = |mode, other| match mode {
        Mode::FailsTemporarily | Mode::AnswersNever => matches!(other, Mode::FailsTemporarily | Mode::AnswersNever | Mode::Unreachable),
        Mode::LosesAnswer | Mode::Garbage => matches!(other, Mode::LosesAnswer | Mode::Garbage),
        _ => mode == other,
    };
    let mut tried = 0;
    for mode in Mode::ALL {
        for other in Mode::ALL.into_iter().filter(|other| !alike(mode, *other)) {
            let words = caught(Fault::Answers(mode, other)).await;
            let judged =
                ["wrong kind of outcome", "must not be accepted"].iter().any(|fault| words.starts_with(&format!("{mode:?}: {fault}")));
            assert!(judged, "{mode:?} answered as {other:?}: {words}");
            tried += 1;
        }
    }
    assert_eq!(tried, 66);
}

#[tokio::test]
async fn each_other_fault_is_found() {
    for (fault, words) in [
        (Fault::ForgetsDelay, "Throttles: wrong kind of outcome, scope, code or delay"),
        (Fault::SendsTwice, "LosesAnswer: one attempt was made, the peer took"),
        (Fault::SendsAndDefers, "RejectsPermanently: one attempt was made, the peer took"),
        (Fault::NewIdentity, "the same attempt, made twice, bears two identities"),
        (Fault::OneIdentity, "two messages bear the same identity"),
        (Fault::LeaksInDebug, "Accepts: a secret shows in <the secret>"),
        (Fault::LeaksInFailure, "RejectsPermanently: a secret shows in"),
        (Fault::LeaksInCheck, "Unreachable: a secret shows in <the secret> was refused"),
        (Fault::ChecksNothing, "Unreachable: check() said Ok"),
        (Fault::ChecksBySending, "Accepts: check() sent something"),
        (Fault::FirstFaultOnly, "no error for"),
        (Fault::IgnoresUnknown, "no error for [\"settings.contract_unknown\", \"secrets.contract_unknown\"]"),
        (Fault::ShowsSecretSetting, "a fault shows a secret"),
    ] {
        let told = caught(fault).await;
        assert!(told.contains(words), "{fault:?}: {told}");
    }
}
