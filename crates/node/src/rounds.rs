//! Broadcasts and templates that are due, and what falls due once a second: found here, looked after by core.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use nuncio_domain::template::Template;
use nuncio_store::{DueBroadcast, Result};

use crate::Shared;

const SECOND: Duration = Duration::from_secs(1);
/// Broadcasts and templates of one round.
const ROUND: u32 = 20;
/// Broadcasts that a node looks after at once.
const AT_ONCE: usize = 4;

impl Shared {
    /// Runs one round of what falls due beside messages; returns whether there was anything to do.
    pub(crate) async fn look_after(self: &Arc<Self>) -> Result<bool> {
        let released = self.events.release_due();
        let broadcasts = self.look_after_broadcasts().await;
        let once = if self.second.opens(self.ids.clock.monotonic(), SECOND) { self.each_second().await } else { Ok(false) };
        Ok(released | broadcasts? | once?)
    }

    /// Begins a round if something is due and none is under way; returns whether something is. It runs beside the others: handing over
    /// waits for the database.
    async fn look_after_broadcasts(self: &Arc<Self>) -> Result<bool> {
        let now = self.ids.clock.now();
        if self.dispatch.accepting().is_none() {
            return Ok(false);
        }
        if self.broadcasting.load(Ordering::Acquire) {
            return Ok(true);
        }
        let mut tx = self.store.read().await?;
        let broadcasts = tx.due_broadcasts(now, ROUND).await?;
        // The provider takes hours over a template.
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
        // A few at once: one may wait for the operator's reviewer.
        let looked_after = futures::stream::iter(broadcasts).for_each_concurrent(AT_ONCE, |due| async move {
            if let Err(error) = self.core.broadcasts().look_after(due).await {
                tracing::warn!(broadcast.id = %due.id, %error, cause = ?std::error::Error::source(&error), "failed to look after a broadcast; will retry");
            }
        });
        looked_after.await;
        for template in templates {
            if let Err(error) = self.core.templates().look_after(&template).await {
                tracing::warn!(template.id = %template.id, %error, "failed to look after a template; will retry");
            }
        }
    }

    /// Matches early receipts to their messages, completes texts in parts, renews phone numbers and expires invitations. Each row is
    /// taken by one node.
    async fn each_second(&self) -> Result<bool> {
        let strays = self.core.inbound().look_for_strays().await;
        let parts = self.core.inbound().look_for_late_parts().await;
        if self.dispatch.is_stopping() {
            return Ok(strays? | parts?);
        }
        let renewed = self.core.numbers().renew_due().await;
        let expired = self.core.invitations().expire_due().await;
        let [renewed, expired] = [("phone numbers", renewed), ("invitations", expired)].map(|(what, outcome)| {
            outcome.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to look for {what} that are due; will retry");
                false
            })
        });
        Ok(strays? | parts? | renewed | expired)
    }
}

/// Lets the next round begin, however this one ended.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.broadcasting.store(false, Ordering::Release);
    }
}
