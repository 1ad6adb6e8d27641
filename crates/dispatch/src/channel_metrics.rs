//! Metrics of contact channels, beside the hot path: summed in memory, written once a second in a transaction of their own.
//!
//! What a crash or a database that fails loses of them can be rebuilt from the attempts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nuncio_domain::lifecycle::{Change, State, Wait};
use nuncio_domain::message::{AttemptStatus, Status};
use nuncio_domain::{AddressId, Channel, TenantId};
use nuncio_store::{CountryMetrics, MetricDelta, MetricRow, Result};
use parking_lot::Mutex;

use crate::Shared;

/// Beyond this many waiting rows results are no longer counted, rather than memory growing without bound.
const ROWS: usize = 100_000;
/// Rows of one second that count for their country too: shares are known well enough from some.
const SAMPLE: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct MetricBuffer {
    rows: Mutex<HashMap<(TenantId, AddressId, Channel), MetricDelta>>,
    /// Held while they are written beside the rounds.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl MetricBuffer {
    /// Counts what a step that led to `state` says of the recipient's channel.
    pub(crate) fn add(&self, tenant: TenantId, address: AddressId, state: &State, changes: &[Change]) {
        // A channel that failed is followed by the fallback, and the message's status does not change.
        if let Some(channel) = fell_back_from(state) {
            let mut rows = self.rows.lock();
            if rows.len() < ROWS {
                rows.entry((tenant, address, channel)).or_default().failures += 1;
            }
        }
        for change in changes {
            let Some((_, attempt)) = &change.attempt else { continue };
            let success = match change.status {
                Status::Delivered => true,
                Status::Failed => false,
                _ => continue,
            };
            let mut rows = self.rows.lock();
            if rows.len() >= ROWS {
                return;
            }
            let row = rows.entry((tenant, address, attempt.channel)).or_default();
            if success {
                row.successes += 1;
                row.timed += 1;
                row.delivery_ms += change.at.since(attempt.started_at).as_millis() as i64;
                row.last_success_at = row.last_success_at.max(Some(change.at));
            } else {
                row.failures += 1;
            }
        }
    }

    fn take(&self) -> Vec<MetricRow> {
        let rows = std::mem::take(&mut *self.rows.lock());
        rows.into_iter().map(|(key, delta)| (key.0, key.1, key.2, delta)).collect()
    }
}

/// The channel of the attempt that has just failed, if another one is to follow.
fn fell_back_from(state: &State) -> Option<Channel> {
    let newest = state.detail.attempts.last()?;
    let failed = newest.status == AttemptStatus::Failed && matches!(state.wait, Wait::Attempt { .. });
    (failed && newest.channel != state.route.channel).then_some(newest.channel)
}

impl Shared {
    /// Begins to write what was summed, unless that is under way. It gives way to everything more urgent and may take a while, so it holds
    /// up no round.
    pub(crate) fn begin_flush(self: &Arc<Self>) {
        let Ok(writing) = Arc::clone(&self.metric_buffer.writing).try_lock_owned() else { return };
        let (shared, working) = (Arc::clone(self), self.tracker.begin());
        self.runtime.spawn(async move {
            let _working = (working, writing);
            if let Err(error) = shared.flush_metric_buffer().await {
                tracing::warn!(%error, "metrics of contact channels were not written");
            }
        });
    }

    /// Writes what was summed; answers whether there was anything.
    pub(crate) async fn flush_metric_buffer(&self) -> Result<bool> {
        let rows = self.metric_buffer.take();
        if rows.is_empty() {
            return Ok(false);
        }
        let sample = sample(&rows);
        self.store.add_metrics(rows).await?;
        self.add_countries(sample).await?;
        Ok(true)
    }

    /// Adds a sample of what happened to the metrics of countries, from which new recipients are judged.
    async fn add_countries(&self, sample: Vec<MetricRow>) -> Result<()> {
        if sample.is_empty() {
            return Ok(());
        }
        let addresses: Vec<_> = sample.iter().map(|(tenant, address, ..)| (*tenant, *address)).collect();
        let known = self.store.read().await?.countries_of(&addresses).await?;
        let countries: HashMap<_, _> = known.into_iter().map(|(tenant, address, country)| ((tenant, address), country)).collect();
        let mut sums: BTreeMap<(TenantId, Channel, &str), (i64, i64)> = BTreeMap::new();
        for (tenant, address, channel, delta) in &sample {
            let Some(country) = countries.get(&(*tenant, *address)) else { continue };
            let sum = sums.entry((*tenant, *channel, country)).or_default();
            *sum = (sum.0 + delta.successes, sum.1 + delta.failures);
        }
        let mut tx = self.store.begin().await?;
        for ((tenant, channel, country), (successes, failures)) in sums {
            tx.add_country_metrics(tenant, &CountryMetrics { channel, country: country.to_owned(), successes, failures }).await?;
        }
        tx.commit().await
    }
}

/// Some rows of channels that are chosen by how they do.
fn sample(rows: &[MetricRow]) -> Vec<MetricRow> {
    let chosen = |channel: Channel| channel.is_sms() || channel == Channel::Whatsapp;
    rows.iter().filter(|(_, _, channel, _)| chosen(*channel)).take(SAMPLE).copied().collect()
}
