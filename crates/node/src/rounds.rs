//! Finds due broadcasts, templates and other periodic work, and passes them to core.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use nuncio_domain::template::Template;
use nuncio_store::{DueBroadcast, Result};

use crate::Shared;

const SECOND: Duration = Duration::from_secs(1);
/// Maximum broadcasts and templates per round.
const ROUND: u32 = 20;
/// Maximum broadcasts processed at once.
const AT_ONCE: usize = 4;

impl Shared {
    /// Runs one round of due work other than messages; returns whether there was anything to do.
    pub(crate) async fn process_due(self: &Arc<Self>) -> Result<bool> {
        let released = self.events.release_due();
        let broadcasts = self.process_broadcasts().await;
        let once = if self.second.opens(self.ids.clock.monotonic(), SECOND) { self.each_second().await } else { Ok(false) };
        Ok(released | broadcasts? | once?)
    }

    /// Starts a round of broadcasts if any is due and no round is running; returns whether any is due. Runs concurrently, because enqueuing
    /// waits for the database.
    async fn process_broadcasts(self: &Arc<Self>) -> Result<bool> {
        let now = self.ids.clock.now();
        if self.dispatch.accepting().is_none() {
            return Ok(false);
        }
        if self.broadcasting.load(Ordering::Acquire) {
            return Ok(true);
        }
        let mut tx = self.store.read().await?;
        let broadcasts = tx.due_broadcasts(now, ROUND).await?;
        // Providers take hours to decide on a template.
        let look = self.templates.opens(self.ids.clock.monotonic(), SECOND);
        let templates = if look { tx.due_templates(now, ROUND).await? } else { Vec::new() };
        drop(tx);
        if (broadcasts.is_empty() && templates.is_empty()) || self.broadcasting.swap(true, Ordering::AcqRel) {
            return Ok(!broadcasts.is_empty());
        }
        let (shared, working) = (Arc::clone(self), self.tracker.begin());
        self.runtime.spawn(async move {
            let _working = working;
            let _ending = Ending(&shared);
            shared.round(broadcasts, templates).await;
        });
        Ok(true)
    }

    async fn round(&self, broadcasts: Vec<DueBroadcast>, templates: Vec<Template>) {
        // Concurrently: one may wait for the operator's reviewer.
        let looked_after = futures::stream::iter(broadcasts).for_each_concurrent(AT_ONCE, |due| async move {
            if let Err(error) = self.core.broadcasts().process_due(due).await {
                tracing::warn!(broadcast.id = %due.id, %error, cause = ?std::error::Error::source(&error), "failed to process broadcast; will retry");
            }
        });
        looked_after.await;
        for template in templates {
            if let Err(error) = self.core.templates().process_due(&template).await {
                tracing::warn!(template.id = %template.id, %error, "failed to process template; will retry");
            }
        }
    }

    /// Matches early receipts to their messages, completes segmented texts, renews phone numbers and expires invitations. Each row is
    /// processed by one node. Also stores when API keys were used.
    async fn each_second(&self) -> Result<bool> {
        let strays = self.core.inbound().match_strays().await;
        let parts = self.core.inbound().store_late_messages().await;
        if let Err(error) = self.core.keys().store_uses().await {
            tracing::warn!(%error, "failed to store when API keys were used");
        }
        if self.dispatch.is_stopping() {
            return Ok(strays? | parts?);
        }
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

/// Allows the next round when dropped, whatever the result.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.broadcasting.store(false, Ordering::Release);
    }
}
