//! How long a session waits for the SMSC. Only a complete PDU shows that it is alive: a broken peer can trickle octets without end.

use std::time::Duration;

use tokio::time::Instant;

/// What the reader waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    /// Any PDU.
    Pdu,
    /// Any PDU, after an enquire_link.
    Answer,
    /// The rest of a PDU.
    Rest,
}

/// What the reader waits for, and until when.
#[derive(Debug)]
pub(crate) struct Silence {
    awaited: Awaited,
    until: Instant,
    enquire: Duration,
    limit: Duration,
}

impl Silence {
    /// Begins to wait for a PDU. After `enquire` without one the connection is tested; responses, and the rest of a PDU, must arrive
    /// within `limit`.
    pub(crate) fn new(enquire: Duration, limit: Duration) -> Self {
        Self { awaited: Awaited::Pdu, until: Instant::now() + enquire, enquire, limit }
    }

    /// When [`Self::lasts`] is to be called.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// Time is up. Returns why the session ends; `None` if the connection is to be tested.
    pub(crate) fn lasts(&mut self) -> Option<String> {
        let limit = self.limit.as_secs();
        match self.awaited {
            Awaited::Pdu => {
                self.wait_for(Awaited::Answer, self.limit);
                None
            }
            Awaited::Answer => Some(format!("the SMSC was silent for {limit} s, also to enquire_link")),
            Awaited::Rest => Some(format!("the SMSC did not complete a PDU within {limit} s")),
        }
    }

    /// Octets have arrived: whether they completed a PDU, and whether a part of one is left.
    pub(crate) fn heard(&mut self, completed: bool, partial: bool) {
        if !partial {
            self.wait_for(Awaited::Pdu, self.enquire);
        } else if completed || self.awaited != Awaited::Rest {
            self.wait_for(Awaited::Rest, self.limit);
        }
    }

    fn wait_for(&mut self, awaited: Awaited, patience: Duration) {
        (self.awaited, self.until) = (awaited, Instant::now() + patience);
    }
}
