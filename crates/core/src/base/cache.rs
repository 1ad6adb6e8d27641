//! Caches values for up to a second, and remembers successful look-ups.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuncio_domain::Clock;
use parking_lot::RwLock;

/// Maximum age of a value since it was read from the database, on the monotonic clock.
pub(crate) const TRUST: Duration = Duration::from_secs(1);

/// Maximum number of entries; beyond it the cache is cleared.
const ENTRIES: usize = 10_000;

/// Maximum number of entries of a [`PositiveCache`]; beyond it the cache is cleared.
const POSITIVES: usize = 100_000;

/// Number of locks for reading; keys with the same hash share one.
const TURNS: usize = 64;

/// A map whose entries are valid for [`TRUST`]. Of concurrent misses of one entry, one reads it and the others wait for the result.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    entries: RwLock<HashMap<K, (Duration, V)>>,
    turns: [Turn; TURNS],
    hasher: RandomState,
    /// Number of invalidations: a value whose read started before one is not stored.
    forgotten: AtomicU64,
}

#[derive(Debug, Default)]
struct Turn {
    lock: tokio::sync::Mutex<()>,
    failures: AtomicU64,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        let turns = std::array::from_fn(|_| Turn::default());
        Self { entries: RwLock::default(), turns, hasher: RandomState::new(), forgotten: AtomicU64::new(0) }
    }
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// Returns the value if it is fresh at `now`.
    fn get(&self, key: &K, now: Duration) -> Option<V> {
        let entries = self.entries.read();
        let (read_at, value) = entries.get(key)?;
        (now.saturating_sub(*read_at) < TRUST).then(|| value.clone())
    }

    /// Returns the value, or reads it with `read`. Callers must not hold a database connection, since `read` may wait for one.
    pub(crate) async fn get_or_read<E>(&self, key: K, clock: &dyn Clock, read: impl Future<Output = Result<V, E>>) -> Result<V, E> {
        if let Some(value) = self.get(&key, clock.monotonic()) {
            return Ok(value);
        }
        let turn = &self.turns[self.hasher.hash_one(&key) as usize % TURNS];
        let failures = turn.failures.load(Ordering::Relaxed);
        let guard = turn.lock.lock().await;
        if let Some(value) = self.get(&key, clock.monotonic()) {
            return Ok(value);
        }
        // If the read fails, those who waited for it do not fail one after the other.
        let _guard = (turn.failures.load(Ordering::Relaxed) == failures).then_some(guard);
        let (read_at, forgotten) = (clock.monotonic(), self.forgotten.load(Ordering::Acquire));
        let value = read.await.inspect_err(|_| {
            turn.failures.fetch_add(1, Ordering::Relaxed);
        })?;
        if self.forgotten.load(Ordering::Acquire) == forgotten {
            self.put(key, value.clone(), read_at);
        }
        Ok(value)
    }

    /// Stores a value whose read started at `read_at`.
    fn put(&self, key: K, value: V, read_at: Duration) {
        let mut entries = self.entries.write();
        if entries.len() >= ENTRIES {
            entries.clear();
        }
        entries.insert(key, (read_at, value));
    }

    pub(crate) fn clear(&self) {
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        self.entries.write().clear();
    }

    /// Invalidates a value.
    pub(crate) fn forget(&self, key: &K) {
        self.forgotten.fetch_add(1, Ordering::AcqRel);
        self.entries.write().remove(key);
    }
}

/// Keys whose last look-up on this node succeeded. Failed look-ups are not stored, so that guesses cannot evict the others.
#[derive(Debug)]
pub(crate) struct PositiveCache<K>(RwLock<HashSet<K>>);

impl<K> Default for PositiveCache<K> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Eq + Hash> PositiveCache<K> {
    pub(crate) fn contains(&self, name: &K) -> bool {
        self.0.read().contains(name)
    }

    /// Records the result of a look-up.
    pub(crate) fn note(&self, name: K, holds: bool) {
        if self.contains(&name) == holds {
            return;
        }
        let mut known = self.0.write();
        if !holds {
            known.remove(&name);
            return;
        }
        if known.len() >= POSITIVES {
            known.clear();
        }
        known.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use nuncio_domain::{Error, Timestamp};

    use super::*;

    #[derive(Debug, Default)]
    struct Still(AtomicU64);

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(0)
        }
        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.0.load(Ordering::Relaxed))
        }
    }

    /// Returns the number of reads for a hundred concurrent requests, and their results.
    async fn crowd(cache: &Arc<Cache<u8, u8>>, answer: Result<u8, ()>) -> (usize, usize) {
        let reads = Arc::new(AtomicUsize::new(0));
        let asked: Vec<_> = (0..100)
            .map(|_| {
                let (cache, reads) = (cache.clone(), reads.clone());
                tokio::spawn(async move {
                    let read = async {
                        reads.fetch_add(1, Ordering::Relaxed);
                        tokio::task::yield_now().await;
                        answer.map_err(|()| Error::unavailable("no"))
                    };
                    cache.get_or_read(1, &Still::default(), read).await.is_ok()
                })
            })
            .collect();
        let mut good = 0;
        for one in asked {
            good += usize::from(one.await.is_ok_and(|good| good));
        }
        (reads.load(Ordering::Relaxed), good)
    }

    #[tokio::test]
    async fn many_who_miss_a_value_read_it_once() {
        let cache = Arc::default();
        assert_eq!(crowd(&cache, Err(())).await, (100, 0), "each finds out for itself when it cannot be read");
        assert_eq!(crowd(&cache, Ok(7)).await, (1, 100));
        assert_eq!(crowd(&cache, Ok(8)).await, (0, 100));
        cache.forget(&1);
        assert_eq!(crowd(&cache, Ok(9)).await, (1, 100));
    }

    #[tokio::test]
    async fn what_was_read_before_a_change_is_not_kept() {
        let (cache, clock) = (Cache::<u8, u8>::default(), Still::default());
        let changes = async {
            cache.forget(&1);
            Ok::<_, Error>(1)
        };
        assert_eq!(cache.get_or_read(1, &clock, changes).await.ok(), Some(1));
        assert_eq!(cache.get_or_read(1, &clock, async { Ok::<_, Error>(2) }).await.ok(), Some(2));
        clock.0.store(999, Ordering::Relaxed);
        assert_eq!(cache.get_or_read(1, &clock, async { Ok::<_, Error>(3) }).await.ok(), Some(2));
        clock.0.store(1_000, Ordering::Relaxed);
        assert_eq!(cache.get_or_read(1, &clock, async { Ok::<_, Error>(3) }).await.ok(), Some(3));
    }

    #[test]
    fn only_what_holds_is_remembered() {
        let known = PositiveCache::default();
        known.note(1, true);
        known.note(2, false);
        assert!(known.contains(&1) && !known.contains(&2));
        known.note(1, false);
        assert!(!known.contains(&1));
        (0..=POSITIVES).for_each(|name| known.note(name, true));
        assert!(known.0.read().len() <= POSITIVES && known.contains(&POSITIVES));
    }
}
