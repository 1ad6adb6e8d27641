//! What providers tell: applied at once, or after the time that the adapter asks for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use nuncio_channel::{EventSink, ProviderEvent, ReceiptTarget};
use nuncio_core::inbound;
use nuncio_domain::Ids;
use nuncio_domain::lifecycle::Applied;
use nuncio_store::{StoreError, Transitioned};
use parking_lot::Mutex;

use crate::Shared;

#[derive(Debug)]
pub(crate) struct Events {
    shared: Weak<Shared>,
    ids: Ids,
    delayed: Mutex<Delayed>,
}

#[derive(Debug, Default)]
struct Delayed {
    /// Monotonic due time and order of arrival.
    order: BinaryHeap<Reverse<(Duration, u64)>>,
    events: std::collections::HashMap<u64, ProviderEvent>,
    next: u64,
}

impl Events {
    pub(crate) fn new(shared: Weak<Shared>, ids: Ids) -> Self {
        Self { shared, ids, delayed: Mutex::default() }
    }

    /// Applies the delayed events whose time has come; answers whether there were any.
    pub(crate) fn release_due(&self) -> bool {
        let now = self.ids.clock.monotonic();
        let mut due = Vec::new();
        {
            let mut delayed = self.delayed.lock();
            while let Some(Reverse((at, number))) = delayed.order.peek().copied() {
                if at > now {
                    break;
                }
                delayed.order.pop();
                due.extend(delayed.events.remove(&number));
            }
        }
        let any = !due.is_empty();
        due.into_iter().for_each(|event| self.spawn(event));
        any
    }

    fn spawn(&self, event: ProviderEvent) {
        let Some(shared) = self.shared.upgrade() else { return };
        let working = shared.tracker.begin();
        let runtime = shared.runtime.clone();
        runtime.spawn(async move {
            let _working = working;
            shared.apply(event).await;
        });
    }
}

impl EventSink for Events {
    fn push(&self, event: ProviderEvent, after: Duration) {
        if after.is_zero() {
            return self.spawn(event);
        }
        let mut delayed = self.delayed.lock();
        let number = delayed.next;
        delayed.next += 1;
        delayed.order.push(Reverse((self.ids.clock.monotonic() + after, number)));
        delayed.events.insert(number, event);
    }
}

impl Shared {
    async fn apply(self: &Arc<Self>, event: ProviderEvent) {
        let tenant = match &event {
            ProviderEvent::Receipt { target: ReceiptTarget::Attempt { tenant, .. }, .. }
            | ProviderEvent::Complaint { tenant, .. }
            | ProviderEvent::TemplateDecided { tenant, .. } => *tenant,
            ProviderEvent::Inbound(inbound) => inbound.tenant,
        };
        loop {
            match inbound::apply(&*self.store, &self.ids, &self.marks, event.clone()).await {
                Ok(Some(Transitioned::Found { applied, state, changes, address, .. })) => {
                    self.count(&changes);
                    self.webhooks.grown(tenant);
                    if applied == Applied::Yes {
                        self.tally.add(tenant, address, &state, &changes);
                    }
                    return;
                }
                Ok(_) => return self.webhooks.grown(tenant),
                Err(StoreError::Busy(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_)) if !self.is_stopping() => {
                    tokio::time::sleep(inbound::RETRY).await
                }
                Err(error) => return tracing::error!(%error, "what a provider told could not be written"),
            }
        }
    }
}
