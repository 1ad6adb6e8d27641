//! A clock that only moves on demand, and seeded randomness.

use std::time::Duration;

use nuncio_domain::{Clock, Entropy, Timestamp};
use parking_lot::Mutex;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

/// A clock that only moves on demand. Starts at 2026-01-01T00:00:00Z.
#[derive(Debug, Default)]
pub struct ManualClock {
    passed: Mutex<Duration>,
    tick: Mutex<Duration>,
}

const BEGINNING: Timestamp = Timestamp::from_millis(1_767_225_600_000);

impl ManualClock {
    /// Advances wall time and monotonic time.
    pub fn advance(&self, by: Duration) {
        *self.passed.lock() += by;
    }

    /// From now on, each read of the wall time advances it by this much.
    pub fn tick(&self, by: Duration) {
        *self.tick.lock() = by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let mut passed = self.passed.lock();
        *passed += *self.tick.lock();
        BEGINNING.plus(*passed)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(3_600) + *self.passed.lock()
    }
}

/// Seeded randomness: the same in every run.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<ChaCha20Rng>);

impl SeededEntropy {
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(ChaCha20Rng::seed_from_u64(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, out: &mut [u8]) {
        self.0.lock().fill_bytes(out);
    }
}
