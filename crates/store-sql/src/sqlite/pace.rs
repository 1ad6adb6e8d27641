//! How large a transaction may be.

use std::time::Duration;

use crate::message_batch::{BATCH, Limits};

/// How much one transaction may carry, so that whoever comes while it runs does not wait long: as many items as the statements of
/// [`Pace::WORK`] write, or as many as are written in the time that the disk takes for a sync, if that is more.
#[derive(Debug)]
pub(super) struct Pace {
    /// What the statements of one item take, in nanoseconds, averaged over the last transactions.
    item: f64,
    /// What a sync takes, the same.
    sync: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { item: Self::WORK.as_nanos() as f64 / BATCH as f64, sync: 0.0 }
    }
}

impl Pace {
    const WORK: Duration = Duration::from_millis(2);
    /// What is written alongside a few new messages that callers wait for, and the least items of it: the steps of as many messages.
    const SHORT: Duration = Duration::from_micros(500);
    const FEWEST: f64 = 16.0;
    /// With fewer items, what a transaction costs by itself would be felt.
    const LEAST: f64 = 64.0;
    /// The weight of the last transaction in the averages.
    const WEIGHT: f64 = 0.1;

    /// How many items the next transaction may carry.
    pub(super) fn limits(&self) -> Limits {
        let items = |time: f64, least, most| (time / self.item).clamp(least, most) as usize;
        let most = items(self.sync.max(Self::WORK.as_nanos() as f64), Self::LEAST, BATCH as f64);
        Limits { items: most, bulk: most, short: items(Self::SHORT.as_nanos() as f64, Self::FEWEST, Self::LEAST) }
    }

    /// Learns from a transaction.
    pub(super) fn learn(&mut self, items: usize, work: Duration, sync: Duration) {
        let towards = |average: &mut f64, value: f64| *average += (value - *average) * Self::WEIGHT;
        towards(&mut self.item, (work.as_nanos() as f64 / items.max(1) as f64).max(1.0));
        towards(&mut self.sync, sync.as_nanos() as f64);
    }
}
