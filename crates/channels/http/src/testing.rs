//! What the tests of HTTP adapters share. Panics where a test would.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use nuncio_channel::Adapter;
use nuncio_channel::contract::{Mode, Peer, Rig};
pub use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_net::{GuardPolicy, Network};

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
