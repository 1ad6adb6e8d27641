//! Finds due broadcasts, templates and other periodic work, and passes them to core.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use nuncio_core::Core;
use nuncio_domain::{BroadcastId, template::Template};
use nuncio_store::{DueBroadcast, Result};

use crate::Shared;

const SECOND: Duration = Duration::from_secs(1);
/// Maximum broadcasts and templates per round.
const ROUND: u32 = 20;
/// Broadcasts in flight above which no more are started: more than there are slots, so that some wait for one. One environment has half of
/// them, so that its broadcasts do not hold up those of others.
const IN_FLIGHT: usize = 20;
const OF_ONE: u32 = 10;
/// Maximum templates polled at once.
const AT_ONCE: usize = 4;

impl Shared {
    /// Runs one round of due work other than messages; returns whether there was anything to do.
    pub(crate) async fn process_due(self: &Arc<Self>) -> Result<bool> {
        let released = self.events.release_due();
        let broadcasts = self.process_broadcasts().await;
        let once = if self.second.opens(self.ids.clock.monotonic(), SECOND) { self.each_second().await } else { Ok(false) };
        Ok(released | broadcasts? | once?)
    }

    /// Starts due broadcasts that are not in flight, and polls due templates unless a poll is in flight; returns whether any is due or in
    /// flight. Runs concurrently, because enqueuing waits for the database, and reviewers and providers may not respond.
    async fn process_broadcasts(self: &Arc<Self>) -> Result<bool> {
        let now = self.ids.clock.now();
        if self.dispatch.accepting().is_none() {
            return Ok(false);
        }
        // Seen before the reads: what ends during them may be due again.
        let polling = self.polling.load(Ordering::Acquire);
        let in_flight = self.in_flight.lock().len();
        let mut tx = self.store.read().await?;
        let broadcasts = if in_flight < IN_FLIGHT { tx.due_broadcasts(now, ROUND, OF_ONE).await? } else { Vec::new() };
        // Providers take hours to decide on a template.
        let look = !polling && self.templates.opens(self.ids.clock.monotonic(), SECOND);
        let templates = if look { tx.due_templates(now, ROUND).await? } else { Vec::new() };
        drop(tx);
        let any = polling || in_flight > 0 || !broadcasts.is_empty() || !templates.is_empty();
        for due in broadcasts {
            self.start_broadcast(due);
        }
        if !templates.is_empty() {
            self.start_polls(templates);
        }
        Ok(any)
    }

    fn start_broadcast(self: &Arc<Self>, due: DueBroadcast) {
        {
            let mut in_flight = self.in_flight.lock();
            let of_tenant = in_flight.values().filter(|tenant| **tenant == due.tenant).count();
            if of_tenant >= OF_ONE as usize || in_flight.contains_key(&due.id) {
                return;
            }
            in_flight.insert(due.id, due.tenant);
        }
        let (shared, working) = (Arc::clone(self), self.tracker.begin());
        self.runtime.spawn(async move {
            let _working = working;
            let _ending = BroadcastEnding(&shared, due.id);
            if let Err(error) = shared.core.broadcasts().process_due(due, &shared.slots).await {
                tracing::warn!(broadcast.id = %due.id, %error, cause = ?std::error::Error::source(&error), "failed to process broadcast; will retry");
            }
        });
    }

    fn start_polls(self: &Arc<Self>, templates: Vec<Template>) {
        if self.polling.swap(true, Ordering::AcqRel) {
            return;
        }
        let (shared, working) = (Arc::clone(self), self.tracker.begin());
        self.runtime.spawn(async move {
            let _working = working;
            let _ending = PollsEnding(&shared);
            shared.poll(templates).await;
        });
    }

    async fn poll(&self, templates: Vec<Template>) {
        let polled = futures::stream::iter(templates).for_each_concurrent(AT_ONCE, |template| async move {
            if let Err(error) = self.core.templates().process_due(&template).await {
                tracing::warn!(template.id = %template.id, %error, "failed to process template; will retry");
            }
        });
        polled.await;
    }

    /// Matches early receipts to their messages, completes segmented texts, renews phone numbers and expires invitations. Each row is
    /// processed by one node, whose clock is right: by a wrong one, renewals would be charged early. Also stores what was
    /// noted in memory.
    async fn each_second(&self) -> Result<bool> {
        if let Err(error) = store_notes(&self.core).await {
            tracing::warn!(%error, "failed to store when API keys were used, and clicks on links");
        }
        if self.dispatch.accepting().is_none() {
            return Ok(false);
        }
        let strays = self.core.inbound().match_strays().await;
        let parts = self.core.inbound().store_late_messages().await;
        let renewed = self.core.numbers().renew_due().await;
        let expired = self.core.invitations().expire_due().await;
        let [renewed, expired] = [("phone numbers", renewed), ("invitations", expired)].map(|(what, outcome)| {
            outcome.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to find due {what}; will retry");
                false
            })
        });
        Ok(strays? | parts? | renewed | expired)
    }
}

/// Allows the next round of a broadcast when dropped, whatever the result.
struct BroadcastEnding<'a>(&'a Shared, BroadcastId);

impl Drop for BroadcastEnding<'_> {
    fn drop(&mut self) {
        self.0.in_flight.lock().remove(&self.1);
    }
}

/// Allows the next polls of templates when dropped, whatever the result.
struct PollsEnding<'a>(&'a Shared);

impl Drop for PollsEnding<'_> {
    fn drop(&mut self) {
        self.0.polling.store(false, Ordering::Release);
    }
}

/// Stores what was noted in memory: uses of API keys, and clicks on links.
pub(crate) async fn store_notes(core: &Core) -> Result<()> {
    let uses = core.keys().store_uses().await;
    uses.and(core.broadcasts().store_clicks().await)
}
