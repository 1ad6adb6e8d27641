//! Limits the memory of all attempts.
//!
//! Requests that fit their row are bounded by the windows of connections. Larger requests, and fetched attachments, reserve bytes from a
//! pool before they are loaded, in order. One environment can hold half of a pool, so that its slow provider does not stop the others. An
//! attempt reserves from each pool at most once, first for the request: so holders of the second pool wait for nothing, and there is no
//! deadlock.

use std::sync::Arc;

use nuncio_domain::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::shares::Shares;

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
    shares: Shares,
}

/// Reserved bytes of a pool, and of the environment's share in it. Released when dropped.
#[derive(Debug)]
pub(crate) struct Held {
    of_pool: OwnedSemaphorePermit,
    of_share: OwnedSemaphorePermit,
}

impl Memory {
    /// Makes pools of this many bytes in total.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { requests: Pool::new(bytes / 2), fetched: Pool::new(bytes / 2) }
    }

    /// Waits for the bytes of a request; `None` for 0.
    pub(crate) async fn for_request(&self, tenant: TenantId, bytes: usize) -> Option<Held> {
        if bytes == 0 { None } else { self.requests.hold(tenant, bytes).await }
    }

    /// Returns the bytes of a request if they are free and nothing waits for them.
    pub(crate) fn for_request_now(&self, tenant: TenantId, bytes: usize) -> Option<Held> {
        let pool = &self.requests;
        let of_share = pool.shares.of(tenant).try_acquire_many_owned(pool.units_of_share(bytes)).ok()?;
        let of_pool = Arc::clone(&pool.free).try_acquire_many_owned(pool.units_of(bytes)).ok()?;
        Some(Held { of_pool, of_share })
    }

    /// Waits for the bytes of everything that an attempt fetches.
    pub(crate) async fn for_fetched(&self, tenant: TenantId, bytes: usize) -> Option<Held> {
        self.fetched.hold(tenant, bytes).await
    }
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        Self { free: Arc::new(Semaphore::new(units as usize)), units, shares: Shares::new(units.div_ceil(2) as usize) }
    }

    /// What is larger than the pool takes all of it.
    fn units_of(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units)
    }

    /// Likewise for the share of an environment.
    fn units_of_share(&self, bytes: usize) -> u32 {
        self.units_of(bytes).min(self.units.div_ceil(2))
    }

    async fn hold(&self, tenant: TenantId, bytes: usize) -> Option<Held> {
        // The semaphores are never closed.
        let of_share = self.shares.of(tenant).acquire_many_owned(self.units_of_share(bytes)).await.ok()?;
        let of_pool = Arc::clone(&self.free).acquire_many_owned(self.units_of(bytes)).await.ok()?;
        Some(Held { of_pool, of_share })
    }
}

impl Held {
    /// Releases all but this many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        for permit in [&mut self.of_pool, &mut self.of_share] {
            let rest = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
            drop(permit.split(rest));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const ONE: TenantId = TenantId(1);

    #[test]
    fn what_is_larger_than_the_pool_goes_alone_and_in_its_turn() {
        let memory = Memory::new(20 * UNIT);
        let small = memory.for_request(ONE, UNIT).now_or_never().flatten().unwrap();
        let mut huge = Box::pin(memory.for_request(TenantId(2), usize::MAX));
        assert!(huge.as_mut().now_or_never().is_none(), "another one is under way");
        let is_stopped =
            |tenant| memory.for_request(tenant, UNIT).now_or_never().is_none() && memory.for_request_now(tenant, UNIT).is_none();
        assert!(is_stopped(ONE), "nobody goes ahead of it");
        drop(small);
        let mut held = huge.now_or_never().flatten().unwrap();
        assert!(memory.for_request_now(ONE, 1).is_none());
        held.shrink(9 * UNIT);
        assert!(memory.for_request_now(ONE, UNIT).is_some());
        assert!(memory.for_request(ONE, 0).now_or_never().is_some_and(|held| held.is_none()));
        assert!(memory.for_fetched(ONE, 5 * UNIT).now_or_never().is_some(), "what is fetched waits for no request");
    }

    #[test]
    fn an_environment_holds_half_of_a_pool_and_does_not_stop_others() {
        let memory = Memory::new(20 * UNIT);
        let held: Vec<_> = (0..5).map(|_| memory.for_fetched(ONE, UNIT).now_or_never().flatten().unwrap()).collect();
        let mut waiting = Box::pin(memory.for_fetched(ONE, UNIT));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert!(memory.for_fetched(TenantId(2), 5 * UNIT).now_or_never().is_some());
        drop(held);
        assert!(waiting.now_or_never().flatten().is_some());
    }
}
