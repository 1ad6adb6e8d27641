//! Queues provider events from the adapters and applies them, at once or after the delay that the adapter requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{EventSink, ProviderEvent, Unrecorded};
use nuncio_core::Core;
use nuncio_dispatch::{Dispatch, Tracker, Working};
use nuncio_domain::{Ids, LogLimit};
use nuncio_store::StoreError;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

/// Delay before an event that could not be stored is retried.
const RETRY: Duration = Duration::from_secs(1);

/// Receives events from adapters.
#[derive(Debug)]
pub(crate) struct EventQueue {
    queue: mpsc::UnboundedSender<Job>,
    tracker: Tracker,
    ids: Ids,
    delayed: Mutex<Delayed>,
}

/// A queued event; counts as work in flight.
#[derive(Debug)]
pub(crate) struct Job {
    event: ProviderEvent,
    /// Notified of the result. If `None`, the event is retried until it is stored.
    recorded: Option<oneshot::Sender<Result<(), Unrecorded>>>,
    working: Working,
}

#[derive(Debug, Default)]
struct Delayed {
    /// By monotonic due time and order of arrival.
    events: BTreeMap<(Duration, u64), ProviderEvent>,
    next: u64,
}

/// Makes the queue of a node: the sink for adapters, and the receiver for [`apply_all`].
pub(crate) fn queue(tracker: Tracker, ids: Ids) -> (Arc<EventQueue>, mpsc::UnboundedReceiver<Job>) {
    let (queue, jobs) = mpsc::unbounded_channel();
    (Arc::new(EventQueue { queue, tracker, ids, delayed: Mutex::default() }), jobs)
}

impl EventQueue {
    /// Queues the delayed events that are due; returns whether there were any.
    pub(crate) fn release_due(&self) -> bool {
        let now = self.ids.clock.monotonic();
        let due = {
            let mut delayed = self.delayed.lock();
            let later = delayed.events.split_off(&(now, u64::MAX));
            std::mem::replace(&mut delayed.events, later)
        };
        let any = !due.is_empty();
        due.into_values().for_each(|event| self.enqueue(event, None));
        any
    }

    /// Queues an event. After the node has stopped, the event is dropped and the waiting caller is notified.
    fn enqueue(&self, event: ProviderEvent, recorded: Option<oneshot::Sender<Result<(), Unrecorded>>>) {
        let _ = self.queue.send(Job { event, recorded, working: self.tracker.begin() });
    }
}

#[async_trait]
impl EventSink for EventQueue {
    fn push(&self, event: ProviderEvent, after: Duration) {
        if after.is_zero() {
            return self.enqueue(event, None);
        }
        let mut delayed = self.delayed.lock();
        let number = delayed.next;
        delayed.next += 1;
        delayed.events.insert((self.ids.clock.monotonic() + after, number), event);
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        let (recorded, answer) = oneshot::channel();
        self.enqueue(event, Some(recorded));
        answer.await.unwrap_or(Err(Unrecorded))
    }
}

/// Applies queued events concurrently until it is dropped.
pub(crate) async fn apply_all(mut jobs: mpsc::UnboundedReceiver<Job>, core: Core, dispatch: Dispatch) {
    let log = Arc::new(LogLimit::default());
    while let Some(job) = jobs.recv().await {
        let (core, dispatch, log) = (core.clone(), dispatch.clone(), Arc::clone(&log));
        tokio::spawn(async move {
            let Job { event, recorded, working: _working } = job;
            match recorded {
                Some(recorded) => drop(recorded.send(record(&core, &dispatch, event, &log).await)),
                None => insist(&core, &dispatch, event).await,
            }
        });
    }
}

async fn record(core: &Core, dispatch: &Dispatch, event: ProviderEvent, log: &LogLimit) -> Result<(), Unrecorded> {
    // By a wrong clock, a later START would be older than a STOP.
    if dispatch.is_stopping() || dispatch.has_wrong_clock() {
        return Err(Unrecorded);
    }
    core.inbound().receive(event).await.map_err(|error| {
        if let Some(suppressed) = log.line(&error.to_string(), core.ids().clock.monotonic()) {
            tracing::warn!(%error, suppressed, "failed to store provider event; asked provider to resend");
        }
        Unrecorded
    })
}

/// Stores an event, retrying without limit: an event that was accepted must not be lost while the process lives.
async fn insist(core: &Core, dispatch: &Dispatch, event: ProviderEvent) {
    loop {
        match core.inbound().receive(event.clone()).await {
            Ok(()) => return,
            Err(StoreError::Busy(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_)) if !dispatch.is_stopping() => {
                tokio::time::sleep(RETRY).await;
            }
            Err(error) => return tracing::error!(%error, "failed to store provider event"),
        }
    }
}
