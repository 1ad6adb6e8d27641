//! Counts messages received by a sink, by the token in their text.

use std::sync::{Arc, Mutex, PoisonError};

use crate::workload::{TOKEN, TOKEN_DIGITS};

#[derive(Debug, Default)]
struct Tally {
    /// Number of deliveries per message number.
    seen: Vec<u8>,
    /// Number of distinct messages.
    different: u64,
    /// Messages without a readable token.
    unknown: u64,
}

/// Counts over all sessions of a sink. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<Mutex<Tally>>);

impl Counts {
    /// Counts a received message.
    pub(crate) fn add(&self, message: &[u8]) {
        let number = token(message);
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(n) = number else {
            tally.unknown += 1;
            return;
        };
        if tally.seen.len() <= n {
            tally.seen.resize(n + 1, 0);
        }
        tally.different += u64::from(tally.seen[n] == 0);
        tally.seen[n] = tally.seen[n].saturating_add(1);
    }

    /// Returns the number of distinct messages received.
    pub(crate) fn different(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).different
    }

    /// Returns how many messages numbered below `end` are missing, and how many are surplus: repeated, numbered `end` or above, or without
    /// a token.
    pub(crate) fn compare(&self, end: usize) -> (u64, u64) {
        let tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = |n| u64::from(tally.seen.get(n).copied().unwrap_or(0));
        let lost = (0..end).filter(|&n| times(n) == 0).count() as u64;
        let doubled: u64 = (0..end).map(|n| times(n).saturating_sub(1)).sum();
        let strange: u64 = (end..tally.seen.len()).map(times).sum();
        (lost, doubled + strange + tally.unknown)
    }
}

fn token(message: &[u8]) -> Option<usize> {
    let start = find(message, TOKEN.as_bytes())? + TOKEN.len();
    let digits = message.get(start..start + TOKEN_DIGITS)?;
    // A larger number than any run uses would only waste memory.
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|&n| n < 100_000_000)
}

/// Returns the position of `needle` in `haystack`.
pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
