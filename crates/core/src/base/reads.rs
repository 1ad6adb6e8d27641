//! Limits concurrent reads per environment, so that one environment cannot occupy the few database readers.

use std::sync::Arc;
use std::time::Duration;

use nuncio_dispatch::Shares;
use nuncio_domain::{Error, ErrorCode, Result, TenantId, limits};
use tokio::sync::OwnedSemaphorePermit;

/// Read permits by environment.
#[derive(Debug)]
pub struct Reads {
    shares: Shares,
    wait: Duration,
}

/// A read permit. Dropping it passes it to the environment's longest-waiting request.
#[derive(Debug)]
pub struct ReadPermit(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Default for Reads {
    fn default() -> Self {
        Self { shares: Shares::new(limits::READS), wait: limits::READ_WAIT }
    }
}

impl Reads {
    /// Waits for a permit of `tenant`; fails with 429 after a timeout.
    pub async fn acquire(&self, tenant: TenantId) -> Result<ReadPermit> {
        match tokio::time::timeout(self.wait, self.shares.of(tenant).acquire_owned()).await {
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
    pub(crate) async fn wait(&self, tenant: TenantId) -> Option<ReadPermit> {
        self.shares.of(tenant).acquire_owned().await.ok().map(ReadPermit)
    }

    /// Returns the number of requests of `tenant` that hold a permit or wait for one.
    pub fn requests(&self, tenant: TenantId) -> usize {
        Arc::strong_count(&self.shares.of(tenant)) - 2
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
}
