//! Which messages from outside were delivered before.
//!
//! An SMSC gives no id to what it delivers, and delivers again what we refused for now, or what it has no answer to because the session
//! broke. People write the same words twice. So the same octets are the same message only if the first delivery was refused, or
//! came over a session that is over; then both get one id, and what takes events keeps one of them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::session::Session;

/// How long a delivery is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);
/// How many are remembered.
const MOST: usize = 50_000;

#[derive(Debug)]
struct Seen {
    id: String,
    session: Weak<Session>,
    refused: bool,
}

/// Messages that were delivered lately, by a hash of their octets.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    seen: HashMap<u64, Seen>,
    order: VecDeque<(Duration, u64)>,
}

impl Recent {
    /// The id of a message that comes over `session` now: `fresh`, unless it came before.
    pub(crate) fn admit(&mut self, key: u64, session: &Arc<Session>, now: Duration, fresh: impl FnOnce() -> String) -> String {
        while self.order.len() >= MOST || self.order.front().is_some_and(|(at, _)| now.saturating_sub(*at) > REMEMBERED) {
            if let Some((_, old)) = self.order.pop_front() {
                self.seen.remove(&old);
            }
        }
        let again = self.seen.get(&key).filter(|seen| seen.refused || seen.session.upgrade().is_none_or(|session| session.has_ended()));
        let id = again.map_or_else(fresh, |seen| seen.id.clone());
        let seen = Seen { id: id.clone(), session: Arc::downgrade(session), refused: false };
        if self.seen.insert(key, seen).is_none() {
            self.order.push_back((now, key));
        }
        id
    }

    /// The message of that id was written, or refused for now.
    pub(crate) fn answered(&mut self, key: u64, id: &str, taken: bool) {
        if let Some(seen) = self.seen.get_mut(&key).filter(|seen| seen.id == id) {
            seen.refused = !taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> Arc<Session> {
        Arc::new(Session::new(1, Duration::from_secs(1)))
    }

    #[test]
    fn only_what_is_delivered_again_is_the_same() {
        let mut recent = Recent::default();
        let mut count = 0;
        let (first, second) = (session(), session());
        let mut admit = |recent: &mut Recent, session: &Arc<Session>, now| {
            recent.admit(1, session, Duration::from_secs(now), || {
                count += 1;
                count.to_string()
            })
        };
        assert_eq!(admit(&mut recent, &first, 0), "1");
        assert_eq!(admit(&mut recent, &first, 0), "2", "the same words, before the first were answered");
        recent.answered(1, "2", true);
        assert_eq!(admit(&mut recent, &second, 1), "3", "the same words again");
        recent.answered(1, "3", false);
        assert_eq!(admit(&mut recent, &second, 2), "3", "refused, delivered again");
        recent.answered(1, "3", true);
        second.end("gone");
        assert_eq!(admit(&mut recent, &first, 3), "3", "the answer may have been lost");
        recent.answered(1, "3", true);
        assert_eq!(admit(&mut recent, &first, 4), "4", "once is enough");
        drop(first);
        assert_eq!(admit(&mut recent, &session(), 700), "5", "long ago");
        assert_eq!((recent.seen.len(), recent.order.len()), (1, 1));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut recent, session) = (Recent::default(), session());
        for key in 0..MOST as u64 + 10 {
            recent.admit(key, &session, Duration::ZERO, String::new);
        }
        assert_eq!((recent.seen.len(), recent.order.len()), (MOST, MOST));
    }
}
