//! Remembers what was found before.

use std::collections::HashSet;
use std::hash::Hash;

use parking_lot::RwLock;

/// The most that is remembered; beyond it everything is forgotten.
const ENTRIES: usize = 100_000;

/// Names for which something held when this node last looked them up. Others are not kept, so that guesses cannot push them out.
#[derive(Debug)]
pub(crate) struct Known<K>(RwLock<HashSet<K>>);

impl<K> Default for Known<K> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<K: Eq + Hash> Known<K> {
    pub(crate) fn contains(&self, name: &K) -> bool {
        self.0.read().contains(name)
    }

    /// Takes note of a look-up.
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
        let known = Known::default();
        known.note(1, true);
        known.note(2, false);
        assert!(known.contains(&1) && !known.contains(&2));
        known.note(1, false);
        assert!(!known.contains(&1));
        (0..=ENTRIES).for_each(|name| known.note(name, true));
        assert!(known.0.read().len() <= ENTRIES && known.contains(&ENTRIES));
    }
}
