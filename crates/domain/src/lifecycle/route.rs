//! What follows an attempt: a retry, the fallback, or the end.

use std::time::Duration;

use super::Change;
use crate::message::{Attempt, AttemptStatus, Failure, FailureCode, State, Status, Wait};
use crate::{limits, time::Timestamp};

impl State {
    /// Tries again, or takes the fallback if its time comes first or no retry fits into the validity. The last retry is shortly before the
    /// validity ends; after that one the message waits for the end. An unknown attempt may turn out to be accepted: its route stays until
    /// the time of the fallback.
    pub(super) fn retry(&mut self, retry_in: Duration, is_unknown: bool, now: Timestamp) {
        let due_at = now.plus(retry_in);
        let can_fall_back = self.can_fall_back(now);
        match self.fallback_at().filter(|at| can_fall_back && *at <= due_at && *at < self.expires_at) {
            Some(at) if is_unknown => self.wait = Wait::Attempt { due_at: at.max(now) },
            Some(at) => self.fall_back(at.max(now)),
            None if can_fall_back && due_at >= self.expires_at => self.fall_back(now),
            None => self.wait = Wait::Attempt { due_at: self.within_validity(due_at, now) },
        }
    }

    fn within_validity(&self, due_at: Timestamp, now: Timestamp) -> Timestamp {
        let last = self.expires_at.minus(limits::LAST_RETRY);
        match (due_at < self.expires_at, now < last) {
            (true, _) => due_at,
            (false, true) => last,
            (false, false) => self.expires_at,
        }
    }

    /// Returns whether the route has had its time without a receipt, and a fallback follows.
    pub(super) fn is_given_up(&self, now: Timestamp) -> bool {
        self.can_fall_back(now) && self.fallback_at().is_some_and(|at| at <= now)
    }

    /// Returns when the fallback follows without a receipt: counted from the first attempt of the route, or from when it is due.
    fn fallback_at(&self) -> Option<Timestamp> {
        let first = self.detail.attempts.iter().find(|attempt| self.is_of_route(attempt)).map(|attempt| attempt.started_at);
        Some(first.or(self.due_at())?.plus(Duration::from_secs(self.detail.fallback_after_seconds?)))
    }

    /// Returns when a message that waits for an attempt is decided about even if none can start: its fallback follows shortly before its
    /// validity ends, if not sooner.
    pub fn decide_at(&self) -> Timestamp {
        if self.detail.fallback.is_none() {
            return self.expires_at;
        }
        let last = self.expires_at.minus(limits::LAST_RETRY);
        self.fallback_at().map_or(last, |at| at.min(last))
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

    /// Returns whether the fallback follows the wait for a receipt.
    pub(super) fn falls_back_without_receipt(&self, now: Timestamp) -> bool {
        self.detail.fallback_after_seconds.is_some() && self.can_fall_back(now)
    }

    pub(super) fn fall_back(&mut self, due_at: Timestamp) {
        if let Some(route) = self.detail.fallback.take() {
            self.detail.next_channel = Some(route.channel).filter(|_| !self.detail.attempts.is_empty());
            self.route = route;
        }
        self.wait = Wait::Attempt { due_at };
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
        let taken = self.detail.attempts.iter().any(|a| matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered));
        if taken {
            // The status is the best over all attempts: another one was accepted and not refused since. Its receipt may still come.
            self.detail.drop_fallback();
            if self.status < Status::Delivered {
                self.await_receipt(limits::RECEIPT_WAIT, now);
            }
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
        let accepted = |a: &Attempt| matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered);
        self.detail.attempts.iter().any(|a| self.is_of_route(a) && accepted(a))
    }

    pub(super) fn is_of_route(&self, attempt: &Attempt) -> bool {
        attempt.channel == self.route.channel && attempt.connection == self.route.connection
    }
}

pub(super) fn unknown_outcome() -> Failure {
    Failure::own(FailureCode::UnknownOutcome, "the outcome of the last attempt is unknown")
}
