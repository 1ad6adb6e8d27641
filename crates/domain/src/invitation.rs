//! Invitations: a client is asked to set up a sender, and does so step by step behind a link.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::channel::named;
use crate::id::{InvitationId, PhoneNumberId, SenderId};
use crate::limits;
use crate::redacted::Redacted;
use crate::time::Timestamp;

named! {
    /// Where an invitation stands.
    InvitationStatus {
        /// The client did not begin yet.
        Pending = 1 "pending",
        /// The client began.
        InProgress = 2 "in_progress",
        /// The client finished; there is a sender.
        Completed = 3 "completed",
        /// Nobody finished in time.
        Expired = 4 "expired",
        /// It was withdrawn.
        Cancelled = 5 "cancelled",
    }
}

impl InvitationStatus {
    /// Whether the client can still go on.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// An invitation as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invitation {
    /// Its identifier.
    pub id: InvitationId,
    /// Grows with each event.
    pub version: i64,
    /// As it was written; see [`Self::status_at`].
    pub status: InvitationStatus,
    /// SHA-256 of the token.
    pub token_hash: [u8; 32],
    /// The token, encrypted.
    pub sealed: Redacted<Vec<u8>>,
    /// The client's name.
    pub client_name: Option<String>,
    /// The client's email address.
    pub client_email: Option<String>,
    /// The client's phone number, E.164.
    pub client_phone: Option<String>,
    /// The number that the client shall use in place of an own one.
    pub number: Option<PhoneNumberId>,
    /// Countries that an own number may be of; empty for any.
    pub countries: Vec<String>,
    /// The sender that came of it.
    pub sender: Option<SenderId>,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When the client first opened it.
    pub viewed_at: Option<Timestamp>,
    /// When the client began.
    pub started_at: Option<Timestamp>,
    /// When the client finished.
    pub completed_at: Option<Timestamp>,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// How far the client got.
    pub walk: Walk,
}

/// How far a client got between beginning and finishing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Walk {
    /// Whether the client gave name, email and phone number.
    pub details: bool,
    /// The code that was sent last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<SentCode>,
    /// When codes were sent, as far as that still counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Timestamp>,
    /// The phone number whose code was entered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proved: Option<String>,
}

/// A code on its way to a phone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SentCode {
    /// Keyed hash of the invitation, the phone number and the code.
    pub hash: String,
    /// Until when it is good.
    pub expires_at: Timestamp,
    /// Wrong ones that were entered in its place.
    pub tries: u32,
}

impl SentCode {
    /// Whether it may still be entered.
    pub fn is_good(&self, now: Timestamp) -> bool {
        now < self.expires_at && self.tries < limits::INVITATION_CODE_TRIES
    }
}

/// What the client has to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Begin.
    Welcome,
    /// Give name, email and phone number.
    Details,
    /// Enter the code.
    Code,
    /// Agree.
    Agree,
    /// Nothing: it is done.
    Completed,
    /// Nothing: it ended unused.
    Expired,
    /// Nothing: it was withdrawn.
    Cancelled,
}

impl Invitation {
    /// Where it stands at `now`: an open one is expired from its end on, whether or not that was written yet.
    pub fn status_at(&self, now: Timestamp) -> InvitationStatus {
        if self.status.is_open() && self.expires_at <= now { InvitationStatus::Expired } else { self.status }
    }

    /// What the client has to do next.
    pub fn stage(&self, now: Timestamp) -> Stage {
        match self.status_at(now) {
            InvitationStatus::Pending => Stage::Welcome,
            InvitationStatus::Completed => Stage::Completed,
            InvitationStatus::Expired => Stage::Expired,
            InvitationStatus::Cancelled => Stage::Cancelled,
            InvitationStatus::InProgress if !self.walk.details => Stage::Details,
            InvitationStatus::InProgress if self.number.is_some() || self.is_proved() => Stage::Agree,
            InvitationStatus::InProgress => Stage::Code,
        }
    }

    /// Whether the client's own number was proved by its code.
    pub fn is_proved(&self) -> bool {
        self.client_phone.is_some() && self.walk.proved == self.client_phone
    }
}

impl Walk {
    /// Counts a code that is about to be sent; `Err` with how long to wait when too many were.
    pub fn count_code(&mut self, now: Timestamp) -> Result<(), Duration> {
        self.sent.retain(|at| now.since(*at) < limits::INVITATION_CODE_SPAN);
        if self.sent.len() < limits::INVITATION_CODES {
            self.sent.push(now);
            return Ok(());
        }
        let oldest = self.sent.iter().min().copied().unwrap_or(now);
        Err(limits::INVITATION_CODE_SPAN.saturating_sub(now.since(oldest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_codes_an_hour() {
        let (mut walk, start) = (Walk::default(), Timestamp::from_millis(1_800_000_000_000));
        let minute = |n: u64| start.plus(Duration::from_secs(n * 60));
        for n in [0, 10, 20] {
            assert_eq!(walk.count_code(minute(n)), Ok(()));
        }
        assert_eq!(walk.count_code(minute(30)), Err(Duration::from_secs(30 * 60)));
        assert_eq!(walk.count_code(minute(60)), Ok(()), "the first one counts no more");
        assert_eq!(walk.count_code(minute(61)), Err(Duration::from_secs(9 * 60)));
    }
}
