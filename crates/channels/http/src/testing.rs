//! What the tests of HTTP adapters share. Panics where a test would.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::contract::{Harness, Mode, Peer, Report, Rig, run_all};
pub use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_channel::{Account, Adapter, AdapterFactory, Services};
use nuncio_net::{GuardPolicy, Network};

use crate::HttpFactory;

/// The delay that peers ask for with `Retry-After` in [`Mode::Throttles`].
pub const RETRY_AFTER: &str = "17";
/// Where nothing listens.
pub const NOWHERE: &str = "http://127.0.0.1:9";

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

/// An adapter and its scripted provider, to be held to the contract of adapters.
pub struct Case {
    /// The factory under test.
    pub factory: HttpFactory,
    /// An account for the API at a base URL.
    pub account: Box<dyn Fn(&str) -> Account + Send + Sync>,
    /// What the adapters are given.
    pub services: Services,
    /// The recipient of the messages.
    pub to: &'static str,
    /// What makes two messages one, of a request that sends one.
    pub identity: fn(&Seen) -> Option<String>,
    /// The provider's response in a mode.
    pub respond: fn(Mode, &Seen) -> Reply,
    /// Encoded forms of the secrets, which must not be seen either.
    pub more_secrets: Vec<String>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.factory.fmt(f)
    }
}

impl Case {
    /// Runs the contract suite in every mode that HTTP has.
    ///
    /// # Panics
    ///
    /// When the adapter breaks the contract.
    pub async fn holds(self) {
        assert_eq!(run_all(&self).await, Report { missing: vec![Mode::AnswersNever] });
    }
}

#[async_trait]
impl Harness for Case {
    fn factory(&self) -> &dyn AdapterFactory {
        &self.factory
    }

    fn account(&self) -> Account {
        (self.account)("https://api.example")
    }

    fn more_secrets(&self) -> Vec<String> {
        self.more_secrets.clone()
    }

    fn services(&self) -> Services {
        self.services.clone()
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let respond = self.respond;
        let open = |base: &str| self.factory.open(&(self.account)(base), &self.services).unwrap_or_else(|errors| panic!("{errors:?}"));
        Provider::rig(mode, self.to, self.identity, move |seen| respond(mode, seen), open).await
    }
}
