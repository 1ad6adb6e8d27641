//! Token buckets.
//!
//! A bucket is stored as the time when it will be full again (the generic cell rate algorithm), so that it needs neither a refill task nor
//! fractions of tokens. All times are on the monotonic clock.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;

/// Maximum number of buckets; full ones are removed first.
const BUCKETS: usize = 10_000;

/// Rate and size of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    per_minute: u32,
    burst: u32,
    interval: Duration,
}

impl Quota {
    /// Makes a quota; `None` for 0 tokens per minute: no limit.
    pub fn new(per_minute: u32, burst: u32) -> Option<Self> {
        let interval = Duration::from_secs(60).checked_div(per_minute)?;
        Some(Self { per_minute, burst: burst.max(1), interval })
    }

    /// Returns the state of a bucket that is full again after `debt`.
    fn state(self, debt: Duration) -> Taken {
        let Self { per_minute, burst, interval } = self;
        let capacity = interval * burst;
        // A request that read the clock before another one, and came to the lock after it, sees a larger debt.
        let remaining = capacity.saturating_sub(debt).as_nanos() / interval.as_nanos().max(1);
        let wait = (debt + interval).checked_sub(capacity).filter(|wait| !wait.is_zero());
        Taken { limit: per_minute, remaining: remaining as u32, full_in: debt, wait }
    }
}

/// Result of taking a token, or the state of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Tokens per minute.
    pub limit: u32,
    /// Tokens left.
    pub remaining: u32,
    /// Time until the bucket is full again.
    pub full_in: Duration,
    /// Time until the next token, if none is available.
    pub wait: Option<Duration>,
}

/// One bucket per key.
#[derive(Debug)]
pub struct Buckets<K> {
    quota: Option<Quota>,
    full_at: Mutex<HashMap<K, Duration>>,
}

impl<K: Eq + Hash> Buckets<K> {
    /// Makes full buckets; without a quota there is no limit.
    pub fn new(quota: Option<Quota>) -> Self {
        Self { quota, full_at: Mutex::new(HashMap::new()) }
    }

    /// Returns the time until the next token if none is available; takes none.
    pub fn wait(&self, key: &K, now: Duration) -> Option<Duration> {
        let debt = self.full_at.lock().get(key)?.saturating_sub(now);
        self.quota?.state(debt).wait
    }

    /// Returns the state of a bucket; takes no token. `None` if there is no limit.
    pub fn state(&self, key: &K, now: Duration) -> Option<Taken> {
        let debt = self.full_at.lock().get(key).map_or(Duration::ZERO, |full_at| full_at.saturating_sub(now));
        self.quota.map(|quota| quota.state(debt))
    }

    /// Takes a token; `None` if there is no limit.
    pub fn take(&self, key: K, now: Duration) -> Option<Taken> {
        let quota = self.quota?;
        let mut buckets = self.full_at.lock();
        if buckets.len() >= BUCKETS && !buckets.contains_key(&key) {
            make_room(&mut buckets, now);
        }
        let full_at = buckets.entry(key).or_insert(now);
        let before = quota.state(full_at.saturating_sub(now));
        if before.wait.is_some() {
            return Some(before);
        }
        let debt = before.full_in + quota.interval;
        *full_at = now + debt;
        Some(Taken { wait: None, ..quota.state(debt) })
    }
}

/// Returns the address that an IP address counts as: a subscriber has at least a /64 of IPv6 addresses (RFC 6177).
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX)).into(),
        ip => ip,
    }
}

fn make_room<K: Eq + Hash>(buckets: &mut HashMap<K, Duration>, now: Duration) {
    buckets.retain(|_, full_at| *full_at > now);
    if buckets.len() >= BUCKETS {
        buckets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_bucket_empties_refuses_and_fills_again() {
        let buckets = Buckets::new(Quota::new(60, 3));
        for remaining in [2, 1, 0] {
            let taken = buckets.take("a", ms(5_000)).map(|t| (t.remaining, t.wait));
            assert_eq!(taken, Some((remaining, None)));
        }
        let refused = Taken { limit: 60, remaining: 0, full_in: ms(2_600), wait: Some(ms(600)) };
        assert_eq!(buckets.take("a", ms(5_400)), Some(refused), "a refused request takes nothing");
        let taken = Taken { limit: 60, remaining: 0, full_in: ms(3_000), wait: None };
        assert_eq!(buckets.take("a", ms(6_000)), Some(taken));
        assert_eq!(buckets.take("b", ms(6_000)).map(|t| t.remaining), Some(2), "keys do not share");
        assert_eq!(buckets.take("a", ms(60_000)).map(|t| t.remaining), Some(2), "no more than the burst is saved up");
    }

    #[test]
    fn who_read_the_clock_before_the_last_token_went_is_refused() {
        let buckets = Buckets::new(Quota::new(60, 2));
        assert!((0..2).all(|_| buckets.take("a", ms(5_000)).is_some_and(|taken| taken.wait.is_none())));
        let late = buckets.take("a", ms(4_999)).map(|taken| (taken.remaining, taken.wait));
        assert_eq!(late, Some((0, Some(ms(1_001)))));
    }

    #[test]
    fn zero_is_off() {
        assert_eq!(Buckets::new(Quota::new(0, 5)).take(1, ms(0)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let buckets = Buckets::new(Quota::new(60, 1));
        for key in 0..3 * BUCKETS {
            buckets.take(key, ms(0));
        }
        assert!(buckets.full_at.lock().len() <= BUCKETS);
    }
}
