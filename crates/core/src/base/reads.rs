//! Limits concurrent reads per environment, so that one environment cannot occupy the few database readers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::{Error, ErrorCode, Result, TenantId, limits};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Environments kept; beyond it, those without a read are dropped.
const ENVIRONMENTS: usize = 1_000;

/// Semaphores by environment.
#[derive(Debug)]
pub struct Reads {
    environments: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
    wait: Duration,
}

/// A read permit. Dropping it passes it to the environment's longest-waiting request.
#[derive(Debug)]
pub struct ReadPermit(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Default for Reads {
    fn default() -> Self {
        Self { environments: Mutex::default(), wait: limits::READ_WAIT }
    }
}

impl Reads {
    /// Waits for a permit of `tenant`; fails with 429 after a timeout.
    pub async fn acquire(&self, tenant: TenantId) -> Result<ReadPermit> {
        let semaphore = self.semaphore(tenant);
        match tokio::time::timeout(self.wait, semaphore.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(ReadPermit(permit)),
            _ => {
                let message = format!(
                    "this environment has {} reads in flight, and none finished within {} s; send fewer concurrent reads",
                    limits::READS,
                    self.wait.as_secs()
                );
                Err(Error::new(ErrorCode::RateLimitExceeded, message))
            }
        }
    }

    /// Waits for a permit of `tenant` for as long as it takes, within a response that has begun.
    pub async fn wait(&self, tenant: TenantId) -> Option<ReadPermit> {
        self.semaphore(tenant).acquire_owned().await.ok().map(ReadPermit)
    }

    /// Returns the number of requests of `tenant` that hold a permit or wait for one.
    pub fn requests(&self, tenant: TenantId) -> usize {
        Arc::strong_count(&self.semaphore(tenant)) - 2
    }

    fn semaphore(&self, tenant: TenantId) -> Arc<Semaphore> {
        let mut environments = self.environments.lock();
        if environments.len() >= ENVIRONMENTS && !environments.contains_key(&tenant) {
            environments.retain(|_, places| Arc::strong_count(places) > 1);
        }
        Arc::clone(environments.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(limits::READS))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: TenantId = TenantId(1);

    #[tokio::test]
    async fn a_world_has_so_many_places_and_others_have_their_own() {
        let reads = Reads { wait: Duration::ZERO, ..Reads::default() };
        let mut held = Vec::new();
        for _ in 0..limits::READS {
            held.push(reads.acquire(ONE).await.expect("a permit"));
        }
        let refused = reads.acquire(ONE).await.expect_err("none comes");
        assert_eq!(refused.code(), ErrorCode::RateLimitExceeded);
        reads.acquire(TenantId(2)).await.expect("another environment");
    }

    #[tokio::test]
    async fn who_waits_gets_the_place_that_is_given_back() {
        let reads = Reads { wait: Duration::MAX, ..Reads::default() };
        let mut held = Vec::new();
        for _ in 0..limits::READS {
            held.push(reads.acquire(ONE).await.expect("a permit"));
        }
        let (permit, ()) = tokio::join!(biased; reads.acquire(ONE), async { drop(held.pop()) });
        permit.expect("the one that was given back");
    }

    #[tokio::test]
    async fn worlds_that_read_nothing_are_forgotten() {
        let reads = Reads::default();
        let held = reads.acquire(ONE).await.expect("a permit");
        for n in 2..=(2 * ENVIRONMENTS as i64) {
            reads.acquire(TenantId(n)).await.expect("a permit");
        }
        let environments = reads.environments.lock();
        assert!(environments.len() <= ENVIRONMENTS && environments[&ONE].available_permits() == limits::READS - 1);
        drop(held);
    }
}
