//! Tracks this node's attempts and accepts in flight, to find owned messages that nothing is running.
//!
//! A row says that this node runs an attempt. Something must be running it or be about to: an attempt registers before its start is stored,
//! and a message accepted as started has an accept in flight until its attempt registers. Otherwise the message was lost: the outcome of
//! its commit was unknown, its result could not be stored, or an adapter panicked.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_domain::MessageId;
use nuncio_store::DueMessage;
use parking_lot::Mutex;

#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    attempts: HashMap<MessageId, usize>,
    /// Accepts in flight: those that began before the last check, and those that began after it; the two alternate.
    accepts: [usize; 2],
    /// Index of the one that new accepts are counted in.
    turn: usize,
    /// Messages found without an attempt by the last check, with their fences.
    suspects: HashMap<MessageId, i64>,
}

/// An attempt, from before its start until its result is stored.
#[derive(Debug)]
pub(crate) struct Attempting(InFlight, MessageId);

/// An accept that can end with an attempt.
#[derive(Debug)]
pub(crate) struct Accepting(InFlight, usize);

impl InFlight {
    pub(crate) fn attempt(&self, id: MessageId) -> Attempting {
        *self.0.lock().attempts.entry(id).or_default() += 1;
        Attempting(self.clone(), id)
    }

    pub(crate) fn accept(&self) -> Accepting {
        let mut inner = self.0.lock();
        let turn = inner.turn;
        inner.accepts[turn] += 1;
        Accepting(self.clone(), turn)
    }

    /// Returns whether a message has an attempt, or is about to start one.
    pub(crate) fn has(&self, id: MessageId) -> bool {
        self.0.lock().attempts.contains_key(&id)
    }

    /// Returns the number of attempts.
    pub(crate) fn attempts(&self) -> usize {
        self.0.lock().attempts.len()
    }

    /// Returns the owned messages that this node is not running: they had no attempt at the last check, all accepts of that time have
    /// ended, and they have none now.
    pub(crate) fn forgotten(&self, mut owned: Vec<DueMessage>) -> Vec<DueMessage> {
        let mut inner = self.0.lock();
        owned.retain(|message| !inner.attempts.contains_key(&message.id));
        let before = 1 - inner.turn;
        if inner.accepts[before] > 0 {
            return Vec::new(); // it may be one of these
        }
        inner.turn = before;
        let suspects = std::mem::take(&mut inner.suspects);
        let (forgotten, fresh): (Vec<_>, Vec<_>) = owned.into_iter().partition(|m| suspects.get(&m.id) == Some(&m.fence));
        inner.suspects = fresh.into_iter().map(|m| (m.id, m.fence)).collect();
        forgotten
    }
}

impl Drop for Attempting {
    fn drop(&mut self) {
        let mut inner = self.0.0.lock();
        if let Some(count) = inner.attempts.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                inner.attempts.remove(&self.1);
            }
        }
    }
}

impl Drop for Accepting {
    fn drop(&mut self) {
        self.0.0.lock().accepts[self.1] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use nuncio_domain::{ConnectionId, TenantId, Timestamp, id::Id as _};

    use super::*;

    fn owned(number: u8, fence: i64) -> DueMessage {
        let id = MessageId::from_uuid(uuid::Uuid::from_bytes([number; 16]));
        let connection = ConnectionId::from_uuid(uuid::Uuid::nil());
        DueMessage {
            tenant: TenantId(1),
            id,
            fence,
            connection,
            wait: None,
            expires_at: Timestamp::from_millis(0),
            fallback_is_due: false,
            bulk: false,
            bytes: 0,
        }
    }

    fn ids(messages: Vec<DueMessage>) -> Vec<u8> {
        messages.into_iter().map(|m| m.id.uuid().as_bytes()[0]).collect()
    }

    #[test]
    fn what_has_no_attempt_at_two_looks_is_forgotten() {
        let in_flight = InFlight::default();
        let all = || (1..=3).map(|n| owned(n, 1)).collect::<Vec<_>>();
        let one = in_flight.attempt(owned(1, 1).id);
        assert!(in_flight.forgotten(all()).is_empty(), "a first look");
        let two = in_flight.attempt(owned(2, 1).id);
        assert_eq!(ids(in_flight.forgotten(all())), [3]);
        drop((one, two));
        assert!(in_flight.forgotten(vec![owned(1, 1), owned(3, 2)]).is_empty(), "they may have ended since the rows were read");
        assert!(in_flight.forgotten(vec![owned(1, 2)]).is_empty(), "another attempt");
        assert_eq!(ids(in_flight.forgotten(vec![owned(1, 2)])), [1]);
    }

    #[test]
    fn an_accept_under_way_may_still_hand_over_what_it_wrote() {
        let in_flight = InFlight::default();
        let accept = in_flight.accept();
        for _ in 0..3 {
            assert!(in_flight.forgotten(vec![owned(1, 1)]).is_empty());
        }
        let later = in_flight.accept();
        let attempt = in_flight.attempt(owned(1, 1).id);
        drop(accept);
        for _ in 0..2 {
            assert!(in_flight.forgotten(vec![owned(1, 1), owned(2, 1)]).is_empty(), "the first has an attempt, the second may get one");
        }
        drop((attempt, later));
        assert_eq!(ids(in_flight.forgotten(vec![owned(2, 1)])), [2]);
    }
}
