//! Throttles log lines about what was refused or dropped, so that a flood cannot fill the log.

use std::collections::HashMap;
use std::time::Duration;

use nuncio_domain::limits;
use parking_lot::Mutex;

/// Maximum number of distinct kinds; further ones share a line.
const KINDS: usize = 32;

/// Last log time and suppressed count of each kind.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<HashMap<String, Last>>);

#[derive(Debug)]
struct Last {
    logged: Duration,
    suppressed: u64,
}

impl Refusals {
    /// Returns whether to log a rejection of this kind at `now`: the number suppressed since the last line, or `None`.
    pub fn line(&self, kind: &str, now: Duration) -> Option<u64> {
        let mut kinds = self.0.lock();
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
    now.saturating_sub(last.logged) >= limits::REFUSAL_LOG_INTERVAL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_logged_once_in_an_interval_and_then_says_how_often_it_was_not() {
        let (refusals, start) = (Refusals::default(), Duration::from_secs(1));
        assert_eq!(refusals.line("a", start), Some(0));
        for _ in 0..1_000 {
            assert_eq!(refusals.line("a", start), None);
        }
        assert_eq!(refusals.line("b", start), Some(0), "another kind has a line of its own");
        let later = start + limits::REFUSAL_LOG_INTERVAL;
        assert_eq!(refusals.line("a", later), Some(1_000));
        assert_eq!((refusals.line("a", later), refusals.line("b", later)), (None, Some(0)));
    }

    #[test]
    fn kinds_are_bounded() {
        let (refusals, start) = (Refusals::default(), Duration::ZERO);
        let lines = |now| (0..1_000).filter(|n| refusals.line(&n.to_string(), now).is_some()).count();
        assert!(lines(start) <= KINDS + 1);
        assert!(refusals.0.lock().len() <= KINDS + 1);
        assert!(lines(start + limits::REFUSAL_LOG_INTERVAL) <= KINDS + 1);
    }
}
