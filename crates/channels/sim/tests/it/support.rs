//! What the tests stand on: an event sink that writes down, and accounts.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Account, EventSink, ProviderEvent, Services, Unrecorded, testing};
use nuncio_domain::Channel;
use parking_lot::Mutex;
use serde_json::json;

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

pub(crate) fn services(events: Arc<dyn EventSink>) -> Services {
    Services { events, ..testing::services() }
}

pub(crate) fn account(channel: Channel) -> Account {
    testing::account(channel, json!({}), json!({}), json!({}))
}
