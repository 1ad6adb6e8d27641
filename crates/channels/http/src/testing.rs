//! What the tests of HTTP adapters share. Panics where a test would.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Peer, Report, Rig, run_all};
pub use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_channel::testing::{self, services};
use nuncio_channel::{Account, Adapter, AdapterFactory, CallError, CallbackRequest, ParsedCallback, Services};
use nuncio_domain::message::Message;
use nuncio_domain::{Channel, FieldError, MessageType, Timestamp};
use nuncio_net::header::{HeaderName, HeaderValue};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Value, json};

/// The delay that peers ask for with `Retry-After` in [`Mode::Throttles`].
pub const RETRY_AFTER: &str = "17";
/// Where nothing listens.
pub const NOWHERE: &str = "http://127.0.0.1:9";
/// The callback URL of a connection, for [`call`].
pub const CALLBACK: &str = "https://nuncio.example/providers/kind/cnx_1";
/// When callbacks arrive: 2026-11-21T23:45:00Z.
pub const NOW: Timestamp = Timestamp::from_millis(1_795_304_700_000);

/// Reading the system's certificates takes time, so all tests share one.
static NETWORK: LazyLock<Network> = LazyLock::new(|| {
    let policy = GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() };
    Network::new(policy).unwrap_or_else(|error| panic!("{error}"))
});

/// A network that reaches scripted providers.
pub fn network() -> Network {
    NETWORK.clone()
}

/// A scripted provider. Ends with the test's runtime.
#[derive(Clone, Debug)]
pub struct Provider {
    server: Scripted,
    identity: fn(&Seen) -> Option<String>,
}

impl Provider {
    /// Answers each request as `script` says. `identity` is what makes two messages one; it is `None` for requests that send nothing.
    pub async fn start(identity: fn(&Seen) -> Option<String>, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self { server: Scripted::start(script).await, identity }
    }

    /// A peer for the contract suite. `script` answers what `mode` asks for, except that nothing listens in `Unreachable`, that the
    /// connection is closed in `LosesAnswer`, and that there is no `AnswersNever`: HTTP writes the message before the provider can fall silent.
    /// `open` opens the adapter for the API at a base URL.
    pub async fn rig(
        mode: Mode,
        to: &str,
        identity: fn(&Seen) -> Option<String>,
        script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
        open: impl FnOnce(&str) -> Arc<dyn Adapter>,
    ) -> Option<Rig> {
        if mode == Mode::AnswersNever {
            return None;
        }
        let loses = move |seen: &Seen| mode == Mode::LosesAnswer && identity(seen).is_some();
        let provider = Self::start(identity, move |seen| if loses(seen) { Reply::HangUp } else { script(seen) }).await;
        let adapter = if mode == Mode::Unreachable { open(NOWHERE) } else { open(&provider.base()) };
        let retry_after = (mode == Mode::Throttles).then(|| RETRY_AFTER.parse().map(Duration::from_secs).ok()).flatten();
        Some(Rig { adapter, to: to.to_owned(), retry_after, peer: Box::new(provider) })
    }
}

impl Deref for Provider {
    type Target = Scripted;

    fn deref(&self) -> &Scripted {
        &self.server
    }
}

impl Peer for Provider {
    fn taken(&self) -> Vec<String> {
        self.seen().iter().filter(|seen| seen.taken).filter_map(self.identity).collect()
    }
}

/// The accounts of a provider in tests.
#[derive(Clone, Copy, Debug)]
pub struct Accounts {
    /// The factory under test.
    pub factory: fn(Network) -> AdapterFactory,
    pub channel: Channel,
    /// The recipient of messages, in canonical form.
    pub to: &'static str,
    /// The fewest settings with which an API at a base URL works.
    pub settings: fn(&str) -> Value,
    /// All secrets. They occur nowhere else.
    pub secrets: fn() -> Value,
}

impl Accounts {
    /// The same on another channel.
    #[must_use]
    pub const fn on(self, channel: Channel) -> Self {
        Self { channel, ..self }
    }

    /// The factory, with a network that reaches scripted providers.
    pub fn factory(&self) -> AdapterFactory {
        (self.factory)(network())
    }

    /// An account for the API at a base URL, with more settings.
    pub fn account(&self, base: &str, more: Value) -> Account {
        testing::account(self.channel, (self.settings)(base), more, (self.secrets)())
    }

    /// Opens an account, or returns the errors of its settings.
    pub fn try_open(&self, account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        self.factory().open(account, &services())
    }

    /// An adapter for a scripted API.
    pub fn open(&self, api: &Scripted, more: Value) -> Arc<dyn Adapter> {
        self.opened(&api.base(), more)
    }

    /// An adapter that makes no requests.
    pub fn offline(&self, more: Value) -> Arc<dyn Adapter> {
        self.opened(NOWHERE, more)
    }

    fn opened(&self, base: &str, more: Value) -> Arc<dyn Adapter> {
        self.try_open(&self.account(base, more)).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    /// A message to the recipient.
    pub fn message(&self, message_type: MessageType, text: Option<&str>, content: Value) -> Message {
        testing::message(&self.account(NOWHERE, json!({})), self.to, message_type, text, content)
    }

    /// The sorted names of the fields that these settings and secrets have wrong. No error shows `hunter2`.
    pub fn faults(&self, settings: Value, secrets: Value) -> Vec<String> {
        let account = testing::account(self.channel, settings, json!({}), secrets);
        testing::paths(self.try_open(&account).err().unwrap_or_default(), "hunter2")
    }
}

/// Calls back, with a request to a URL that begins with [`CALLBACK`].
pub fn call(
    adapter: &Arc<dyn Adapter>,
    method: &str,
    url: &str,
    headers: &[(&'static str, &str)],
    body: &[u8],
) -> Result<ParsedCallback, CallError> {
    let value = |text: &str| HeaderValue::from_str(text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
    let headers = headers.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect();
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let rest = path.strip_prefix(CALLBACK).unwrap_or_default().trim_start_matches('/');
    adapter.callback(&CallbackRequest { method, url, rest, query, headers: &headers, body, now: NOW })
}

/// An adapter and its scripted provider, to be held to the contract of adapters.
#[derive(Debug)]
pub struct Case {
    pub accounts: Accounts,
    /// Settings of the account besides those it must have.
    pub settings: Value,
    /// What makes two messages one, of a request that sends one.
    pub identity: fn(&Seen) -> Option<String>,
    /// The provider's response in a mode.
    pub respond: fn(Mode, &Seen) -> Reply,
    /// Encoded forms of the secrets, which must not be seen either.
    pub more_secrets: Vec<String>,
}

impl Case {
    /// Runs the contract suite in every mode that HTTP has.
    ///
    /// # Panics
    ///
    /// When the adapter breaks the contract.
    pub async fn holds(self) {
        let harness = CaseHarness { factory: self.accounts.factory(), case: self };
        assert_eq!(run_all(&harness).await, Report { missing: vec![Mode::AnswersNever] });
    }
}

#[derive(Debug)]
struct CaseHarness {
    factory: AdapterFactory,
    case: Case,
}

#[async_trait]
impl Harness for CaseHarness {
    fn factory(&self) -> &AdapterFactory {
        &self.factory
    }

    fn account(&self) -> Account {
        self.case.accounts.account("https://api.example", self.case.settings.clone())
    }

    fn more_secrets(&self) -> Vec<String> {
        self.case.more_secrets.clone()
    }

    fn services(&self) -> Services {
        services()
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let Case { accounts, settings, identity, respond, .. } = &self.case;
        let (respond, open) = (*respond, |base: &str| accounts.opened(base, settings.clone()));
        Provider::rig(mode, accounts.to, *identity, move |seen| respond(mode, seen), open).await
    }
}
