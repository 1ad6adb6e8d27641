//! Recognises repeated deliveries of inbound messages.
//!
//! An SMSC assigns no ids to deliveries. It repeats those we refused temporarily, and those whose response it may have lost when the
//! session broke. But people also send the same text twice. So identical octets are the same message only if the first delivery was
//! refused, or its session ended before our response had certainly arrived; then both get the same id, and the receiver of events drops
//! one.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::session::{QueuedResponse, Session};

/// How long a delivery is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);
/// How many are remembered, and how many of the same octets.
const MOST: usize = 50_000;
const ALIKE: usize = 100;

#[derive(Debug)]
struct Seen {
    id: String,
    at: Duration,
    session: Arc<Session>,
    refused: bool,
    answer: Option<QueuedResponse>,
}

/// Messages that were delivered lately, by a hash of their octets, those delivered last at the end.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    seen: HashMap<u64, VecDeque<Seen>>,
    order: VecDeque<(Duration, u64)>,
}

impl Recent {
    /// Returns the id of a message delivered over `session`: that of an earlier delivery of the same message, otherwise `fresh`.
    pub(crate) fn admit(&mut self, key: u64, session: &Arc<Session>, now: Duration, fresh: impl FnOnce() -> String) -> String {
        while self.order.len() >= MOST || self.order.front().is_some_and(|(at, _)| now.saturating_sub(*at) > REMEMBERED) {
            let Some((at, old)) = self.order.pop_front() else { break };
            if let Entry::Occupied(mut alike) = self.seen.entry(old) {
                // It may have been delivered again since.
                alike.get_mut().pop_front_if(|seen| seen.at == at);
                if alike.get().is_empty() {
                    alike.remove();
                }
            }
        }
        let alike = self.seen.entry(key).or_default();
        let again = alike.iter().position(|seen| seen.refused || seen.session.may_have_lost(seen.answer.as_ref()));
        let id = again.and_then(|at| alike.remove(at)).map_or_else(fresh, |seen| seen.id);
        if alike.len() == ALIKE {
            alike.pop_front();
        }
        alike.push_back(Seen { id: id.clone(), at: now, session: Arc::clone(session), refused: false, answer: None });
        self.order.push_back((now, key));
        id
    }

    /// Records the result of a delivery: whether it was stored, and the queued response, if the session was open.
    pub(crate) fn responded(&mut self, key: u64, id: &str, taken: bool, answer: Option<QueuedResponse>) {
        if let Some(seen) = self.seen.get_mut(&key).and_then(|alike| alike.iter_mut().find(|seen| seen.id == id)) {
            (seen.refused, seen.answer) = (!taken, answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

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
        recent.responded(1, "2", true, None);
        assert_eq!(admit(&mut recent, &second, 1), "3", "the same words again");
        recent.responded(1, "3", false, None);
        assert_eq!(admit(&mut recent, &second, 2), "3", "refused, delivered again");
        second.end("gone");
        assert_eq!(admit(&mut recent, &first, 3), "3", "never answered");
        recent.responded(1, "3", true, None);
        assert_eq!(admit(&mut recent, &first, 4), "4", "once is enough");
        assert_eq!(admit(&mut recent, &session(), 700), "5", "long ago");
        recent.responded(1, "5", true, None);
        let breaking = session();
        assert_eq!(admit(&mut recent, &breaking, 1_290), "6", "the same words again");
        breaking.end("gone");
        assert_eq!(admit(&mut recent, &session(), 1_301), "6", "delivered again after 11 s, though the words are older");
        assert_eq!((recent.seen.len(), recent.order.len()), (1, 2), "one text, delivered twice");
    }

    #[test]
    fn two_texts_alike_are_both_recognised() {
        let mut recent = Recent::default();
        let (breaking, next) = (session(), session());
        for id in ["1", "2"] {
            recent.admit(1, &breaking, Duration::ZERO, || id.to_owned());
            recent.responded(1, id, true, None);
        }
        breaking.end("gone");
        let mut again = || recent.admit(1, &next, Duration::from_secs(1), || "new".to_owned());
        assert_eq!([again(), again(), again()], ["1", "2", "new"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_words_are_new_if_the_first_were_surely_answered() {
        for (lasts, id) in [(5, "2"), (4, "1")] {
            let mut recent = Recent::default();
            let session = session();
            let (near, mut far) = tokio::io::duplex(64);
            let running = tokio::spawn({
                let session = Arc::clone(&session);
                async move { session.run(Box::new(near), None, Duration::from_secs(60)).await }
            });
            recent.admit(1, &session, Duration::ZERO, || "1".to_owned());
            recent.responded(1, "1", true, session.respond(|out| out.push(0)));
            far.read_u8().await.unwrap();
            tokio::time::advance(Duration::from_secs(lasts)).await;
            drop(far);
            running.await.unwrap();
            assert_eq!(recent.admit(1, &self::session(), Duration::from_secs(lasts), || "2".to_owned()), id, "ended after {lasts} s");
        }
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
