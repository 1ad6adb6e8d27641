//! Broadcasts and templates that need something: found here, looked after in core.

use std::sync::atomic::Ordering;

use nuncio_core::WeakCore;
use nuncio_domain::template::Template;
use nuncio_store::{DueBroadcast, Result};

use crate::{Dispatch, SECOND};

/// Broadcasts and templates of one round.
const ROUND: u32 = 20;

impl Dispatch {
    /// Begins a round if something is due and none is under way; answers whether something is. It runs beside the tick: handing over
    /// waits for the database, and this node has to show that it lives meanwhile.
    pub(crate) async fn look_after_broadcasts(&self) -> Result<bool> {
        let shared = &self.shared;
        let now = shared.ids.clock.now();
        if shared.is_stopping() || !shared.health.is_fit(shared.ids.clock.monotonic()) {
            return Ok(false);
        }
        if shared.broadcasting.load(Ordering::Acquire) {
            return Ok(true);
        }
        let mut tx = shared.store.read().await?;
        let broadcasts = tx.due_broadcasts(now, ROUND).await?;
        // The provider takes hours over a template.
        let look = shared.templates.opens(shared.ids.clock.monotonic(), SECOND);
        let templates = if look { tx.due_templates(now, ROUND).await? } else { Vec::new() };
        drop(tx);
        if (broadcasts.is_empty() && templates.is_empty()) || shared.broadcasting.swap(true, Ordering::AcqRel) {
            return Ok(!broadcasts.is_empty());
        }
        let (dispatch, working) = (self.clone(), shared.tracker.begin());
        shared.runtime.spawn(async move {
            let _working = working;
            let _ending = Ending(&dispatch);
            dispatch.round(broadcasts, templates).await;
        });
        Ok(true)
    }

    async fn round(&self, broadcasts: Vec<DueBroadcast>, templates: Vec<Template>) {
        let Some(core) = self.shared.core.get().and_then(WeakCore::upgrade) else { return };
        for due in broadcasts {
            if let Err(error) = core.look_after_broadcast(due).await {
                tracing::warn!(broadcast.id = %due.id, %error, cause = ?std::error::Error::source(&error), "a broadcast was not looked after; it is tried again");
            }
        }
        for template in templates {
            if let Err(error) = core.look_after_template(&template).await {
                tracing::warn!(template.id = %template.id, %error, "a template was not looked after; it is tried again");
            }
        }
    }
}

/// Lets the next round begin, however this one ended.
struct Ending<'a>(&'a Dispatch);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.shared.broadcasting.store(false, Ordering::Release);
    }
}
