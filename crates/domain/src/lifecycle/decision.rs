//! Decisions made between attempts: deadlines, recovery, holds, cancellation, withdrawal, erasure.

use std::time::Duration;

use super::{Applied, Change, Resolution, route::unknown_outcome, strip_provider_text, strip_recipient_data};
use crate::message::{AttemptStatus, Failure, FailureCode, HeldReason, NodeId, QuoteState, State, Status, Wait};
use crate::{broadcast::Halt, limits, time::Timestamp};

impl State {
    pub(super) fn disconnected(&mut self, fence: i64, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        if self.fence != fence || !matches!(self.wait, Wait::Attempt { .. }) {
            return Applied::Lost;
        }
        if self.detail.fallback.is_some() {
            self.fence += 1;
            self.fall_back(now);
        } else {
            // Without its fallback, the message failed for the reason why it took it.
            let earlier =
                self.detail.attempts.last().filter(|attempt| !self.is_of_route(attempt)).and_then(|attempt| attempt.error.clone());
            let removed = || Failure::own(FailureCode::Undeliverable, "its connection was removed");
            self.fail(earlier.unwrap_or_else(removed), now, changes);
        }
        Applied::Yes
    }

    pub(super) fn deadline(&mut self, fence: i64, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let due = self.due_at().is_some_and(|due| due <= now);
        if self.fence != fence || !due {
            return Applied::Lost;
        }
        match self.wait {
            Wait::Attempt { .. } if self.can_fall_back(now) && self.decide_at() <= now => {
                self.fence += 1;
                self.fall_back(now);
            }
            Wait::Receipt { .. } if self.falls_back_without_receipt(now) => {
                self.fence += 1;
                self.fall_back(now);
            }
            Wait::Receipt { .. } => {
                self.fence += 1;
                self.wait = Wait::Nothing;
            }
            Wait::Held { .. } => self.fail(unknown_outcome(), now, changes),
            Wait::Attempt { .. } | Wait::Owned { .. } | Wait::Nothing => return Applied::Lost,
        }
        Applied::Yes
    }

    pub(super) fn recover(&mut self, dead: NodeId, retry_in: Duration, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        if self.wait != (Wait::Owned { node: dead }) {
            return Applied::Lost;
        }
        self.fence += 1;
        if let Some(attempt) = self.detail.attempts.last_mut().filter(|a| a.status == AttemptStatus::Started) {
            attempt.status = AttemptStatus::Unknown;
            attempt.finished_at = Some(now);
            attempt.error = Some(Failure::own(FailureCode::UnknownOutcome, "the node of the attempt ended before the result was known"));
        }
        // Receipts that arrived in the meantime take precedence; only the decision is missing.
        if matches!(self.status, Status::Delivered | Status::Read) {
            self.wait = Wait::Nothing;
        } else if self.accepted_by_route() {
            self.await_receipt(limits::RECEIPT_WAIT, now);
        } else if self.newest_failed() {
            self.next_route_or_fail(now, changes);
        } else {
            self.unknown(retry_in, now, changes);
        }
        Applied::Yes
    }

    pub(super) fn hold(&mut self, reason: HeldReason, now: Timestamp) -> Applied {
        let arrived = matches!(self.status, Status::Delivered | Status::Read);
        let sends_more = match self.wait {
            Wait::Attempt { .. } | Wait::Owned { .. } => true,
            Wait::Receipt { .. } => self.falls_back_without_receipt(now),
            Wait::Held { .. } | Wait::Nothing => false,
        };
        if arrived || !sends_more {
            return Applied::Lost;
        }
        self.fence += 1;
        self.wait = Wait::Held { reason, deadline: now.plus(limits::HOLD_MAX) };
        self.updated_at = now;
        Applied::Yes
    }

    /// Returns whether no provider has accepted the message and no call is in flight.
    pub fn can_cancel(&self) -> bool {
        let unsent = self.detail.attempts.iter().all(|a| a.status == AttemptStatus::Failed);
        unsent && matches!(self.wait, Wait::Attempt { .. } | Wait::Held { .. }) && self.status <= Status::Sending
    }

    pub(super) fn cancel(&mut self, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        if !self.can_cancel() {
            return Applied::Lost;
        }
        self.fence += 1;
        self.wait = Wait::Nothing;
        self.detail.failure = Some(Failure::own(FailureCode::Cancelled, "cancelled before it was sent to a provider"));
        self.raise(Status::Cancelled, now, None, changes);
        Applied::Yes
    }

    pub(super) fn withdraw(&mut self, halt: Option<Halt>, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let waits = matches!(self.wait, Wait::Attempt { .. });
        match halt {
            Some(Halt::Cancelled) if self.can_cancel() => self.cancel(now, changes),
            Some(Halt::Paused) if waits && self.can_cancel() => self.return_to_broadcast(now, changes),
            // A provider has, or had, an earlier attempt: this message must go on, or end.
            Some(Halt::Cancelled) if waits => {
                let error = self.detail.attempts.last().and_then(|a| a.error.clone());
                self.fail(error.unwrap_or_else(|| Failure::own(FailureCode::Cancelled, "the broadcast was cancelled")), now, changes);
                Applied::Yes
            }
            Some(Halt::Paused) if waits => {
                self.fence += 1;
                self.wait = Wait::Attempt { due_at: now.plus(limits::PAUSED_LOOK) };
                Applied::Yes
            }
            _ => Applied::Lost,
        }
    }

    /// Ends the message; its recipient and its share of the reservation return to the broadcast.
    pub(super) fn return_to_broadcast(&mut self, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let Some(part) = &mut self.detail.broadcast else { return Applied::Lost };
        part.withdrawn = true;
        if let Some(money) = self.detail.money.as_mut().filter(|money| money.prepaid) {
            let open = money.quotes.iter_mut().filter(|quote| quote.state == QuoteState::Open);
            open.for_each(|quote| quote.state = QuoteState::Returned);
        }
        self.fence += 1;
        self.wait = Wait::Nothing;
        let why = "the broadcast was paused before the message was sent; its recipient gets another message when the broadcast resumes";
        self.detail.failure = Some(Failure::own(FailureCode::Cancelled, why));
        self.raise(Status::Cancelled, now, None, changes);
        Applied::Yes
    }

    pub(super) fn erase(&mut self) -> Applied {
        if std::mem::replace(&mut self.detail.erased, true) { Applied::Lost } else { Applied::Yes }
    }

    /// Enforces an erasure after any step: nothing is sent, and provider texts are stripped.
    pub(super) fn enforce_erasure(&mut self, seen: usize, now: Timestamp, changes: &mut Vec<Change>) {
        let waits = matches!(self.wait, Wait::Attempt { .. } | Wait::Held { .. });
        if waits && self.cancel(now, changes) == Applied::Lost {
            self.fail(Failure::own(FailureCode::Cancelled, "the contact was erased"), now, changes);
        }
        for attempt in &mut self.detail.attempts {
            strip_recipient_data(attempt);
        }
        self.detail.provider_id = None;
        strip_provider_text(&mut self.detail.failure);
        strip_provider_text(&mut self.detail.superseded);
        for change in &mut changes[seen..] {
            change.strip_provider_text();
        }
    }

    pub(super) fn resolve(&mut self, action: Resolution, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        if !matches!(self.wait, Wait::Held { .. }) {
            return Applied::Lost;
        }
        self.fence += 1;
        match action {
            Resolution::Resend => {
                // After a human decision, the age of the schedule no longer matters and the validity starts again.
                let validity = Duration::from_secs(limits::VALIDITY_DEFAULT);
                let end = self.expires_at.max(now.plus(validity));
                if end != self.expires_at {
                    self.detail.extended.push((self.version, self.expires_at));
                    self.expires_at = end;
                }
                if self.status == Status::Scheduled {
                    self.raise(Status::Queued, now, None, changes);
                }
                if self.accepted_by_route() && self.can_fall_back(now) {
                    self.fall_back(now);
                } else {
                    self.wait = Wait::Attempt { due_at: now };
                }
            }
            Resolution::Sent => {
                self.wait = Wait::Nothing;
                if self.accepted_by_route() {
                    self.detail.drop_fallback(); // it is what was sent
                }
                let newest = self.detail.attempts.len().checked_sub(1);
                if let Some(attempt) = self.detail.attempts.last_mut() {
                    attempt.status = AttemptStatus::Accepted;
                    // Its error stays: it is what the provider said, and why a person had to decide.
                    attempt.finished_at.get_or_insert(now);
                }
                self.charge_accepted();
                self.note_duplicate();
                self.raise(Status::Sent, now, newest, changes);
            }
            Resolution::Failed => self.fail(unknown_outcome(), now, changes),
        }
        Applied::Yes
    }
}
