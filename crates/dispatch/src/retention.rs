//! Deletes expired and obsolete data in small steps with pauses, so that other transactions wait only briefly. Only while the node is fit:
//! by a wrong clock, everything would be old.

use std::time::Duration;

use nuncio_domain::{TenantId, Timestamp};
use nuncio_store::{ProviderIds, Result};

use crate::{Shared, nodes::is_in};

/// Rows per step.
const ROWS: u32 = 200;
/// Length of a pause, as a multiple of the step before it.
const PAUSE: u32 = 4;
/// Interval of the search through all provider ids, which are not ordered by time.
const REFERENCES_INTERVAL: Duration = Duration::from_secs(86_400);

/// Rows per purge.
const PURGE: u32 = 1_000;
/// Minimum age of a spool chunk without a message: no accept takes this long.
const ORPHAN_AGE: Duration = Duration::from_secs(3_600);
/// How far back a new process looks for them, and the span it scans at a time.
const ORPHAN_SPAN: Duration = Duration::from_secs(86_400);
const ORPHAN_STEP: Duration = Duration::from_secs(600);

/// Data of a tenant that expires.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Messages,
    Log,
    Deliveries,
    Strays,
    Traffic,
    Ids(ProviderIds),
}

impl Shared {
    /// Deletes expired idempotency keys and orphaned spool chunks, in small steps. [`Self::run`] does so once a minute.
    pub async fn purge(&self) -> Result<()> {
        let now = self.ids.clock.now();
        let keys = self.purge_keys(now).await;
        let chunks = self.purge_chunks(now).await;
        keys.and(chunks)
    }

    async fn purge_keys(&self, now: Timestamp) -> Result<()> {
        while self.is_fit() {
            let began = self.ids.clock.monotonic();
            let mut tx = self.store.begin().await?;
            let looked_at = tx.purge_idempotency_keys(now, PURGE).await?;
            tx.commit().await?;
            if looked_at < u64::from(PURGE) {
                break;
            }
            self.pause_after(began).await;
        }
        Ok(())
    }

    /// Checks every chunk once, when it is old enough; after a start, also those of the day before.
    async fn purge_chunks(&self, now: Timestamp) -> Result<()> {
        let until = now.minus(ORPHAN_AGE);
        let mut since = self.purged.lock().unwrap_or_else(|| until.minus(ORPHAN_SPAN));
        while since < until && self.is_fit() {
            let before = until.min(since.plus(ORPHAN_STEP));
            let mut tx = self.store.begin().await?;
            let gone = tx.purge_orphaned_spool(since, before, PURGE).await?;
            tx.commit().await?;
            if gone < u64::from(PURGE) {
                since = before;
                *self.purged.lock() = Some(since);
            }
        }
        Ok(())
    }

    /// Deletes data of this node's tenants older than [`DispatchConfig::retention`](crate::DispatchConfig::retention). A failure of one kind of
    /// one tenant does not skip the others; returns the first. [`Self::run`] does so once a minute.
    pub async fn forget_old(&self) -> Result<()> {
        let Some(kept) = self.config.retention.filter(|_| self.is_fit()) else { return Ok(()) };
        let now = self.ids.clock.now();
        let before = now.minus(kept);
        let shards = self.shards();
        let projects = self.store.read().await?.list_projects().await?;
        let tenants: Vec<TenantId> = projects.iter().flat_map(|p| [p.live, p.test]).filter(|tenant| is_in(&shards, *tenant)).collect();
        let mut kinds = vec![Kind::Messages, Kind::Log, Kind::Deliveries, Kind::Strays, Kind::Traffic];
        let is_daily = self.references.lock().is_none_or(|last| last.plus(REFERENCES_INTERVAL) <= now);
        if is_daily {
            kinds.extend([ProviderIds::Outbound, ProviderIds::Inbound].map(Kind::Ids));
        }
        let mut outcome = Ok(());
        for kind in kinds {
            for tenant in &tenants {
                let deleted = self.delete_expired(kind, *tenant, before).await;
                if let Err(error) = &deleted {
                    tracing::warn!(tenant = tenant.0, ?kind, %error, "failed to delete expired data; continuing with the rest");
                }
                outcome = outcome.and(deleted);
            }
        }
        if is_daily {
            *self.references.lock() = Some(now);
        }
        outcome
    }

    async fn delete_expired(&self, kind: Kind, tenant: TenantId, before: Timestamp) -> Result<()> {
        let full = u64::from(ROWS);
        let (mut message, mut place) = (None, None);
        while self.is_fit() {
            let began = self.ids.clock.monotonic();
            let mut tx = self.store.begin().await?;
            let goes_on = match kind {
                Kind::Messages => {
                    message = tx.forget_messages(tenant, message, before, ROWS).await?;
                    message.is_some()
                }
                Kind::Log => tx.forget_log(tenant, before, ROWS).await? >= full,
                Kind::Deliveries => tx.forget_deliveries(tenant, before, ROWS).await? >= full,
                Kind::Strays => tx.forget_strays(tenant, before, ROWS).await? >= full,
                Kind::Traffic => tx.forget_traffic(tenant, before, ROWS).await? >= full,
                Kind::Ids(ids) => {
                    place = tx.forget_provider_ids(ids, tenant, place, before, ROWS).await?;
                    place.is_some()
                }
            };
            tx.commit().await?;
            if !goes_on {
                break;
            }
            self.pause_after(began).await;
        }
        Ok(())
    }

    /// Pauses after a step that started at `began`, so that other transactions can run.
    async fn pause_after(&self, began: Duration) {
        tokio::time::sleep(self.ids.clock.monotonic().saturating_sub(began) * PAUSE).await;
    }
}
