//! How much is under way and waiting until nothing is, and what is done now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Opens now and then.
#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<Option<Duration>>);

impl Gate {
    /// Whether it did not open for as long as `every`; then it opens at `now`, on the monotonic clock.
    pub(crate) fn opens(&self, now: Duration, every: Duration) -> bool {
        let mut opened = self.0.lock();
        let opens = opened.is_none_or(|at| now.saturating_sub(at) >= every);
        if opens {
            *opened = Some(now);
        }
        opens
    }
}

/// Counts pieces of work.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    count: AtomicUsize,
    idle: Notify,
}

/// One piece of work; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Working(Tracker);

impl Tracker {
    pub(crate) fn begin(&self) -> Working {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        Working(self.clone())
    }

    pub(crate) fn busy(&self) -> bool {
        self.0.count.load(Ordering::Acquire) > 0
    }

    /// Returns at a moment when nothing is under way.
    pub(crate) async fn idle(&self) {
        loop {
            // Registered before the look, so that a notification in between is not lost.
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
