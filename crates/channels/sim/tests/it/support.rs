//! What the tests stand on: an event sink that writes down, and services that stand still.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Account, EventSink, ProviderEvent, Services, Unrecorded};
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::{Channel, Clock, ConnectionId, Entropy, Ids, Redacted, TenantId, Timestamp};
use parking_lot::Mutex;
use serde_json::Map;

/// Keeps every event with its delay.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Vec<(ProviderEvent, Duration)>>);

impl Recorder {
    /// Everything that came since the last call.
    pub(crate) fn drain(&self) -> Vec<(ProviderEvent, Duration)> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Everything that came.
    pub(crate) fn all(&self) -> Vec<(ProviderEvent, Duration)> {
        self.0.lock().clone()
    }
}

#[async_trait::async_trait]
impl EventSink for Recorder {
    fn push(&self, event: ProviderEvent, after: Duration) {
        self.0.lock().push((event, after));
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        self.push(event, Duration::ZERO);
        Ok(())
    }
}

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

impl Entropy for Still {
    fn fill(&self, out: &mut [u8]) {
        out.fill(0);
    }
}

pub(crate) fn services(events: Arc<dyn EventSink>) -> Services {
    Services { events, ids: Ids { clock: Arc::new(Still), entropy: Arc::new(Still) }, public_url: "https://nuncio.example".into() }
}

pub(crate) fn account(channel: Channel) -> Account {
    let id = ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10]));
    Account { id, tenant: TenantId(3), channel, settings: Map::new(), secrets: Redacted::default(), trusted: true }
}
