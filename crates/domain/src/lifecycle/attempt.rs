//! Starts attempts, and applies their results and receipts.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::{Applied, Change, Outcome, ReceiptKind, Receipts, route::unknown_outcome};
use crate::message::{Attempt, AttemptStatus, Failure, FailureCode, HeldReason, NodeId, OnUnknown, State, Status, Wait};
use crate::{limits, time::Timestamp};

/// Longest id that is kept as it is, in bytes.
const LONGEST: usize = 255;
/// Bytes of a longer one that are kept: `~` and a hash in hexadecimal follow.
const KEPT: usize = LONGEST - 1 - 64;

/// What applies to a result that is not final.
#[derive(Clone, Copy)]
pub(super) struct Policy {
    pub(super) receipts: Receipts,
    pub(super) retry_in: Duration,
    pub(super) receipt_wait: Duration,
}

impl State {
    pub(super) fn start(
        &mut self,
        (node, fence): (NodeId, i64),
        suppressed: bool,
        pause: Option<(Timestamp, Timestamp)>,
        now: Timestamp,
        changes: &mut Vec<Change>,
    ) -> Applied {
        let Wait::Attempt { due_at } = self.wait else { return Applied::Lost };
        if self.fence != fence {
            return Applied::Lost;
        }
        if suppressed && !self.detail.compliance {
            let failure = Failure::own(FailureCode::RecipientSuppressed, "the recipient is suppressed");
            self.fail(failure, now, changes);
        } else if now >= self.expires_at {
            self.expire(now, changes);
        } else if self.status == Status::Scheduled && now.since(due_at) > limits::PAST_DUE && is_within(due_at, pause) {
            // One that is late because its connection was slow or down goes out, like any other message.
            self.hold(HeldReason::PastDue, now);
        } else if self.is_given_up(now) {
            self.fence += 1;
            self.fall_back(now);
        } else if let Some(end) = self.detail.broadcast.and_then(|part| part.quiet_hours?.end(now)) {
            self.fence += 1;
            self.wait = Wait::Attempt { due_at: end };
        } else {
            self.begin_attempt(node, now, changes);
        }
        Applied::Yes
    }

    pub(super) fn settle(
        &mut self,
        index: usize,
        fence: i64,
        outcome: &Outcome,
        policy: Policy,
        now: Timestamp,
        changes: &mut Vec<Change>,
    ) -> Applied {
        let decides = self.fence == fence && matches!(self.wait, Wait::Owned { .. });
        let newer = self.detail.attempts.len() > index + 1;
        let Some(attempt) = self.detail.attempts.get_mut(index) else { return Applied::Lost };
        let open = matches!(attempt.status, AttemptStatus::Started | AttemptStatus::Unknown);
        if !open && !decides {
            return Applied::Lost; // a repeated result
        }
        if open {
            attempt.finished_at = Some(now);
            (attempt.status, attempt.error) = match outcome {
                Outcome::Accepted { .. } => (AttemptStatus::Accepted, None),
                Outcome::Deferred { failure, .. } | Outcome::Rejected { failure } => (AttemptStatus::Failed, Some(failure.clone())),
                Outcome::Unknown { failure, .. } => (AttemptStatus::Unknown, Some(failure.clone())),
            };
        }
        // Also if a receipt arrived before the response: the ids are still new.
        outcome.note(policy.receipts, attempt);
        let has_parts_sent = attempt.provider_message_id.is_some();
        let Outcome::Accepted { cost, .. } = outcome else {
            // An attempt that was not sent is no duplicate.
            self.detail.possible_duplicate &= has_parts_sent || self.has_two_sent();
            // A late result decides if the message still waits because its newest attempt was unknown.
            let is_late = open && !newer && !matches!(outcome, Outcome::Unknown { .. }) && self.awaits_unknown();
            if decides || is_late {
                self.decide(outcome, policy, now, changes);
            }
            return Applied::Yes;
        };
        let has_receipts = policy.receipts != Receipts::Never;
        if let Some(part) = &mut self.detail.broadcast {
            part.no_receipts = !has_receipts;
        }
        self.add_reported_cost(*cost);
        if !has_receipts {
            self.charge_accepted();
        }
        self.note_duplicate();
        if newer {
            self.detail.possible_duplicate = true;
        }
        self.raise(Status::Sent, now, Some(index), changes);
        if decides {
            self.decide(outcome, policy, now, changes);
        } else if !newer || self.accepted_by_route() {
            self.stop_resend(has_receipts.then_some(policy.receipt_wait), now);
        }
        Applied::Yes
    }

    /// Returns whether the message waits to be resent by the route of its newest attempt, or is held because that one's outcome is unknown.
    fn awaits_unknown(&self) -> bool {
        let is_waiting = matches!(self.wait, Wait::Attempt { .. } | Wait::Held { reason: HeldReason::UnknownOutcome, .. });
        is_waiting && self.detail.attempts.last().is_some_and(|attempt| self.is_of_route(attempt))
    }

    /// Cancels the resend or hold of the newest attempt, which turned out to be accepted after all.
    pub(super) fn stop_resend(&mut self, receipt_wait: Option<Duration>, now: Timestamp) {
        if matches!(self.wait, Wait::Attempt { .. } | Wait::Held { .. }) {
            self.fence += 1;
            match receipt_wait {
                Some(receipt_wait) => self.await_receipt(receipt_wait, now),
                None => self.wait = Wait::Nothing,
            }
        }
    }

    /// Waits for a receipt, or until it is time for the fallback. One that would come after the validity is none.
    pub(super) fn await_receipt(&mut self, receipt_wait: Duration, now: Timestamp) {
        let fallback_at = self.detail.fallback_after_seconds.map(|seconds| now.plus(Duration::from_secs(seconds)));
        let fallback_at = fallback_at.filter(|at| self.detail.fallback.is_some() && *at < self.expires_at);
        let end = now.plus(receipt_wait);
        self.wait = Wait::Receipt { deadline: fallback_at.map_or(end, |at| at.min(end)) };
    }

    pub(super) fn decide(&mut self, outcome: &Outcome, policy: Policy, now: Timestamp, changes: &mut Vec<Change>) {
        self.fence += 1;
        match outcome {
            // The receipt arrived before the response.
            _ if matches!(self.status, Status::Delivered | Status::Read) => self.wait = Wait::Nothing,
            Outcome::Accepted { .. } | Outcome::Unknown { .. } if self.newest_failed() => self.next_route_or_fail(now, changes),
            Outcome::Accepted { .. } if policy.receipts == Receipts::Never => self.wait = Wait::Nothing,
            // This route accepted an earlier attempt, or, by a receipt, this one: another attempt would be a duplicate.
            Outcome::Deferred { .. } | Outcome::Rejected { .. } | Outcome::Unknown { .. } if self.accepted_by_route() => {
                self.await_receipt(policy.receipt_wait, now);
            }
            Outcome::Accepted { .. } => self.await_receipt(policy.receipt_wait, now),
            Outcome::Deferred { .. } => self.retry(policy.retry_in, false, now),
            Outcome::Rejected { .. } => self.next_route_or_fail(now, changes),
            Outcome::Unknown { .. } => self.unknown(policy.retry_in, now, changes),
        }
    }

    /// Applies the policy for an unknown outcome.
    pub(super) fn unknown(&mut self, retry_in: Duration, now: Timestamp, changes: &mut Vec<Change>) {
        let unknown = self.detail.attempts.iter().filter(|attempt| attempt.status == AttemptStatus::Unknown).count();
        match self.detail.on_unknown {
            OnUnknown::Resend if unknown < limits::UNKNOWN_ATTEMPTS => self.retry(retry_in, true, now),
            OnUnknown::Resend | OnUnknown::Hold => {
                self.hold(HeldReason::UnknownOutcome, now);
            }
            OnUnknown::Fail => self.fail(unknown_outcome(), now, changes),
        }
    }

    pub(super) fn receipt(
        &mut self,
        (attempt, part): (Option<usize>, u8),
        kind: &ReceiptKind,
        at: Timestamp,
        now: Timestamp,
        changes: &mut Vec<Change>,
    ) -> Applied {
        let index = attempt.unwrap_or(self.detail.attempts.len().saturating_sub(1));
        let newest = index + 1 == self.detail.attempts.len();
        let Some(attempt) = self.detail.attempts.get_mut(index) else { return Applied::Lost };
        let at = Timestamp::from_millis(at.millis().clamp(attempt.started_at.millis(), now.millis().max(attempt.started_at.millis())));
        match kind {
            ReceiptKind::Sent | ReceiptKind::Delivered | ReceiptKind::Read => {
                let (before, known) = ((self.status, self.detail.read_at), (attempt.status, attempt.arrived));
                let arrived = !matches!(kind, ReceiptKind::Sent) && attempt.has_arrived_with(part, matches!(kind, ReceiptKind::Read));
                if arrived {
                    attempt.status = AttemptStatus::Delivered;
                    attempt.error = None;
                } else if matches!(attempt.status, AttemptStatus::Started | AttemptStatus::Unknown) {
                    // One part says nothing about the part whose outcome is unknown.
                    if attempt.parts > 1 {
                        return if attempt.arrived == known.1 { Applied::Lost } else { Applied::Yes };
                    }
                    attempt.status = AttemptStatus::Accepted;
                }
                attempt.finished_at.get_or_insert(now);
                let (changed, more) = (attempt.status != known.0, attempt.arrived != known.1);
                if arrived && changed {
                    self.charge_accepted();
                }
                self.note_duplicate();
                self.raise(Status::Sent, at, Some(index), changes);
                if arrived {
                    self.arrived(matches!(kind, ReceiptKind::Read), at, index, changes);
                } else if changed && newest {
                    self.stop_resend(Some(limits::RECEIPT_WAIT), now);
                }
                if changed || more || before != (self.status, self.detail.read_at) { Applied::Yes } else { Applied::Lost }
            }
            ReceiptKind::Failed(failure) => {
                if matches!(attempt.status, AttemptStatus::Delivered | AttemptStatus::Failed) {
                    return Applied::Lost;
                }
                attempt.status = AttemptStatus::Failed;
                attempt.finished_at.get_or_insert(now);
                attempt.error = Some(failure.clone());
                let all_failed = self.detail.attempts.iter().all(|a| a.status == AttemptStatus::Failed);
                if all_failed
                    && matches!(self.wait, Wait::Receipt { .. } | Wait::Held { .. } | Wait::Nothing)
                    && self.status < Status::Failed
                {
                    self.fence += 1;
                    self.next_route_or_fail(now, changes);
                }
                Applied::Yes
            }
        }
    }

    fn arrived(&mut self, read: bool, at: Timestamp, index: usize, changes: &mut Vec<Change>) {
        // Providers' clocks differ from ours; keep the three times in order.
        let mut at = self.detail.sent_at.map_or(at, |sent| at.max(sent));
        let delivered = *self.detail.delivered_at.get_or_insert(at);
        if read {
            at = *self.detail.read_at.get_or_insert(at.max(delivered));
        }
        let status = if read { Status::Read } else { Status::Delivered };
        if self.status < status && self.detail.failure.is_some() {
            self.detail.superseded = self.detail.failure.take();
        }
        self.raise(status, at, Some(index), changes);
        if !matches!(self.wait, Wait::Owned { .. } | Wait::Nothing) {
            self.fence += 1;
            self.wait = Wait::Nothing;
        }
    }
}

fn is_within(at: Timestamp, pause: Option<(Timestamp, Timestamp)>) -> bool {
    pause.is_some_and(|(from, until)| (from..=until).contains(&at))
}

impl Attempt {
    /// Records that a part (from 0) was delivered; returns whether all have been. Parts are sent in order: whoever has read one has
    /// received those before it.
    fn has_arrived_with(&mut self, part: u8, read: bool) -> bool {
        if self.parts <= 1 {
            return true;
        }
        let this = 1_u32.checked_shl(part.into()).unwrap_or_default();
        self.arrived |= if read { this | this.wrapping_sub(1) } else { this };
        self.arrived.count_ones() >= self.parts.into()
    }
}

/// Returns a provider's id as it is stored, at most 255 bytes. A longer one is replaced by its beginning and a hash of all of it, so that
/// responses and receipts with the same id still match.
pub fn bounded_reference(mut reference: String) -> String {
    if reference.len() > LONGEST {
        let hash = Sha256::digest(&reference);
        reference.truncate(reference.floor_char_boundary(KEPT));
        reference.push_str(&format!("~{hash:x}"));
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_fits_stays() {
        for id in [String::new(), "wamid.A".to_owned(), "x".repeat(255)] {
            assert_eq!(bounded_reference(id.clone()), id);
        }
    }

    #[test]
    fn a_longer_one_is_its_beginning_and_a_hash() {
        // printf 'x%.0s' {1..256} | sha256sum
        let hash = "85e62acd750c4eb56b7b6a1d66dca5bfaac5f062608a1a893410d0288936c09a";
        assert_eq!(bounded_reference("x".repeat(256)), format!("{}~{hash}", "x".repeat(190)));
        let long = "é".repeat(4_500) + "1";
        let bounded = bounded_reference(long.clone());
        assert_eq!(bounded.len(), 255);
        assert_eq!(bounded_reference(bounded.clone()), bounded, "it is bounded once");
        assert_ne!(bounded_reference("é".repeat(4_500) + "2"), bounded, "the end counts");
        let cut = bounded_reference("xé".repeat(100));
        assert!(cut.len() <= 255 && cut.starts_with(&"xé".repeat(63)), "no character is cut: {cut}");
    }
}
