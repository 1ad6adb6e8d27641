//! Reads of one world at a time. The database has few readers; without a limit one world that reads without pause would take them all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::{TenantId, limits};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// Environments that are kept without need; beyond it those that read nothing are forgotten.
const WORLDS: usize = 1_000;

/// The places of each environment.
#[derive(Debug)]
pub(crate) struct Reads {
    worlds: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
    wait: Duration,
}

/// A place of an environment. When it is dropped, the request of that environment that has waited longest gets it.
#[derive(Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Default for Reads {
    fn default() -> Self {
        Self { worlds: Mutex::default(), wait: limits::READ_WAIT }
    }
}

impl Reads {
    /// Waits for a place of `tenant`; refuses with 429 if none comes in time.
    pub(crate) async fn place(&self, tenant: TenantId) -> Result<Place, ApiError> {
        let places = self.places(tenant);
        match tokio::time::timeout(self.wait, places.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Place(permit)),
            _ => {
                let message = format!(
                    "this environment has {} reads under way, and none ended within {} s; send fewer reads at the same time",
                    limits::READS,
                    self.wait.as_secs()
                );
                Err(ApiError::too_many(&message, Duration::from_secs(1)))
            }
        }
    }

    fn places(&self, tenant: TenantId) -> Arc<Semaphore> {
        let mut worlds = self.worlds.lock();
        if worlds.len() >= WORLDS && !worlds.contains_key(&tenant) {
            worlds.retain(|_, places| Arc::strong_count(places) > 1);
        }
        Arc::clone(worlds.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(limits::READS))))
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
            held.push(reads.place(ONE).await.expect("a place"));
        }
        let refused = reads.place(ONE).await.expect_err("none comes");
        assert_eq!(refused.inner().code(), nuncio_domain::ErrorCode::RateLimitExceeded);
        reads.place(TenantId(2)).await.expect("another world");
    }

    #[tokio::test]
    async fn who_waits_gets_the_place_that_is_given_back() {
        let reads = Reads { wait: Duration::MAX, ..Reads::default() };
        let mut held = Vec::new();
        for _ in 0..limits::READS {
            held.push(reads.place(ONE).await.expect("a place"));
        }
        let (place, ()) = tokio::join!(biased; reads.place(ONE), async { drop(held.pop()) });
        place.expect("the one that was given back");
    }

    #[tokio::test]
    async fn worlds_that_read_nothing_are_forgotten() {
        let reads = Reads::default();
        let held = reads.place(ONE).await.expect("a place");
        for n in 2..=(2 * WORLDS as i64) {
            reads.place(TenantId(n)).await.expect("a place");
        }
        let worlds = reads.worlds.lock();
        assert!(worlds.len() <= WORLDS && worlds[&ONE].available_permits() == limits::READS - 1);
        drop(held);
    }
}
