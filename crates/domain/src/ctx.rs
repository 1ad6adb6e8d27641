//! Time and randomness as explicit dependencies.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::id::{Id, uuid_v7};
use crate::time::Timestamp;

/// Source of time.
pub trait Clock: Debug + Send + Sync {
    /// Wall time, UTC. Can be corrected, but never goes backwards within a process.
    fn now(&self) -> Timestamp;
    /// Time since an arbitrary start, unaffected by corrections of the wall clock. For ages and timeouts.
    fn monotonic(&self) -> Duration;
}

/// Source of randomness.
pub trait Entropy: Debug + Send + Sync {
    /// Fills `out`. In production the bytes are suitable for keys; in tests they follow from a seed.
    fn fill(&self, out: &mut [u8]);

    /// Returns a uniform number in `0..bound`; `bound` must not be 0.
    fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0_u8; 8];
        self.fill(&mut bytes);
        // The bias of multiply-shift is below 2^-32 for every bound used here.
        ((u128::from(u64::from_le_bytes(bytes)) * u128::from(bound)) >> 64) as u64
    }
}

/// Generates identifiers from a clock and randomness.
#[derive(Clone, Debug)]
pub struct Ids {
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub entropy: Arc<dyn Entropy>,
}

impl Ids {
    /// Returns a new identifier with the current time.
    pub fn next<T: Id>(&self) -> T {
        self.at(self.clock.now())
    }

    /// Returns a new identifier with the time `at`.
    pub fn at<T: Id>(&self, at: Timestamp) -> T {
        let mut random = [0_u8; 10];
        self.entropy.fill(&mut random);
        T::from_uuid(uuid_v7(at, random))
    }
}
