//! Remembers successful look-ups.

use std::collections::HashSet;
use std::hash::Hash;

use parking_lot::RwLock;

/// Maximum number of entries; beyond it the cache is cleared.
const ENTRIES: usize = 100_000;

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
        if known.len() >= ENTRIES {
            known.clear();
        }
        known.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_holds_is_remembered() {
        let known = PositiveCache::default();
        known.note(1, true);
        known.note(2, false);
        assert!(known.contains(&1) && !known.contains(&2));
        known.note(1, false);
        assert!(!known.contains(&1));
        (0..=ENTRIES).for_each(|name| known.note(name, true));
        assert!(known.0.read().len() <= ENTRIES && known.contains(&ENTRIES));
    }
}
