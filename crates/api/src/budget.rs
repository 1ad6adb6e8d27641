//! How many bytes of large request bodies are held at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes that requests share.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<AtomicUsize>);

/// The bytes that one request has taken. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct Lease {
    left: Arc<AtomicUsize>,
    held: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// A lease of nothing, to be grown.
    pub(crate) fn lease(&self) -> Lease {
        Lease { left: self.0.clone(), held: 0 }
    }
}

/// How many times its bytes reading a large message takes: stored JSON, its parsed form, and an attachment decoded.
const COPIES: usize = 4;

impl Lease {
    /// Grows to what reading a message of so many bytes takes; `false`, and no change, when there is not enough.
    pub(crate) fn grow_to_read(&mut self, bytes: u64) -> bool {
        self.grow_to(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(COPIES))
    }

    /// Grows to `bytes` in all; `false`, and no change, when there are not enough.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.held);
        let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(more)).is_ok();
        if taken {
            self.held += more;
        }
        taken
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.left.fetch_add(self.held, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_held_comes_back() {
        let budget = Budget::new(100);
        let mut first = budget.lease();
        assert!(first.grow_to(60) && first.grow_to(80));
        let mut second = budget.lease();
        assert!(!second.grow_to(21));
        assert!(second.grow_to(20));
        drop(first);
        assert!(second.grow_to(100));
        assert!(!second.grow_to(101));
    }
}
