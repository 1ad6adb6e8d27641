//! Decides which action is allowed in which status, and where it leads.

use super::status::Status;
use crate::{Error, ErrorCode, limits};

/// The input of the state machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    pub status: Status,
    /// Number of recipients.
    pub contacts: i64,
    /// Number of reviews so far.
    pub reviews: u32,
    /// Whether the content changed since the last review.
    pub edited: bool,
}

/// An action on a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BroadcastAction {
    /// Change its content.
    Edit,
    /// Add or remove recipients, or delete it.
    Prepare,
    /// Submit it for review, then send it.
    Send,
    /// The review passed.
    Pass {
        /// Whether its schedule lies in the future.
        ahead: bool,
    },
    /// The review failed.
    Reject,
    /// Review the edited content.
    RetryReview,
    /// Request a human decision.
    Escalate,
    /// The human reviewer approves.
    Approve {
        /// Whether its schedule lies in the future.
        ahead: bool,
    },
    /// The human reviewer rejects.
    Refuse,
    /// Change the scheduled time.
    Schedule,
    /// The scheduled time has come.
    Begin,
    /// Found long after its scheduled time.
    Hold,
    /// The recipients of its canary are all enqueued.
    StartWait,
    /// Stop enqueuing messages.
    Pause,
    Resume,
    /// All messages are final.
    Complete,
    /// No provider accepted any message.
    Fail,
    /// Stop permanently.
    Cancel,
}

impl BroadcastAction {
    /// Returns the statuses it applies to, and the one it leads to; `None` if it keeps the status.
    const fn row(self) -> (&'static [Status], Option<Status>) {
        use Status as S;
        match self {
            Self::Edit => (&[S::Draft, S::Rejected], None),
            Self::Prepare => (&[S::Draft], None),
            Self::Send => (&[S::Draft], Some(S::PendingReview)),
            Self::Pass { ahead: true } => (&[S::PendingReview], Some(S::Scheduled)),
            Self::Pass { ahead: false } => (&[S::PendingReview], Some(S::Sending)),
            Self::Reject => (&[S::PendingReview], Some(S::Rejected)),
            Self::RetryReview => (&[S::Rejected], Some(S::PendingReview)),
            Self::Escalate => (&[S::Rejected], Some(S::Escalated)),
            Self::Approve { ahead: true } => (&[S::Escalated], Some(S::Scheduled)),
            Self::Approve { ahead: false } => (&[S::Escalated], Some(S::Sending)),
            Self::Refuse => (&[S::Escalated], Some(S::RejectedFinal)),
            Self::Schedule => (&[S::Scheduled], Some(S::Scheduled)),
            Self::Begin => (&[S::Scheduled], Some(S::Sending)),
            Self::Hold => (&[S::Scheduled, S::Sending], Some(S::Paused)),
            Self::StartWait => (&[S::Sending], None),
            Self::Pause => (&[S::Sending], Some(S::Paused)),
            Self::Resume => (&[S::Paused], Some(S::Sending)),
            Self::Complete => (&[S::Sending], Some(S::Completed)),
            Self::Fail => (&[S::Sending], Some(S::Failed)),
            Self::Cancel => (
                &[S::Draft, S::PendingReview, S::Approved, S::Rejected, S::Escalated, S::Scheduled, S::Sending, S::Paused],
                Some(S::Cancelled),
            ),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Edit => "edited",
            Self::Prepare => "deleted or given other contacts",
            Self::Send => "sent",
            Self::Pass { .. } | Self::Reject => "reviewed",
            Self::RetryReview => "reviewed again",
            Self::Escalate => "escalated",
            Self::Approve { .. } => "approved",
            Self::Refuse => "refused",
            Self::Schedule => "scheduled",
            Self::Begin | Self::Hold => "started",
            Self::StartWait => "sent in part",
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Complete | Self::Fail => "completed",
            Self::Cancel => "cancelled",
        }
    }
}

/// Returns the statuses an action passes through, in order; empty if it keeps the status.
pub fn apply(standing: Standing, action: BroadcastAction) -> Result<Vec<Status>, Error> {
    let (from, to) = action.row();
    if !from.contains(&standing.status) {
        return Err(refused(standing.status, action, from));
    }
    match action {
        BroadcastAction::Send if standing.contacts == 0 => {
            return Err(Error::new(ErrorCode::NoContacts, "the broadcast has no contacts; add contacts first"));
        }
        BroadcastAction::RetryReview if standing.reviews >= limits::REVIEW_ATTEMPTS => {
            let message = format!("the broadcast was already reviewed {} times; escalate it for a human review", standing.reviews);
            return Err(Error::new(ErrorCode::ReviewAttemptsExhausted, message));
        }
        BroadcastAction::RetryReview if !standing.edited => {
            let message = "the content has not changed since it was rejected; edit it first, or escalate it for a human review";
            return Err(Error::wrong_state(message, standing.status.as_str(), &[]));
        }
        _ => {}
    }
    let passed = matches!(action, BroadcastAction::Pass { .. } | BroadcastAction::Approve { .. });
    Ok(passed.then_some(Status::Approved).into_iter().chain(to).collect())
}

fn refused(status: Status, action: BroadcastAction, from: &[Status]) -> Error {
    let names: Vec<&str> = from.iter().map(|s| s.as_str()).collect();
    let message = format!("a broadcast that is {status} cannot be {}", action.name());
    if action == BroadcastAction::Edit {
        return Error::new(ErrorCode::BroadcastNotEditable, message).at_state(status.as_str(), &names);
    }
    Error::wrong_state(message, status.as_str(), &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: &[(BroadcastAction, &str)] = &[
        (BroadcastAction::Edit, "draft rejected"),
        (BroadcastAction::Prepare, "draft"),
        (BroadcastAction::Send, "draft"),
        (BroadcastAction::Pass { ahead: false }, "pending_review"),
        (BroadcastAction::Pass { ahead: true }, "pending_review"),
        (BroadcastAction::Reject, "pending_review"),
        (BroadcastAction::RetryReview, "rejected"),
        (BroadcastAction::Escalate, "rejected"),
        (BroadcastAction::Approve { ahead: false }, "escalated"),
        (BroadcastAction::Approve { ahead: true }, "escalated"),
        (BroadcastAction::Refuse, "escalated"),
        (BroadcastAction::Schedule, "scheduled"),
        (BroadcastAction::Begin, "scheduled"),
        (BroadcastAction::Hold, "scheduled sending"),
        (BroadcastAction::StartWait, "sending"),
        (BroadcastAction::Pause, "sending"),
        (BroadcastAction::Resume, "paused"),
        (BroadcastAction::Complete, "sending"),
        (BroadcastAction::Fail, "sending"),
        (BroadcastAction::Cancel, "draft pending_review approved rejected escalated scheduled sending paused"),
    ];

    fn standing(status: Status) -> Standing {
        Standing { status, contacts: 1, reviews: 1, edited: true }
    }

    fn path(status: Status, action: BroadcastAction) -> Option<Vec<&'static str>> {
        apply(standing(status), action).ok().map(|path| path.into_iter().map(Status::as_str).collect())
    }

    #[test]
    fn every_operation_from_every_status_and_none_from_a_final_one() {
        for (action, from) in ACTIONS {
            for status in Status::ALL.iter().copied() {
                let allowed = from.split(' ').any(|name| name == status.as_str());
                assert!(!allowed || !status.is_final());
                assert_eq!(path(status, *action).is_some(), allowed, "{action:?} from {status}");
            }
        }
    }

    #[test]
    fn what_passes_the_review_goes_on_at_once() {
        assert_eq!(path(Status::PendingReview, BroadcastAction::Pass { ahead: false }), Some(vec!["approved", "sending"]));
        assert_eq!(path(Status::PendingReview, BroadcastAction::Pass { ahead: true }), Some(vec!["approved", "scheduled"]));
        assert_eq!(path(Status::Escalated, BroadcastAction::Approve { ahead: false }), Some(vec!["approved", "sending"]));
        assert_eq!(path(Status::Draft, BroadcastAction::Edit), Some(vec![]));
    }

    #[test]
    fn reviews_are_counted_and_need_an_edit() {
        let code = |standing| apply(standing, BroadcastAction::RetryReview).map_err(|e| e.code()).err();
        let rejected = standing(Status::Rejected);
        assert_eq!(code(Standing { reviews: 2, ..rejected }), None);
        assert_eq!(code(Standing { reviews: 3, ..rejected }), Some(ErrorCode::ReviewAttemptsExhausted));
        assert_eq!(code(Standing { edited: false, ..rejected }), Some(ErrorCode::InvalidRequest));
        let empty = Standing { contacts: 0, ..standing(Status::Draft) };
        assert_eq!(apply(empty, BroadcastAction::Send).map_err(|e| e.code()).err(), Some(ErrorCode::NoContacts));
    }
}
