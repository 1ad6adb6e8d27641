//! What follows an attempt: a retry, the fallback, or the end.

use std::time::Duration;

use super::Change;
use crate::message::{Attempt, AttemptStatus, Failure, FailureCode, State, Status, Wait};
use crate::time::Timestamp;

impl State {
    pub(super) fn retry(&mut self, retry_in: Duration, now: Timestamp, changes: &mut Vec<Change>) {
        let due_at = now.plus(retry_in);
        if due_at >= self.expires_at {
            return self.expire(now, changes);
        }
        self.wait = Wait::Attempt { due_at };
    }

    pub(super) fn next_route_or_fail(&mut self, now: Timestamp, changes: &mut Vec<Change>) {
        if self.can_fall_back(now) {
            return self.fall_back(now);
        }
        let failure = self.detail.attempts.last().and_then(|a| a.error.clone());
        self.fail(failure.unwrap_or_else(unknown_outcome), now, changes);
    }

    /// Returns whether there is a route left, and time for it: an expired message keeps the reason why its last attempt failed. The price
    /// of what was final is settled, so nothing more may be sent for it.
    pub(super) fn can_fall_back(&self, now: Timestamp) -> bool {
        let is_settled = self.wait == Wait::Nothing && self.detail.money.is_some();
        self.detail.fallback.is_some() && now < self.expires_at && !is_settled
    }

    pub(super) fn fall_back(&mut self, now: Timestamp) {
        if let Some(route) = self.detail.fallback.take() {
            self.route = route;
        }
        self.wait = Wait::Attempt { due_at: now };
    }

    pub(super) fn expire(&mut self, now: Timestamp, changes: &mut Vec<Change>) {
        let slowed = self.detail.attempts.last().and_then(|a| a.error.clone()).filter(|f| f.code == FailureCode::RateLimited);
        let failure = slowed.unwrap_or_else(|| Failure::own(FailureCode::Expired, "its validity ended before a provider accepted it"));
        self.fail(failure, now, changes);
    }

    pub(super) fn fail(&mut self, failure: Failure, now: Timestamp, changes: &mut Vec<Change>) {
        self.fence += 1;
        self.wait = Wait::Nothing;
        let newest = self.detail.attempts.len().checked_sub(1);
        // Another attempt was accepted and not refused since: the status is the best over all attempts.
        let taken = self.detail.attempts.iter().any(|a| matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered));
        if taken {
            return;
        }
        self.detail.failure = Some(failure);
        self.raise(Status::Failed, now, newest, changes);
    }

    pub(super) fn newest_failed(&self) -> bool {
        self.detail.attempts.last().is_some_and(|a| a.status == AttemptStatus::Failed)
    }

    /// Returns whether the current route accepted an attempt that was not refused since.
    pub(super) fn accepted_by_route(&self) -> bool {
        let here = |a: &Attempt| a.channel == self.route.channel && a.connection == self.route.connection;
        self.detail.attempts.iter().any(|a| here(a) && matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered))
    }

    /// Marks a possible duplicate: two attempts that may both have been sent.
    pub(super) fn note_duplicate(&mut self) {
        if self.detail.attempts.iter().filter(|a| a.status != AttemptStatus::Failed).count() > 1 {
            self.detail.possible_duplicate = true;
        }
    }

    /// Raises the status if `to` ranks higher, and records the change.
    pub(super) fn raise(&mut self, to: Status, at: Timestamp, attempt: Option<usize>, changes: &mut Vec<Change>) {
        if to <= self.status {
            return;
        }
        match to {
            Status::Sent | Status::Delivered | Status::Read => {
                self.detail.sent_at.get_or_insert(at);
            }
            _ => {}
        }
        let previous = std::mem::replace(&mut self.status, to);
        self.version += 1;
        changes.push(Change {
            status: to,
            previous: Some(previous),
            at,
            attempt: attempt.and_then(|i| self.detail.attempts.get(i).map(|a| (i, a.clone()))),
            failure: self.detail.failure.clone(),
            cost: self.detail.cost,
            possible_duplicate: self.detail.possible_duplicate,
            conversation: false,
        });
    }
}

pub(super) fn unknown_outcome() -> Failure {
    Failure::own(FailureCode::UnknownOutcome, "the outcome of the last attempt is unknown")
}
