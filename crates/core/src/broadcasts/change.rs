//! Changes a broadcast: state machine, money and events in one transaction, based on the current state.

use nuncio_domain::broadcast::{Broadcast, BroadcastAction, Status, apply};
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::{BroadcastId, Error, ErrorCode, Micros, Result, TenantId, Timestamp, id::Id as _};
use nuncio_store::{NewEvent, Occurrence};
use serde_json::{Map, Value};

use super::content::{self, fingerprint, keep_template};
use super::money::{self, Estimate};
use super::view::{BroadcastView, through};
use super::{Broadcasts, links};
use crate::base::Change;

/// Maximum number of tries after lost races.
pub(super) const TRIES: usize = 5;

impl Broadcasts<'_> {
    pub(crate) async fn find(&self, tenant: TenantId, id: BroadcastId) -> Result<Broadcast> {
        let found = self.inner.store.read().await?.find_broadcast(tenant, id).await?;
        found.ok_or_else(|| Error::not_found("broadcast"))
    }

    /// Applies an action, and `edit` to the resulting broadcast. Of two concurrent changes, the second sees the result of the first.
    pub(super) async fn change(
        &self,
        tenant: TenantId,
        id: BroadcastId,
        action: BroadcastAction,
        edit: impl Fn(&mut Broadcast, Timestamp) -> Result<()> + Send + Sync,
    ) -> Result<Broadcast> {
        self.change_as(tenant, id, |_| action, None, edit).await
    }

    /// Like [`Self::change`], for actions that depend on the current state or reserve money, which needs an estimate.
    pub(super) async fn change_as(
        &self,
        tenant: TenantId,
        id: BroadcastId,
        action: impl Fn(&Broadcast) -> BroadcastAction + Send + Sync,
        estimate: Option<&Estimate>,
        edit: impl Fn(&mut Broadcast, Timestamp) -> Result<()> + Send + Sync,
    ) -> Result<Broadcast> {
        for _ in 0..TRIES {
            let now = self.ids().clock.now();
            let mut tx = self.inner.store.begin().await?;
            let before = tx.find_broadcast(tenant, id).await?.ok_or_else(|| Error::not_found("broadcast"))?;
            let action = action(&before);
            let template = content::template(&mut *tx, &before).await?;
            let standing = before.standing(&fingerprint(&before, template.as_ref()));
            let mut path = apply(standing, action)?;
            let mut broadcast = before.clone();
            edit(&mut broadcast, now)?;
            if action == BroadcastAction::Escalate && standing.edited {
                note_edit(&mut broadcast);
            }
            if keep_template(&mut broadcast, template, action)? {
                path.clear();
            }
            broadcast.updated_at = now;
            broadcast.version += path.len().max(1) as i64;
            if let Some(status) = path.last() {
                enter(&mut broadcast, *status, now);
            }
            if let Some(estimate) = estimate {
                estimate.put(&mut broadcast)?;
            }
            let releases = before.body.reserved > 0 && (action == BroadcastAction::Reject || broadcast.status.is_final());
            if releases {
                broadcast.body.reserved = 0;
            }
            if !tx.update_broadcast(&broadcast, before.version).await? {
                continue;
            }
            if path.last() == Some(&Status::Sending) {
                tx.put_broadcast_links(tenant, id, &links::of(&broadcast)).await?;
            }
            let mut rest = Micros(0);
            if releases {
                // The row is locked, so no recipient is enqueued any more and the spent amount is final.
                broadcast.counts = tx.find_broadcast(tenant, id).await?.map_or(before.counts, |fresh| fresh.counts);
                rest = Broadcast { counts: broadcast.counts, ..before.clone() }.unspent();
            }
            // A rescheduled broadcast keeps its status.
            if path.iter().any(|status| *status != before.status) {
                tx.insert_event(tenant, &event(&broadcast, before.version, before.status, &path), now).await?;
            }
            if let Some(estimate) = estimate {
                money::reserve(&mut *tx, &broadcast, estimate, now).await?;
            }
            money::release(&mut *tx, tenant, id, rest, now).await?;
            let change = Change::new("broadcast", verb(action), id);
            change.from(&BroadcastView::whole(&before)).to(&BroadcastView::whole(&broadcast)).commit(tx, tenant).await?;
            self.inner.dispatch.log_signals().changed(tenant);
            return Ok(broadcast);
        }
        Err(changing())
    }
}

/// Returns the error after too many lost races.
pub(super) fn changing() -> Error {
    Error::unavailable("the broadcast keeps changing; try again")
}

/// Returns the audit log's verb for an action.
const fn verb(operation: BroadcastAction) -> &'static str {
    match operation {
        BroadcastAction::Send => "send",
        BroadcastAction::RetryReview => "retry_review",
        BroadcastAction::Escalate => "escalate",
        BroadcastAction::Approve { .. } => "approve",
        BroadcastAction::Refuse => "refuse",
        BroadcastAction::Schedule => "schedule",
        BroadcastAction::Pause => "pause",
        BroadcastAction::Resume => "resume",
        BroadcastAction::Cancel => "cancel",
        _ => "update",
    }
}

/// Tells the person who decides that the review was about other content.
fn note_edit(broadcast: &mut Broadcast) {
    if let Some(review) = &mut broadcast.body.review {
        review.reasoning = format!("The content was changed after this review. {}", review.reasoning);
    }
}

/// Sets the fields that follow from a new status.
fn enter(broadcast: &mut Broadcast, status: Status, now: Timestamp) {
    let was_sent = matches!(broadcast.status, Status::Sending | Status::Paused);
    if (broadcast.status, status) == (Status::Paused, Status::Sending) {
        broadcast.body.resumed = Some((now, through(broadcast)));
    }
    broadcast.status = status;
    if status == Status::Sending {
        broadcast.body.started_at.get_or_insert(now);
        broadcast.body.past_due = false;
    }
    if status == Status::Rejected {
        broadcast.body.reviewed_template = None;
    }
    if status.is_final() {
        broadcast.body.completed_at = Some(now);
    }
    broadcast.due_at = match status {
        Status::PendingReview | Status::Sending => Some(now),
        Status::Scheduled => broadcast.body.scheduled_at,
        // Queued messages that no provider has yet are withdrawn. The counts may lack some that were stored since they were read.
        Status::Paused | Status::Cancelled if was_sent => Some(now),
        _ => None,
    };
}

/// Returns an event with an occurrence for each status passed.
fn event(broadcast: &Broadcast, version: i64, from: Status, path: &[Status]) -> NewEvent {
    let previous = std::iter::once(&from).chain(path);
    let occurrence = |(previous, status): (&Status, &Status)| {
        let view = BroadcastView { status: *status, ..BroadcastView::from(broadcast) };
        let view = serde_json::to_value(view).unwrap_or_default();
        let data = Map::from_iter([("broadcast".to_owned(), view), ("previousStatus".to_owned(), Value::from(previous.as_str()))]);
        Occurrence { kind: EventType::BroadcastStatusChanged, sender: Some(broadcast.sender), data }
    };
    NewEvent {
        kind: ResourceKind::Broadcast,
        resource: broadcast.id.uuid(),
        sequence: version + 1,
        occurrences: previous.zip(path).map(occurrence).collect(),
    }
}

/// Ignores a lost race: another node did the work.
pub(super) fn ignore_lost_race<T: Default>(outcome: Result<T>) -> Result<T> {
    match outcome {
        Err(error) if error.code() == ErrorCode::InvalidRequest => Ok(T::default()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuncio_domain::SenderId;
    use nuncio_domain::broadcast::{Body, BroadcastChannel, BroadcastType, Counts};

    #[test]
    fn a_pause_and_a_cancel_withdraw_messages_that_the_counts_may_not_have_yet() {
        let now = Timestamp::from_millis(1);
        let due = |before: Status, after: Status| {
            let mut broadcast = Broadcast {
                tenant: TenantId(1),
                id: BroadcastId::from_uuid(uuid::Uuid::nil()),
                status: before,
                channel: BroadcastChannel::Sms,
                message_type: BroadcastType::Text,
                sender: SenderId::from_uuid(uuid::Uuid::nil()),
                version: 1,
                due_at: Some(now),
                starved: false,
                total: 1,
                html: None,
                body: Body::default(),
                updated_at: now,
                counts: Counts::default(),
            };
            enter(&mut broadcast, after, now);
            broadcast.due_at
        };
        for (before, after) in
            [(Status::Sending, Status::Paused), (Status::Sending, Status::Cancelled), (Status::Paused, Status::Cancelled)]
        {
            assert_eq!(due(before, after), Some(now), "{before} to {after}");
        }
        for (before, after) in
            [(Status::Draft, Status::Cancelled), (Status::Scheduled, Status::Paused), (Status::Sending, Status::Completed)]
        {
            assert_eq!(due(before, after), None, "{before} to {after}");
        }
    }
}
