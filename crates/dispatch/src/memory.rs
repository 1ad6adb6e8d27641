//! Limits the memory of all attempts.
//!
//! Requests that fit their row are bounded by the windows of connections. Larger requests, and fetched attachments, reserve bytes from a
//! pool before they are loaded, in order. An attempt reserves from each pool at most once, first for the request: so holders of the second
//! pool wait for nothing, and there is no deadlock.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Granularity of the pools, in bytes.
const UNIT: usize = 1024;

#[derive(Debug)]
pub(crate) struct Memory {
    requests: Pool,
    fetched: Pool,
}

#[derive(Debug)]
struct Pool {
    free: Arc<Semaphore>,
    units: u32,
}

/// Reserved bytes of a pool. Released when dropped.
#[derive(Debug)]
pub(crate) struct Held(OwnedSemaphorePermit);

impl Memory {
    /// Makes pools of this many bytes in total.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { requests: Pool::new(bytes / 2), fetched: Pool::new(bytes / 2) }
    }

    /// Waits for the bytes of a request; `None` for 0.
    pub(crate) async fn for_request(&self, bytes: usize) -> Option<Held> {
        if bytes == 0 { None } else { self.requests.hold(bytes).await }
    }

    /// Returns the bytes of a request if they are free and nothing waits for them.
    pub(crate) fn for_request_now(&self, bytes: usize) -> Option<Held> {
        let pool = &self.requests;
        Arc::clone(&pool.free).try_acquire_many_owned(pool.units_of(bytes)).ok().map(Held)
    }

    /// Waits for the bytes of everything that an attempt fetches.
    pub(crate) async fn for_fetched(&self, bytes: usize) -> Option<Held> {
        self.fetched.hold(bytes).await
    }
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        Self { free: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// What is larger than the pool takes all of it.
    fn units_of(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units)
    }

    async fn hold(&self, bytes: usize) -> Option<Held> {
        // The semaphore is never closed.
        Arc::clone(&self.free).acquire_many_owned(self.units_of(bytes)).await.ok().map(Held)
    }
}

impl Held {
    /// Releases all but this many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let rest = self.0.num_permits().saturating_sub(bytes.div_ceil(UNIT));
        drop(self.0.split(rest));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn what_is_larger_than_the_pool_goes_alone_and_in_its_turn() {
        let memory = Memory::new(20 * UNIT);
        let small = memory.for_request(UNIT).now_or_never().flatten().unwrap();
        let mut huge = Box::pin(memory.for_request(usize::MAX));
        assert!(huge.as_mut().now_or_never().is_none(), "another one is under way");
        assert!(memory.for_request(UNIT).now_or_never().is_none() && memory.for_request_now(UNIT).is_none(), "nobody goes ahead of it");
        drop(small);
        let mut held = huge.now_or_never().flatten().unwrap();
        assert!(memory.for_request_now(1).is_none());
        held.shrink(9 * UNIT);
        assert!(memory.for_request_now(UNIT).is_some());
        assert!(memory.for_request(0).now_or_never().is_some_and(|held| held.is_none()));
        assert!(memory.for_fetched(10 * UNIT).now_or_never().is_some(), "what is fetched waits for no request");
    }
}
