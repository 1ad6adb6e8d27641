//! A Graph API that follows a script, for the tests of the channels. Panics where a test would.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use hmac::{Hmac, Mac as _};
use nuncio_channel::contract::Peer;
use nuncio_channel::scripted::Scripted;
pub use nuncio_channel::scripted::{Reply, Seen};
use nuncio_channel::{EventSink, ProviderEvent, Services, Unrecorded};
use nuncio_domain::{Clock, Entropy, Ids, Timestamp};
use nuncio_net::{GuardPolicy, Network};
use serde_json::{Value, json};
use sha2::Sha256;

/// An error of the API.
pub fn refusal(status: u16, code: i64, message: &str) -> Reply {
    let error = json!({"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "Az8or2yhqkZfEZ-_4Qn_Bam"});
    Reply::json(status, &json!({"error": error}))
}

/// A token. Occurs nowhere else.
pub const TOKEN: &str = "EAAGm0PX4ZCpsBO-access-token";
/// An app's secret.
pub const SECRET: &str = "f00dfeedbeefcafe-app-secret";
/// A word for Meta.
pub const WORD: &str = "a-word-for-meta";

/// Events come by callback only, and time with the call.
#[derive(Debug)]
struct Nothing;

impl Clock for Nothing {
    fn now(&self) -> Timestamp {
        unreachable!("the time comes with the request")
    }
    fn monotonic(&self) -> Duration {
        unreachable!("not used")
    }
}

impl Entropy for Nothing {
    fn fill(&self, out: &mut [u8]) {
        out.fill(0xab);
    }
}

#[async_trait::async_trait]
impl EventSink for Nothing {
    fn push(&self, event: ProviderEvent, _: Duration) {
        unreachable!("nothing is told but by callback: {event:?}")
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        unreachable!("nothing is told but by callback: {event:?}")
    }
}

/// What adapters are given: nothing that they need, for they are called back.
pub fn services() -> Services {
    let ids = Ids { clock: Arc::new(Nothing), entropy: Arc::new(Nothing) };
    Services { events: Arc::new(Nothing), ids, public_url: "https://nuncio.example".into() }
}

/// A way out that leads to [`Api`].
pub fn network() -> Network {
    let policy = GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() };
    Network::new(policy).expect("a way out")
}

/// A Graph API. Ends with the test's runtime.
#[derive(Clone, Debug)]
pub struct Api {
    server: Scripted,
    identity: fn(&Value) -> String,
}

impl Api {
    /// Listens, and answers each call as `script` says. `identity` is that by which two messages are seen to be one.
    pub async fn start(identity: fn(&Value) -> String, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self { server: Scripted::start(script).await, identity }
    }
}

impl Deref for Api {
    type Target = Scripted;

    fn deref(&self) -> &Scripted {
        &self.server
    }
}

impl Peer for Api {
    fn taken(&self) -> Vec<String> {
        let sends = self.seen().into_iter().filter(|seen| seen.path.ends_with("/messages") && seen.taken);
        sends.map(|seen| (self.identity)(&seen.json())).collect()
    }
}

/// `X-Hub-Signature-256` of a body, by [`SECRET`].
pub fn sign(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}
