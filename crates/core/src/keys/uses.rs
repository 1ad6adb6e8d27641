//! Records when API keys are used.
//!
//! A use is noted in memory when its key is looked up, which happens at most once a second, and only if the stored one is old. So a request
//! pays nothing, and a key in use is written once in [`PRECISION`], whichever nodes it calls. A crash or a failing database loses what was
//! not yet written.

use std::time::Duration;

use nuncio_domain::Timestamp;
use nuncio_domain::config::ApiKey;

use super::Keys;

/// Maximum age of the stored last use of a key in use.
const PRECISION: Duration = Duration::from_secs(120);
/// Maximum number of keys that are written at once. The others are noted again at their next look-ups.
const AT_ONCE: usize = 1_000;

impl Keys<'_> {
    pub(super) fn note_use(&self, key: &ApiKey, now: Timestamp) {
        if key.last_used_at.is_some_and(|at| now.since(at) < PRECISION) {
            return;
        }
        let mut uses = self.inner.key_uses.lock();
        if uses.len() < AT_ONCE {
            uses.entry((key.tenant, key.id)).or_insert(now);
        }
    }

    /// Writes the noted uses, all with the time of the first one. The node calls it once a second.
    pub async fn store_uses(&self) -> nuncio_store::Result<()> {
        let uses = std::mem::take(&mut *self.inner.key_uses.lock());
        let Some(first) = uses.values().min().copied() else { return Ok(()) };
        let mut tx = self.inner.store.begin().await?;
        tx.mark_keys_used(&uses.into_keys().collect::<Vec<_>>(), first).await?;
        tx.commit().await
    }
}
