//! Counts the recipients of a broadcast by what happened to their messages.

use super::status::ContactStatus;
use crate::message::{Detail, FailureCode, State, Status as MessageStatus, Wait};

impl ContactStatus {
    /// Derives a recipient's status from the state of its message.
    pub fn of(state: &State) -> Self {
        Self::of_message(state.status, &state.detail)
    }

    /// Derives a recipient's status from the status and detail of its message.
    pub fn of_message(status: MessageStatus, detail: &Detail) -> Self {
        if detail.broadcast.is_some_and(|membership| membership.withdrawn) {
            return Self::Pending;
        }
        let silent = detail.broadcast.is_some_and(|membership| membership.no_receipts);
        match status {
            MessageStatus::Scheduled | MessageStatus::Queued => Self::Queued,
            MessageStatus::Sent if silent => Self::Delivered,
            MessageStatus::Sending | MessageStatus::Sent => Self::Sending,
            MessageStatus::Delivered | MessageStatus::Read | MessageStatus::Received => Self::Delivered,
            MessageStatus::Failed if suppressed(detail) => Self::Skipped,
            MessageStatus::Failed => Self::Failed,
            MessageStatus::Cancelled => Self::Skipped,
        }
    }

    /// Returns the status to store in the recipient's row: lists filter by it, or retention can delete the message while it is not
    /// delivered. `None` while the message alone determines the status, so that most recipients are written once.
    pub fn stored(state: &State) -> Option<Self> {
        match Self::of(state) {
            status @ (Self::Failed | Self::Skipped) => Some(status),
            Self::Sending if matches!(state.wait, Wait::Nothing) => Some(Self::Sending),
            _ => None,
        }
    }
}

fn is_withdrawn(state: &State) -> bool {
    state.detail.broadcast.is_some_and(|membership| membership.withdrawn)
}

fn suppressed(detail: &Detail) -> bool {
    detail.failure.as_ref().is_some_and(|f| f.code == FailureCode::RecipientSuppressed)
}

/// Recipients of a broadcast by status. Recipients without a message are not counted: they are the total less all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Has a message without an attempt.
    pub queued: i64,
    /// Sending, [`Self::sent`] included.
    pub sending: i64,
    /// Of those, accepted by a provider.
    pub sent: i64,
    pub delivered: i64,
    pub failed: i64,
    /// Not sent.
    pub skipped: i64,
    /// Messages that will change without human action.
    pub awaited: i64,
    /// Messages that a provider has accepted at any time.
    pub taken: i64,
    /// Cost, in micro-dollars.
    pub cost: i64,
    /// What messages took from the broadcast's reservation when they were accepted, in micro-dollars. Only a pause that withdraws messages
    /// lowers it.
    pub prepaid: i64,
    /// Currently reserved for messages, in micro-dollars.
    pub held: i64,
}

impl Counts {
    /// Returns the counts of one message.
    pub fn of(state: &State) -> Self {
        if is_withdrawn(state) {
            return Self::default();
        }
        let mut counts = Self::of_status(ContactStatus::of(state));
        counts.sent = i64::from(counts.sending == 1 && state.status == MessageStatus::Sent);
        counts.awaited = i64::from(!matches!(state.wait, Wait::Nothing | Wait::Held { .. }));
        counts.taken = i64::from(state.detail.sent_at.is_some());
        counts.cost = state.detail.cost.map_or(0, |cost| cost.total().0);
        if let Some(money) = &state.detail.money {
            counts.prepaid = if money.prepaid { money.whole().0 } else { 0 };
            counts.held = money.open().0;
        }
        counts
    }

    /// Returns the counts of one recipient.
    pub fn of_status(status: ContactStatus) -> Self {
        let mut counts = Self::default();
        match status {
            ContactStatus::Pending => {}
            ContactStatus::Queued => counts.queued = 1,
            ContactStatus::Sending => counts.sending = 1,
            ContactStatus::Delivered => counts.delivered = 1,
            ContactStatus::Failed => counts.failed = 1,
            ContactStatus::Skipped => counts.skipped = 1,
        }
        counts
    }

    pub fn add(&mut self, other: &Self) {
        self.merge(other, i64::saturating_add);
    }

    /// Returns the difference to `before`.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        self.merge(before, i64::saturating_sub);
        self
    }

    fn merge(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        let Self { queued, sending, sent, delivered, failed, skipped, awaited, taken, cost, prepaid, held } = other;
        self.queued = with(self.queued, *queued);
        self.sending = with(self.sending, *sending);
        self.sent = with(self.sent, *sent);
        self.delivered = with(self.delivered, *delivered);
        self.failed = with(self.failed, *failed);
        self.skipped = with(self.skipped, *skipped);
        self.awaited = with(self.awaited, *awaited);
        self.taken = with(self.taken, *taken);
        self.cost = with(self.cost, *cost);
        self.prepaid = with(self.prepaid, *prepaid);
        self.held = with(self.held, *held);
    }

    /// Returns the number of recipients that have a message or will never get one.
    pub const fn handled(&self) -> i64 {
        self.queued + self.sending + self.delivered + self.failed + self.skipped
    }
}
