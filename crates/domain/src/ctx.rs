//! Time and randomness as explicit dependencies.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::id::{Id, uuid_v7};
use crate::time::Timestamp;

/// Bits of an identifier that number those of its millisecond.
const NUMBER_BITS: u32 = 12;
/// Mask of the first number of a millisecond, which leaves room for others.
const FIRST: u16 = 0x7ff;

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
    /// The newest identifier in order: its millisecond, then its number in it (12 bits).
    newest: Arc<AtomicU64>,
}

impl Ids {
    /// Makes a generator; its clones share the order of [`Self::in_order`].
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy, newest: Arc::default() }
    }

    /// Returns a new identifier with the current time.
    pub fn next<T: Id>(&self) -> T {
        self.at(self.clock.now())
    }

    /// Returns a new identifier with the time `at`.
    pub fn at<T: Id>(&self, at: Timestamp) -> T {
        T::from_uuid(uuid_v7(at, self.random()))
    }

    /// Returns a new identifier with the time `at`. Those that this returned for the newest millisecond sort in their order, as long as their
    /// numbers last (at least 2,048; RFC 9562 §6.2, method 1).
    pub fn in_order<T: Id>(&self, at: Timestamp) -> T {
        let mut random = self.random();
        if let Some(number) = self.number(at, u16::from_be_bytes([random[0], random[1]])) {
            random[..2].copy_from_slice(&number.to_be_bytes());
        }
        T::from_uuid(uuid_v7(at, random))
    }

    fn random(&self) -> [u8; 10] {
        let mut random = [0; 10];
        self.entropy.fill(&mut random);
        random
    }

    /// Returns the number of an identifier in its millisecond; the first of them is random. `None` if newer ones were made, or all are taken.
    fn number(&self, at: Timestamp, random: u16) -> Option<u16> {
        let first = ((at.millis().max(0) as u64) << NUMBER_BITS) | u64::from(random & FIRST);
        let next = |newest: u64| match (first >> NUMBER_BITS).cmp(&(newest >> NUMBER_BITS)) {
            Ordering::Greater => Some(first),
            Ordering::Equal => Some(newest + 1).filter(|next| next >> NUMBER_BITS == newest >> NUMBER_BITS),
            Ordering::Less => None,
        };
        let newest = self.newest.fetch_update(Relaxed, Relaxed, next).ok().and_then(next)?;
        Some((newest & ((1 << NUMBER_BITS) - 1)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageId;

    #[derive(Debug)]
    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(7)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    impl Entropy for Fixed {
        fn fill(&self, out: &mut [u8]) {
            out.fill(0xff);
        }
    }

    #[test]
    fn identifiers_of_a_millisecond_sort_as_they_were_made() {
        let ids = Ids::new(Arc::new(Fixed), Arc::new(Fixed));
        let made: Vec<MessageId> = (0..2_048).map(|_| ids.in_order(ids.clock.now())).collect();
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(made.iter().all(|id| id.created_at() == ids.clock.now()));
        let older: MessageId = ids.in_order(Timestamp::from_millis(6));
        let newer: MessageId = ids.in_order(Timestamp::from_millis(8));
        assert!(older < made[0] && *made.last().unwrap() < newer);
        assert!(ids.clone().in_order::<MessageId>(Timestamp::from_millis(8)) > newer, "clones share the order");
    }
}
