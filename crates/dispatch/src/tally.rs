//! Metrics of contact channels, beside the hot path: summed in memory, written once a second in a transaction of their own.
//!
//! What a crash or a database that fails loses of them can be rebuilt from the attempts.

use std::collections::HashMap;

use nuncio_domain::lifecycle::Change;
use nuncio_domain::message::Status;
use nuncio_domain::{AddressId, Channel, TenantId};
use nuncio_store::{MetricDelta, MetricRow, Result};
use parking_lot::Mutex;

use crate::Shared;

/// Beyond this many waiting rows results are no longer counted, rather than memory growing without bound.
const ROWS: usize = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<HashMap<(TenantId, AddressId, Channel), MetricDelta>>);

impl Tally {
    /// Counts what `changes` say of the recipient's channel.
    pub(crate) fn add(&self, tenant: TenantId, address: AddressId, changes: &[Change]) {
        for change in changes {
            let Some((_, attempt)) = &change.attempt else { continue };
            let success = match change.status {
                Status::Delivered => true,
                Status::Failed => false,
                _ => continue,
            };
            let mut rows = self.0.lock();
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
        let rows = std::mem::take(&mut *self.0.lock());
        rows.into_iter().map(|(key, delta)| (key.0, key.1, key.2, delta)).collect()
    }
}

impl Shared {
    /// Writes what was summed; answers whether there was anything.
    pub(crate) async fn flush_tally(&self) -> Result<bool> {
        let rows = self.tally.take();
        if rows.is_empty() {
            return Ok(false);
        }
        self.store.add_metrics(rows).await?;
        Ok(true)
    }
}
