//! Posts events to webhooks.
//!
//! The event log is the queue: one node reads an environment's log forward and stores its position with the outcome of the deliveries. Most
//! deliveries succeed at once and cost one row. A delivery that fails, or has to wait, is stored as pending and no longer holds back the
//! position; so a slow or dead endpoint delays no others, and a crash repeats at most what was in flight.
//!
//! Per endpoint, the events of one resource form a *line* and are posted in order; lines are independent.

mod endpoint;
mod log;
mod permits;
mod post;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nuncio_dispatch::is_in;
use nuncio_domain::TenantId;
use nuncio_store::{LogReader, Result};
use parking_lot::Mutex;

use crate::Shared;
use log::Log;
use permits::Permits;

/// How often a node checks which logs it reads, and which of them have grown or have new webhooks: one statement for all.
const LOOK: Duration = Duration::from_millis(500);

/// The logs this node reads.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    logs: Mutex<HashMap<TenantId, Arc<Log>>>,
    permits: Arc<Permits>,
    /// When the node last checked which logs it reads. Locked during a round, so that one runs at a time.
    round: tokio::sync::Mutex<Option<Duration>>,
}

impl Shared {
    /// Runs one round: stores outcomes, reads every log, posts due deliveries. Returns whether there was anything to do. With `look`, also
    /// reads logs without a signal.
    pub(crate) async fn post_events(self: &Arc<Self>, look: bool) -> Result<bool> {
        let mut looked_at = self.webhooks.round.lock().await;
        // Receivers would reject the time in the signatures, and retries and the end of a failing endpoint would be days off.
        if self.dispatch.has_wrong_clock() {
            *looked_at = None;
            self.release_logs().await?;
            return Ok(false);
        }
        let now = self.ids.clock.monotonic();
        if self.dispatch.log_signals().take_webhooks_changed() || looked_at.is_none_or(|at| now.saturating_sub(at) >= LOOK) {
            self.assign_logs().await?;
            *looked_at = Some(now);
        }
        let logs: Vec<_> = self.webhooks.logs.lock().values().cloned().collect();
        let mut busy = false;
        for log in logs {
            busy |= self.follow(&log, look).await;
        }
        Ok(busy)
    }

    /// Runs rounds until the node stops.
    pub(crate) async fn run_webhooks(self: Arc<Self>) {
        const IDLE: Duration = Duration::from_millis(50);
        const BUSY: Duration = Duration::from_millis(2);
        while !self.dispatch.is_stopping() {
            match self.post_events(false).await {
                Ok(true) => tokio::time::sleep(BUSY).await,
                Ok(false) => drop(tokio::time::timeout(IDLE, self.dispatch.log_signals().signalled()).await),
                Err(error) => {
                    tracing::warn!(%error, "failed to run a round of webhooks; will retry");
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
            }
        }
    }

    /// Stores the last outcomes and releases the logs to other nodes, after the round that is running.
    pub(crate) async fn stop_posting(self: &Arc<Self>) -> Result<()> {
        let _round = self.webhooks.round.lock().await;
        self.release_logs().await
    }

    async fn release_logs(self: &Arc<Self>) -> Result<()> {
        let logs: Vec<_> = self.webhooks.logs.lock().drain().map(|(_, log)| log).collect();
        for log in logs {
            self.dispatch.log_signals().remove(log.tenant);
            log.close();
            if let Some(config) = log.config() {
                self.note_webhooks(&log, &config).await?;
            }
            while self.save(&log).await? {}
            self.give_up(&log).await?;
        }
        Ok(())
    }

    /// Claims the logs assigned to this node and releases the others.
    async fn assign_logs(&self) -> Result<()> {
        let readers = self.store.read().await?.log_readers().await?;
        let shards = self.dispatch.shards();
        let is_mine = |tenant: TenantId| is_in(&shards, tenant);
        let claims: HashSet<(TenantId, i64)> = readers.iter().map(|reader| (reader.tenant, reader.fence)).collect();
        let is_held = |log: &Log| claims.contains(&(log.tenant, log.fence));
        let lost: Vec<TenantId> = self.webhooks.logs.lock().values().filter(|log| !is_held(log)).map(|log| log.tenant).collect();
        lost.into_iter().for_each(|tenant| self.stop_reading(tenant));
        for reader in readers {
            let held = self.webhooks.logs.lock().get(&reader.tenant).cloned();
            match held {
                Some(log) if !is_mine(reader.tenant) && log.is_idle() => {
                    self.give_up(&log).await?;
                    self.stop_reading(reader.tenant);
                }
                Some(log) => log.compare(&reader),
                None if is_mine(reader.tenant) && self.is_free(&reader) => self.take(&reader).await?,
                None => {}
            }
        }
        Ok(())
    }

    /// Returns whether no live node reads the log.
    fn is_free(&self, reader: &LogReader) -> bool {
        reader.owner.is_none_or(|owner| owner == self.dispatch.node() || !self.dispatch.is_alive(owner))
    }

    async fn take(&self, reader: &LogReader) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let fence = tx.claim_log(reader.tenant, reader.fence, Some(self.dispatch.node())).await?;
        let end = tx.log_end(reader.tenant).await?;
        let waiting = tx.waiting_webhooks(reader.tenant).await?;
        tx.commit().await?;
        if let Some(fence) = fence {
            let flags = self.dispatch.log_signals().register(reader.tenant);
            let log = Arc::new(Log::new(reader.tenant, fence, reader.read, end, waiting, flags));
            self.webhooks.logs.lock().insert(reader.tenant, log);
        }
        Ok(())
    }

    /// Stops reading a log.
    pub(crate) fn stop_reading(&self, tenant: TenantId) {
        self.dispatch.log_signals().remove(tenant);
        if let Some(log) = self.webhooks.logs.lock().remove(&tenant) {
            log.close();
        }
    }

    async fn give_up(&self, log: &Log) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.claim_log(log.tenant, log.fence, None).await?;
        tx.commit().await
    }
}
