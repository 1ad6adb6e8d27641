//! What every adapter owes, as a suite that each provider's crate runs against a peer of its own.
//!
//! The crate implements [`Harness`]: it starts a peer that behaves as a [`Mode`] says and opens an adapter on it, with time-outs that
//! are short enough for a test. Then [`run_all`] does the rest; every broken promise is a panic that names the mode.
//! A mode that cannot happen with a provider is `None`: it is printed and counted, so a test can assert that no other is missing.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::{Detail, Direction, FailureCode, Message, Request, Route, State, Status, Wait};
use nuncio_domain::{AddressId, Channel, FieldError, MessageId, MessageType, Redacted, RequestedChannel, SenderId, Timestamp};
use serde_json::{Map, Value, json};

use crate::{Account, Adapter, AdapterFactory, Outcome, Scope, SendRequest, Services, Sessions};

pub mod arbitrary;

/// When the suite's messages are sent: 2026-01-01T00:00:00Z.
const NOW: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// Behaviour of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Accepts everything. Requires [`Outcome::Accepted`].
    Accepts,
    /// Refuses the message permanently. Requires [`Outcome::Rejected`].
    RejectsPermanently,
    /// Throttles. Requires [`Outcome::Deferred`] with `rate_limited` and the peer's own delay.
    Throttles,
    /// Reports an internal error before it accepts the message. Requires [`Outcome::Deferred`].
    FailsTemporarily,
    /// Stops responding before the message is written. Requires [`Outcome::Deferred`].
    AnswersNever,
    /// Stops responding or hangs up after the whole message is written. Requires [`Outcome::Unknown`].
    LosesAnswer,
    /// Responds to the whole message with garbage. Requires [`Outcome::Unknown`].
    Garbage,
    /// Cannot be connected to. Requires [`Outcome::Deferred`] for the whole connection.
    Unreachable,
    /// Rejects the credentials. Requires [`Outcome::Deferred`] for the whole connection, with `credentials_invalid`.
    BadCredentials,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 9] = [
        Self::Accepts,
        Self::RejectsPermanently,
        Self::Throttles,
        Self::FailsTemporarily,
        Self::AnswersNever,
        Self::LosesAnswer,
        Self::Garbage,
        Self::Unreachable,
        Self::BadCredentials,
    ];
}

/// What a provider's crate supplies to the suite.
#[async_trait]
pub trait Harness: Debug + Send + Sync {
    /// The factory under test.
    fn factory(&self) -> &AdapterFactory;

    /// Returns an account that the factory accepts. Its secrets occur nowhere else.
    fn account(&self) -> Account;

    /// Returns everything besides the secrets of [`Harness::account`] that must never be shown, such as their encoded forms.
    fn more_secrets(&self) -> Vec<String> {
        Vec::new()
    }

    fn services(&self) -> Services;

    /// Returns an adapter and a peer in `mode`; `None` if the provider cannot behave like that.
    async fn rig(&self, mode: Mode) -> Option<Rig>;
}

/// An adapter and its peer.
#[derive(Debug)]
pub struct Rig {
    pub adapter: Arc<dyn Adapter>,
    /// The recipient of the messages, in canonical form.
    pub to: String,
    /// The delay that the peer requests in [`Mode::Throttles`].
    pub retry_after: Option<Duration>,
    /// Dropped with the rig.
    pub peer: Box<dyn Peer>,
}

/// The provider side of an adapter.
pub trait Peer: Debug + Send + Sync {
    /// Returns the identity of each message that the peer received in full, whether it responded or not, oldest first: the value by which a
    /// provider recognises duplicates.
    fn taken(&self) -> Vec<String>;
}

/// Cases that the suite could not test.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct Report {
    /// Modes that the provider does not have.
    pub missing: Vec<Mode>,
}

/// Runs and prints every case. Panics at the first violation.
pub async fn run_all(harness: &dyn Harness) -> Report {
    let name = format!("contract {}/{}", harness.factory().kind(), harness.account().channel);
    let mut missing = Vec::new();
    for mode in Mode::ALL {
        if outcome(harness, mode).await {
            println!("{name}: {mode:?} held");
        } else {
            println!("{name}: {mode:?} NOT COVERED, the provider has no such mode");
            missing.push(mode);
        }
    }
    identity(harness).await;
    println!("{name}: identity held");
    checks(harness).await;
    println!("{name}: check held");
    description(harness);
    settings(harness);
    println!("{name}: settings held");
    println!("{name}: {} of {} modes covered; NOT COVERED: {missing:?}", Mode::ALL.len() - missing.len(), Mode::ALL.len());
    Report { missing }
}

/// Checks that an attempt in `mode` has the required outcome, sends at most once, and shows no secret. Returns false if the provider has no
/// such mode.
pub async fn outcome(harness: &dyn Harness, mode: Mode) -> bool {
    let Some(rig) = harness.rig(mode).await else { return false };
    let message = message(&harness.account(), &rig.to, 0);
    let outcome = rig.adapter.send(&request(&message)).await;
    judge(mode, &outcome, rig.retry_after).unwrap_or_else(|fault| panic!("{mode:?}: {fault}; the outcome was {outcome:?}"));
    judge_taken(&outcome, &rig.peer.taken()).unwrap_or_else(|fault| panic!("{mode:?}: {fault}; the outcome was {outcome:?}"));
    hides_secrets(harness, mode, &format!("{:?} {outcome:?}", rig.adapter));
    true
}

/// Checks that repeating an attempt keeps its identity, and that another message has another identity.
pub async fn identity(harness: &dyn Harness) {
    let rig = accepting(harness).await;
    let account = harness.account();
    let (one, other) = (message(&account, &rig.to, 0), message(&account, &rig.to, 1));
    for message in [&one, &one, &other] {
        let _ = rig.adapter.send(&request(message)).await;
    }
    let taken = rig.peer.taken();
    let [first, again, another] = taken.as_slice() else { panic!("three were sent, the peer took {taken:?}") };
    assert_eq!(first, again, "the same attempt, made twice, bears two identities");
    assert_ne!(first, another, "two messages bear the same identity");
}

/// Checks that [`Adapter::check`] distinguishes a working account from a broken one, sends nothing, and shows no secret.
pub async fn checks(harness: &dyn Harness) {
    for mode in [Mode::Accepts, Mode::Unreachable, Mode::BadCredentials] {
        let Some(rig) = harness.rig(mode).await else { continue };
        let found = rig.adapter.check().await;
        assert_eq!(found.is_ok(), mode == Mode::Accepts, "{mode:?}: check() said {found:?}");
        let text = found.unwrap_or_else(|text| text);
        assert!(!text.trim().is_empty(), "{mode:?}: check() says nothing");
        assert_eq!(rig.peer.taken(), Vec::<String>::new(), "{mode:?}: check() sent something");
        hides_secrets(harness, mode, &text);
    }
}

/// Checks the descriptions of the factory and its adapters.
pub fn description(harness: &dyn Harness) {
    let factory = harness.factory();
    let account = harness.account();
    assert!(factory.channels().contains(&account.channel), "{} does not carry {}", factory.kind(), account.channel);
    for field in factory.fields() {
        let named = !field.name.is_empty() && field.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        assert!(named, "{:?} is not snake_case", field.name);
        assert!(!field.help.trim().is_empty(), "{} has no help", field.name);
        if field.secret {
            let given = account.secrets.expose().get(field.name).is_some();
            assert!(given || !field.required, "the harness's account lacks the secret {}", field.name);
        }
    }
    let adapter =
        factory.open(&account, &harness.services()).unwrap_or_else(|errors| panic!("the harness's account is refused: {errors:?}"));
    let capabilities = adapter.capabilities();
    assert!(capabilities.window > 0, "a window of 0 never sends");
    assert!(!capabilities.message_types.is_empty(), "an adapter that carries nothing");
    let kept = factory.has_sessions() || adapter.sessions() == Sessions::None;
    assert!(kept, "the adapter keeps sessions, but its factory does not say so: nobody would begin them");
}

/// Checks that all errors of the settings are returned at once, name what is unknown, and show no secret.
pub fn settings(harness: &dyn Harness) {
    const MARK: &str = "contract-secret-that-is-no-text";
    let factory = harness.factory();
    let mut account = harness.account();
    let (mut settings, mut secrets) = (account.settings.clone(), account.secrets.expose().clone());
    let mut wanted = vec!["settings.contract_unknown".to_owned(), "secrets.contract_unknown".to_owned()];
    settings.insert("contract_unknown".to_owned(), json!(1));
    secrets.insert("contract_unknown".to_owned(), json!(MARK));
    for field in factory.fields() {
        // An array is wrong for every kind of field.
        let (map, place, wrong) =
            if field.secret { (&mut secrets, "secrets", json!([MARK])) } else { (&mut settings, "settings", json!([])) };
        map.insert(field.name.to_owned(), wrong);
        wanted.push(format!("{place}.{}", field.name));
    }
    (account.settings, account.secrets) = (settings, Redacted::new(secrets));
    let errors = refused(harness, &account);
    names_all(&errors, &wanted).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(!format!("{errors:?}").contains(MARK), "a fault shows a secret: {errors:?}");

    let required: Vec<_> = factory
        .fields()
        .iter()
        .filter(|f| f.required)
        .map(|f| format!("{}.{}", if f.secret { "secrets" } else { "settings" }, f.name))
        .collect();
    if required.is_empty() {
        return;
    }
    (account.settings, account.secrets) = (Map::new(), Redacted::default());
    names_all(&refused(harness, &account), &required).unwrap_or_else(|fault| panic!("{fault}"));
}

/// Returns a text message (by email with a subject) from `account` to `to`, due now; `number` makes it unique.
pub fn message(account: &Account, to: &str, number: u8) -> Message {
    let email = account.channel == Channel::Email;
    let id = uuid_v7(NOW, [number; 10]);
    Message {
        tenant: account.tenant,
        id: MessageId::from_uuid(id),
        direction: Direction::Outbound,
        message_type: MessageType::Text,
        to: to.to_owned(),
        from: if email { "sender@example.org" } else { "+34600111222" }.to_owned(),
        sender: SenderId::from_uuid(id),
        address: AddressId::from_uuid(id),
        request: Arc::new(Request {
            subject: email.then(|| "The suite".to_owned()),
            ..Request::text(RequestedChannel::Only(account.channel), format!("Message {number} of the suite"))
        }),
        state: State {
            status: Status::Queued,
            wait: Wait::Attempt { due_at: NOW },
            fence: 0,
            version: 0,
            expires_at: NOW.plus(Duration::from_secs(3_600)),
            updated_at: NOW,
            route: Route { channel: account.channel, connection: account.id, provider: "contract".to_owned() },
            detail: Detail::default(),
        },
    }
}

/// Returns the first attempt of `message`, on the channel of its route.
pub fn request(message: &Message) -> SendRequest<'_> {
    SendRequest { message, attempt: 0, channel: message.state.route.channel, attachments: &[], now: NOW }
}

async fn accepting(harness: &dyn Harness) -> Rig {
    harness.rig(Mode::Accepts).await.unwrap_or_else(|| panic!("every provider can accept"))
}

fn judge(mode: Mode, outcome: &Outcome, asked: Option<Duration>) -> Result<(), String> {
    let failure = match outcome {
        Outcome::Accepted { .. } => return if mode == Mode::Accepts { Ok(()) } else { Err("must not be accepted".to_owned()) },
        Outcome::Deferred { failure, .. } | Outcome::Rejected { failure } | Outcome::Unknown { failure, .. } => failure,
    };
    if failure.message.trim().is_empty() {
        return Err("the failure says nothing".to_owned());
    }
    let code = failure.code;
    let right = match (mode, outcome) {
        (Mode::RejectsPermanently, Outcome::Rejected { .. }) => code != FailureCode::CredentialsInvalid,
        (Mode::Throttles, Outcome::Deferred { retry_after, .. }) => code == FailureCode::RateLimited && *retry_after == asked,
        (Mode::FailsTemporarily | Mode::AnswersNever, Outcome::Deferred { .. }) => trouble(code),
        (Mode::LosesAnswer | Mode::Garbage, Outcome::Unknown { .. }) => code == FailureCode::UnknownOutcome,
        (Mode::Unreachable, Outcome::Deferred { scope: Scope::Connection, .. }) => trouble(code),
        (Mode::BadCredentials, Outcome::Deferred { scope: Scope::Connection, .. }) => code == FailureCode::CredentialsInvalid,
        _ => false,
    };
    if right { Ok(()) } else { Err("wrong kind of outcome, scope, code or delay (the mode says what it wants)".to_owned()) }
}

/// Returns whether `code` fits an error that is neither about the account nor a throttle: those two have consequences of their own.
const fn trouble(code: FailureCode) -> bool {
    !matches!(code, FailureCode::CredentialsInvalid | FailureCode::RateLimited)
}

/// Checks that an adapter never sends twice by itself, and that a message it reports as not sent was not sent.
fn judge_taken(outcome: &Outcome, taken: &[String]) -> Result<(), String> {
    let right = match outcome {
        Outcome::Accepted { .. } => taken.len() == 1,
        Outcome::Deferred { .. } | Outcome::Rejected { .. } => taken.is_empty(),
        Outcome::Unknown { .. } => taken.len() <= 1,
    };
    if right { Ok(()) } else { Err(format!("one attempt was made, the peer took {taken:?}")) }
}

fn hides_secrets(harness: &dyn Harness, mode: Mode, text: &str) {
    let account = harness.account();
    let secrets = account.secrets.expose().values().filter_map(Value::as_str).map(str::to_owned).chain(harness.more_secrets());
    for secret in secrets {
        assert!(secret.len() >= 8, "{mode:?}: a secret of {} characters may occur by chance; take a longer one", secret.len());
        assert!(!text.contains(&secret), "{mode:?}: a secret shows in {}", text.replace(&secret, "<the secret>"));
    }
}

fn refused(harness: &dyn Harness, account: &Account) -> Vec<FieldError> {
    match harness.factory().open(account, &harness.services()) {
        Ok(_) => panic!("faulty settings were accepted"),
        Err(errors) => errors,
    }
}

fn names_all(errors: &[FieldError], wanted: &[String]) -> Result<(), String> {
    let forgotten: Vec<_> = wanted.iter().filter(|path| !errors.iter().any(|e| e.path == **path)).collect();
    if forgotten.is_empty() { Ok(()) } else { Err(format!("no error for {forgotten:?}; the errors were {errors:?}")) }
}
