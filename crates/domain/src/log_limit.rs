//! Throttles log lines about what is refused, dropped or fails, so that a flood cannot fill the log.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::limits;

/// Maximum number of distinct kinds; further ones share a line.
const KINDS: usize = 32;

/// Last log time and suppressed count of each kind.
#[derive(Debug, Default)]
pub struct LogLimit(Mutex<HashMap<String, Last>>);

#[derive(Debug)]
struct Last {
    logged: Duration,
    suppressed: u64,
}

impl LogLimit {
    /// Returns whether to log a line of this kind at `now`, on a monotonic clock: the number suppressed since the last one, or `None`.
    pub fn line(&self, kind: &str, now: Duration) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= KINDS && !kinds.contains_key(kind) {
            kinds.retain(|_, last| !is_due(last, now));
        }
        let kind = if kinds.len() < KINDS || kinds.contains_key(kind) { kind } else { "" };
        let Some(last) = kinds.get_mut(kind) else {
            kinds.insert(kind.to_owned(), Last { logged: now, suppressed: 0 });
            return Some(0);
        };
        if is_due(last, now) {
            last.logged = now;
            return Some(std::mem::take(&mut last.suppressed));
        }
        last.suppressed += 1;
        None
    }
}

fn is_due(last: &Last, now: Duration) -> bool {
    now.saturating_sub(last.logged) >= limits::LOG_INTERVAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_logged_once_in_an_interval_and_then_says_how_often_it_was_not() {
        let (log, start) = (LogLimit::default(), Duration::from_secs(1));
        assert_eq!(log.line("a", start), Some(0));
        for _ in 0..1_000 {
            assert_eq!(log.line("a", start), None);
        }
        assert_eq!(log.line("b", start), Some(0), "another kind has a line of its own");
        let later = start + limits::LOG_INTERVAL;
        assert_eq!(log.line("a", later), Some(1_000));
        assert_eq!((log.line("a", later), log.line("b", later)), (None, Some(0)));
    }

    #[test]
    fn kinds_are_bounded() {
        let (log, start) = (LogLimit::default(), Duration::ZERO);
        let lines = |now| (0..1_000).filter(|n| log.line(&n.to_string(), now).is_some()).count();
        assert!(lines(start) <= KINDS + 1);
        assert!(log.0.lock().unwrap().len() <= KINDS + 1);
        assert!(lines(start + limits::LOG_INTERVAL) <= KINDS + 1);
    }
}
