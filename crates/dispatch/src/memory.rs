//! How much attempts may hold in memory together.
//!
//! Requests that fit their row are bounded by the windows of connections. What does not fit, and what is fetched, takes bytes out of a
//! pool before it is loaded, in the order of asking. An attempt takes each pool at most once, the pool of requests first: so whoever holds
//! bytes of the second pool waits for nobody, and there is no deadlock.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes that are counted as one.
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

/// Bytes of a pool; dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Held(OwnedSemaphorePermit);

impl Memory {
    /// Of so many bytes in all.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { requests: Pool::new(bytes / 2), fetched: Pool::new(bytes / 2) }
    }

    /// Waits for the bytes of a request; nothing for none.
    pub(crate) async fn for_request(&self, bytes: usize) -> Option<Held> {
        if bytes == 0 { None } else { self.requests.hold(bytes).await }
    }

    /// The bytes of a request, if they are free and nobody waits for them.
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

    /// What is larger than the pool takes all of it, and goes alone.
    fn units_of(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units)
    }

    async fn hold(&self, bytes: usize) -> Option<Held> {
        // The semaphore is never closed.
        Arc::clone(&self.free).acquire_many_owned(self.units_of(bytes)).await.ok().map(Held)
    }
}

impl Held {
    /// Gives back all but so many bytes.
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
