//! Collects metrics of contact channels and the traffic of hours and days in memory, and writes them once a second in separate transactions, off the hot
//! path.
//!
//! A crash or a failing database loses at most what was not yet written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nuncio_domain::lifecycle::{Applied, Change};
use nuncio_domain::message::{AttemptStatus, Message, State, Status, Wait};
use nuncio_domain::{AddressId, Channel, Country, TenantId, Timestamp, id::Id as _};
use nuncio_store::{CountryMetrics, DAY, HOUR, MetricDelta, MetricRow, Result, Traffic, TrafficRow, Transitioned};
use parking_lot::Mutex;

use crate::Shared;

/// Maximum number of buffered rows. Beyond it, results are not counted, so that memory stays bounded.
const ROWS: usize = 100_000;
/// Maximum number of rows per flush that also count for their country, as an estimate for new recipients: a sample is enough for a rate.
const SAMPLE: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct MetricBuffer {
    rows: Mutex<HashMap<(TenantId, AddressId, Channel), Row>>,
    traffic: Mutex<Vec<Counted>>,
    /// Held while a background flush runs.
    writing: Arc<tokio::sync::Mutex<()>>,
}

/// What the buffer adds to the metrics of a contact channel, and the country of its address.
type Row = (MetricDelta, Country);

/// What one step adds to the traffic.
#[derive(Clone, Copy, Debug)]
struct Counted {
    tenant: TenantId,
    country: Country,
    channel: Channel,
    at: Timestamp,
    what: Count,
}

#[derive(Clone, Copy, Debug)]
enum Count {
    /// Whether the provider sends receipts.
    Sent(bool),
    /// Milliseconds until delivery.
    Delivered(i64),
    Failed,
    /// Millionths of a US dollar.
    Spent(i64),
}

/// Successes and failures by tenant, channel and country, in the order in which they are written.
type Countries = BTreeMap<(TenantId, Channel, Country), (i64, i64)>;

impl MetricBuffer {
    /// Counts a step in the hour in which it happened.
    pub(crate) fn add_traffic(&self, tenant: TenantId, transitioned: &Transitioned) {
        let Transitioned::Found { id, applied, spent, state, changes, .. } = transitioned else { return };
        let newest = state.detail.attempts.last().map_or(state.route.channel, |attempt| attempt.channel);
        let of_route = changes.iter().find_map(|change| change.attempt.as_ref()).map_or(newest, |(_, attempt)| attempt.channel);
        let begun = state.detail.scheduled_at.unwrap_or_else(|| id.created_at());
        let mut counts = Vec::new();
        counts.extend(fell_back_from(state).filter(|_| *applied == Applied::Yes).map(|channel| (channel, Count::Failed)));
        for change in changes {
            let arrived = matches!(change.status, Status::Delivered | Status::Read) && change.previous < Some(Status::Delivered);
            let what = match change.status {
                Status::Sent => Count::Sent(state.wait != Wait::Nothing || state.status != Status::Sent),
                Status::Failed => Count::Failed,
                _ if arrived => Count::Delivered(change.at.since(begun).as_millis() as i64),
                _ => continue,
            };
            counts.push((of_route, what));
        }
        if spent.0 != 0 {
            counts.push((of_route, Count::Spent(spent.0)));
        }
        if !counts.is_empty() {
            self.count(tenant, state, counts);
        }
    }

    /// Counts a message that failed when it was accepted.
    pub(crate) fn add_failed(&self, message: &Message) {
        self.count(message.tenant, &message.state, vec![(message.state.route.channel, Count::Failed)]);
    }

    fn count(&self, tenant: TenantId, state: &State, counts: Vec<(Channel, Count)>) {
        let mut traffic = self.traffic.lock();
        if traffic.len() < ROWS {
            let counted = |(channel, what)| Counted { tenant, country: state.detail.country, channel, at: state.updated_at, what };
            traffic.extend(counts.into_iter().map(counted));
        }
    }

    /// Counts what a step that led to `state` shows about the recipient's channel.
    pub(crate) fn add(&self, tenant: TenantId, address: AddressId, state: &State, changes: &[Change]) {
        let new = || (MetricDelta::default(), state.detail.country);
        // A fallback follows a failed channel without changing the message's status.
        if let Some(channel) = fell_back_from(state) {
            let mut rows = self.rows.lock();
            if rows.len() < ROWS {
                rows.entry((tenant, address, channel)).or_insert_with(new).0.failures += 1;
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
            let (row, _) = rows.entry((tenant, address, attempt.channel)).or_insert_with(new);
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

    /// The rows, and how a sample of them did by country.
    fn take(&self) -> (Vec<MetricRow>, Countries) {
        let rows = std::mem::take(&mut *self.rows.lock());
        // Only these channels are chosen by their metrics.
        let chosen = |channel: Channel| channel.is_sms() || channel == Channel::Whatsapp;
        let mut countries = Countries::new();
        for ((tenant, _, channel), (delta, country)) in rows.iter().filter(|((.., channel), _)| chosen(*channel)).take(SAMPLE) {
            let sum = countries.entry((*tenant, *channel, *country)).or_default();
            *sum = (sum.0 + delta.successes, sum.1 + delta.failures);
        }
        (rows.into_iter().map(|((tenant, address, channel), (delta, _))| (tenant, address, channel, delta)).collect(), countries)
    }
}

/// Returns the channel of the attempt that just failed, if a fallback to another channel follows.
fn fell_back_from(state: &State) -> Option<Channel> {
    let newest = state.detail.attempts.last()?;
    let failed = newest.status == AttemptStatus::Failed && matches!(state.wait, Wait::Attempt { .. });
    (failed && newest.channel != state.route.channel).then_some(newest.channel)
}

impl Shared {
    /// Starts a flush in the background unless one is running. It yields to more urgent work and can take a while, so no round waits for
    /// it.
    pub(crate) fn begin_flush(self: &Arc<Self>) {
        let Ok(writing) = Arc::clone(&self.metric_buffer.writing).try_lock_owned() else { return };
        let (shared, working) = (Arc::clone(self), self.tracker.begin());
        self.runtime.spawn(async move {
            let _working = (working, writing);
            if let Err(error) = shared.flush_metrics().await {
                tracing::warn!(%error, "failed to store metrics of contact channels");
            }
        });
    }

    /// Writes the buffered metrics.
    pub async fn flush_metrics(&self) -> Result<()> {
        let (rows, countries) = self.metric_buffer.take();
        let counted = std::mem::take(&mut *self.metric_buffer.traffic.lock());
        if rows.is_empty() && counted.is_empty() {
            return Ok(());
        }
        self.store.add_metrics(rows).await?;
        let mut tx = self.store.begin().await?;
        for ((tenant, channel, country), (successes, failures)) in countries {
            let country = country.as_str().to_owned();
            tx.add_country_metrics(tenant, &CountryMetrics { channel, country, successes, failures }).await?;
        }
        for ((tenant, span, began, channel, country), figures) in fold(&counted) {
            tx.add_traffic(tenant, &TrafficRow { span, began, channel, country: country.as_str().to_owned(), figures }).await?;
        }
        tx.commit().await
    }
}

/// Returns the sums of hours and of days, in the order in which they are written.
fn fold(counted: &[Counted]) -> BTreeMap<(TenantId, i64, Timestamp, Channel, Country), Traffic> {
    let mut sums = BTreeMap::<_, Traffic>::new();
    for (one, span) in counted.iter().flat_map(|one| [(one, HOUR), (one, DAY)]) {
        let began = Timestamp::from_millis(one.at.millis().div_euclid(span) * span);
        let figures = sums.entry((one.tenant, span, began, one.channel, one.country)).or_default();
        match one.what {
            Count::Sent(confirmed) => {
                figures.sent += 1;
                figures.unconfirmed += i64::from(!confirmed);
            }
            Count::Delivered(millis) => {
                figures.delivered += 1;
                figures.add_delay(millis);
            }
            Count::Failed => figures.failed += 1,
            Count::Spent(micros) => figures.spent += micros,
        }
    }
    sums
}
