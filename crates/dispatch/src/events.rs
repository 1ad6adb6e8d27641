//! What providers tell: applied at once, or after the time that the adapter asks for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{EventSink, ProviderEvent, ReceiptTarget, Unrecorded};
use nuncio_core::inbound;
use nuncio_domain::lifecycle::Applied;
use nuncio_domain::{Ids, TenantId};
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
            shared.insist(event).await;
        });
    }
}

#[async_trait]
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

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        let shared = self.shared.upgrade().filter(|shared| !shared.is_stopping()).ok_or(Unrecorded)?;
        let _working = shared.tracker.begin();
        shared.apply(event).await.map_err(|error| {
            tracing::warn!(%error, "what a provider told could not be written; it is asked to tell it again");
            Unrecorded
        })
    }
}

impl Shared {
    /// Writes an event, however long it takes: what was told once must not be lost while the process lives.
    async fn insist(self: &Arc<Self>, event: ProviderEvent) {
        loop {
            match self.apply(event.clone()).await {
                Ok(()) => return,
                Err(StoreError::Busy(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_)) if !self.is_stopping() => {
                    tokio::time::sleep(inbound::RETRY).await
                }
                Err(error) => return tracing::error!(%error, "what a provider told could not be written"),
            }
        }
    }

    async fn apply(self: &Arc<Self>, event: ProviderEvent) -> nuncio_store::Result<()> {
        let tenant = match &event {
            ProviderEvent::Receipt { target: ReceiptTarget::Attempt { tenant, .. } | ReceiptTarget::Reference { tenant, .. }, .. }
            | ProviderEvent::Complaint { tenant, .. }
            | ProviderEvent::Bounced { tenant, .. }
            | ProviderEvent::TemplateDecided { tenant, .. } => *tenant,
            ProviderEvent::Inbound(inbound) => inbound.tenant,
            ProviderEvent::Part(part) => part.tenant,
            ProviderEvent::OptedOut(opted) => opted.tenant,
        };
        if let Some(transitioned) = inbound::apply(&*self.store, &self.ids, &self.marks, event).await? {
            self.told(tenant, transitioned);
        }
        self.webhooks.grown(tenant);
        Ok(())
    }

    /// Counts what a receipt made of its message.
    fn told(&self, tenant: TenantId, transitioned: Transitioned) {
        let Transitioned::Found { applied, state, changes, address, .. } = transitioned else { return };
        self.count(&changes);
        if applied == Applied::Yes {
            self.tally.add(tenant, address, &state, &changes);
        }
    }

    /// Takes messages whose missing parts did not come as they are; answers whether there were any.
    pub(crate) async fn look_for_late_parts(&self) -> nuncio_store::Result<bool> {
        let late = nuncio_core::reassembly::look_for_late(&*self.store, &self.ids, &self.marks).await?;
        late.iter().for_each(|tenant| self.webhooks.grown(*tenant));
        Ok(!late.is_empty())
    }

    /// Looks for the messages of receipts that came before them; answers whether any was found.
    pub(crate) async fn look_for_strays(&self) -> nuncio_store::Result<bool> {
        let settled = nuncio_core::receipts::look_for_strays(&*self.store, &self.ids).await?;
        let any = !settled.is_empty();
        for (tenant, transitioned) in settled {
            self.told(tenant, transitioned);
            self.webhooks.grown(tenant);
        }
        Ok(any)
    }
}
