//! Invitations: a client sets up a sender, step by step, through a link.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{InvitationId, PhoneNumberId, SenderId};
use crate::{channel::named, limits, redacted::Redacted, time::Timestamp};

named! {
    /// Status of an invitation.
    InvitationStatus {
        /// The client has not started.
        Pending = 1 "pending",
        /// The client has started.
        InProgress = 2 "in_progress",
        /// The client has finished; the sender exists.
        Completed = 3 "completed",
        /// The client did not finish in time.
        Expired = 4 "expired",
        /// Withdrawn.
        Cancelled = 5 "cancelled",
    }
}

impl InvitationStatus {
    /// Returns whether the client can continue.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// A stored invitation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invitation {
    pub id: InvitationId,
    /// Incremented by each event.
    pub version: i64,
    /// Stored status; see [`Self::status_at`].
    pub status: InvitationStatus,
    /// SHA-256 of the token.
    pub token_hash: [u8; 32],
    /// The token, encrypted.
    pub sealed: Redacted<Vec<u8>>,
    pub client_name: Option<String>,
    pub client_email: Option<String>,
    /// E.164.
    pub client_phone: Option<String>,
    /// A reserved number that the client uses instead of their own.
    pub number: Option<PhoneNumberId>,
    /// Allowed countries of the client's own number; empty means any.
    pub countries: Vec<String>,
    /// The sender created by completing it.
    pub sender: Option<SenderId>,
    pub expires_at: Timestamp,
    /// When the client first opened the link.
    pub viewed_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub completed_at: Option<Timestamp>,
    pub updated_at: Timestamp,
    pub progress: InvitationProgress,
}

/// What the client has done between start and completion.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InvitationProgress {
    /// Whether the client has entered name, email and phone number.
    pub details: bool,
    /// The code sent last.
    pub code: Option<SentCode>,
    /// When codes were sent, within the rate limit's span.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Timestamp>,
    /// The phone number verified by a code.
    pub proved: Option<String>,
}

/// A code sent to a phone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SentCode {
    /// Keyed hash of invitation, phone number and code.
    pub hash: String,
    pub expires_at: Timestamp,
    /// Number of wrong codes entered.
    pub tries: u32,
}

impl SentCode {
    /// Returns whether it can still be entered.
    pub fn is_good(&self, now: Timestamp) -> bool {
        now < self.expires_at && self.tries < limits::INVITATION_CODE_TRIES
    }
}

/// What the client has to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Start.
    Welcome,
    /// Enter name, email and phone number.
    Details,
    /// Enter the code.
    Code,
    Agree,
    /// Nothing: complete.
    Completed,
    /// Nothing: expired.
    Expired,
    /// Nothing: withdrawn.
    Cancelled,
}

impl Invitation {
    /// Returns the status at `now`: an open invitation is expired from its end on, whether or not that is stored yet.
    pub fn status_at(&self, now: Timestamp) -> InvitationStatus {
        if self.status.is_open() && self.expires_at <= now { InvitationStatus::Expired } else { self.status }
    }

    /// Returns what the client has to do next.
    pub fn stage(&self, now: Timestamp) -> Stage {
        match self.status_at(now) {
            InvitationStatus::Pending => Stage::Welcome,
            InvitationStatus::Completed => Stage::Completed,
            InvitationStatus::Expired => Stage::Expired,
            InvitationStatus::Cancelled => Stage::Cancelled,
            InvitationStatus::InProgress if !self.progress.details => Stage::Details,
            InvitationStatus::InProgress if self.number.is_some() || self.is_proved() => Stage::Agree,
            InvitationStatus::InProgress => Stage::Code,
        }
    }

    /// Returns whether the client's own number was verified by its code.
    pub fn is_proved(&self) -> bool {
        self.client_phone.is_some() && self.progress.proved == self.client_phone
    }
}

impl InvitationProgress {
    /// Counts a code about to be sent; returns how long to wait if there were too many.
    pub fn count_code(&mut self, now: Timestamp) -> Result<(), Duration> {
        self.sent.retain(|at| now.since(*at) < limits::INVITATION_CODE_SPAN);
        if self.sent.len() < limits::INVITATION_CODES {
            self.sent.push(now);
            return Ok(());
        }
        let oldest = self.sent.iter().min().copied().unwrap_or(now);
        Err(limits::INVITATION_CODE_SPAN.saturating_sub(now.since(oldest)))
    }

    /// Forgets a code that was counted at `counted`, but could not be sent: the one before it is still good.
    pub fn uncount_code(&mut self, unsent: &SentCode, counted: Timestamp, before: Option<SentCode>) {
        if self.code.as_ref().is_some_and(|code| code.hash == unsent.hash) {
            self.code = before;
            self.sent.retain(|at| *at != counted);
        }
    }

    /// Returns how many codes can still be sent now.
    pub fn codes_left(&self, now: Timestamp) -> usize {
        let counted = self.sent.iter().filter(|at| now.since(**at) < limits::INVITATION_CODE_SPAN).count();
        limits::INVITATION_CODES.saturating_sub(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_codes_an_hour() {
        let (mut progress, start) = (InvitationProgress::default(), Timestamp::from_millis(1_800_000_000_000));
        let minute = |n: u64| start.plus(Duration::from_secs(n * 60));
        for n in [0, 10, 20] {
            assert_eq!(progress.count_code(minute(n)), Ok(()));
        }
        assert_eq!([29, 60, 80].map(|n| progress.codes_left(minute(n))), [0, 1, 3]);
        assert_eq!(progress.count_code(minute(30)), Err(Duration::from_secs(30 * 60)));
        assert_eq!(progress.count_code(minute(60)), Ok(()), "the first one counts no more");
        assert_eq!(progress.count_code(minute(61)), Err(Duration::from_secs(9 * 60)));
    }
}
