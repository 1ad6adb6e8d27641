//! Counts work in flight, and paces periodic work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Opens at intervals.
#[derive(Debug, Default)]
pub struct Gate(Mutex<Option<Duration>>);

impl Gate {
    /// Opens at `now`, on the monotonic clock, unless it opened less than `every` ago; returns whether it did.
    pub fn opens(&self, now: Duration, every: Duration) -> bool {
        let mut opened = self.0.lock();
        let opens = opened.is_none_or(|at| now.saturating_sub(at) >= every);
        if opens {
            *opened = Some(now);
        }
        opens
    }
}

/// Counts work items.
#[derive(Clone, Debug, Default)]
pub struct Tracker(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    count: AtomicUsize,
    idle: Notify,
}

/// A work item; ends when dropped.
#[derive(Debug)]
pub struct Working(Tracker);

impl Tracker {
    /// Counts a work item until the returned value is dropped.
    pub fn begin(&self) -> Working {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        Working(self.clone())
    }

    /// Returns whether any work is in flight.
    pub fn busy(&self) -> bool {
        self.0.count.load(Ordering::Acquire) > 0
    }

    /// Waits until no work is in flight.
    pub async fn idle(&self) {
        loop {
            // Registered before the check, so that a notification in between is not lost.
            let notified = self.0.idle.notified();
            if !self.busy() {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        if self.0.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.0.idle.notify_waiters();
        }
    }
}
