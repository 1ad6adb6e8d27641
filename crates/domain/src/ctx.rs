//! Time and randomness as values that are handed in, never ambient.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::id::{Id, uuid_v7};
use crate::time::Timestamp;

/// Where the time comes from.
pub trait Clock: Debug + Send + Sync {
    /// Wall time, UTC. May be corrected, but never runs backwards within a process.
    fn now(&self) -> Timestamp;
    /// Time since an arbitrary start, which no correction of the wall clock touches. For ages and time-outs.
    fn monotonic(&self) -> Duration;
}

/// Where randomness comes from.
pub trait Entropy: Debug + Send + Sync {
    /// Fills `out`. In production the bytes are fit for keys; in tests they follow from a seed.
    fn fill(&self, out: &mut [u8]);

    /// A number that is uniform in `0..bound`; `bound` must not be 0.
    fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0_u8; 8];
        self.fill(&mut bytes);
        // The bias of the multiply-shift is below 2^-32 for every bound that is used here.
        ((u128::from(u64::from_le_bytes(bytes)) * u128::from(bound)) >> 64) as u64
    }
}

/// Clock and randomness together, and the identifiers that come from them.
#[derive(Clone, Debug)]
pub struct Ids {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub entropy: Arc<dyn Entropy>,
}

impl Ids {
    /// A new identifier, born now.
    pub fn next<T: Id>(&self) -> T {
        self.at(self.clock.now())
    }

    /// A new identifier, born at `at`.
    pub fn at<T: Id>(&self, at: Timestamp) -> T {
        let mut random = [0_u8; 10];
        self.entropy.fill(&mut random);
        T::from_uuid(uuid_v7(at, random))
    }
}
