//! Values that may be up to a second old.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::RwLock;

/// How long a value may be used since it was last read from the database, on the monotonic clock.
pub(crate) const TRUST: Duration = Duration::from_secs(1);

/// The most entries; beyond it everything is forgotten and read anew.
const ENTRIES: usize = 10_000;

/// A map whose entries are trusted for [`TRUST`].
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    entries: RwLock<HashMap<K, (Duration, V)>>,
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self { entries: RwLock::new(HashMap::new()) }
    }
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// The value, if it is young enough at `now`.
    pub(crate) fn get(&self, key: &K, now: Duration) -> Option<V> {
        let entries = self.entries.read();
        let (read_at, value) = entries.get(key)?;
        (now.saturating_sub(*read_at) < TRUST).then(|| value.clone())
    }

    /// Keeps a value whose reading began at `read_at`.
    pub(crate) fn put(&self, key: K, value: V, read_at: Duration) {
        let mut entries = self.entries.write();
        if entries.len() >= ENTRIES {
            entries.clear();
        }
        entries.insert(key, (read_at, value));
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.entries.write().clear();
    }

    /// Forgets a value.
    pub(crate) fn forget(&self, key: &K) {
        self.entries.write().remove(key);
    }
}
