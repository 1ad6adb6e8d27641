//! Changing a broadcast: the state machine, money and events in one transaction, on the newest state.

use nuncio_domain::broadcast::{Broadcast, BroadcastAction, Status, apply};
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::Id as _;
use nuncio_domain::{BroadcastId, Error, Micros, Result, TenantId, Timestamp};
use nuncio_store::{NewEvent, Occurrence};
use serde_json::{Map, Value};

use super::Broadcasts;
use super::content::fingerprint;
use super::links;
use super::money::{self, Estimate};
use super::view::BroadcastView;
use crate::base::Change;

/// How often a change that lost a race is made again.
const TRIES: usize = 5;

impl Broadcasts<'_> {
    pub(crate) async fn find(&self, tenant: TenantId, id: BroadcastId) -> Result<Broadcast> {
        let found = self.inner.store.read().await?.find_broadcast(tenant, id).await?;
        found.ok_or_else(|| Error::not_found("broadcast"))
    }

    /// Carries out an operation, with `edit` applied to what it leads to. Of two at once the second one finds the first one done.
    pub(super) async fn change(
        &self,
        tenant: TenantId,
        id: BroadcastId,
        action: BroadcastAction,
        edit: impl Fn(&mut Broadcast, Timestamp) -> Result<()> + Send + Sync,
    ) -> Result<Broadcast> {
        self.change_as(tenant, id, |_| action, None, edit).await
    }

    /// The same for an operation that depends on the newest state, or that sets money aside: that takes an estimate.
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
            let path = apply(before.standing(&fingerprint(&before)), action)?;
            let mut broadcast = before.clone();
            broadcast.updated_at = now;
            broadcast.version += path.len().max(1) as i64;
            edit(&mut broadcast, now)?;
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
                // Nobody is handed over any more, now that the row is locked: what was taken over is known permanently.
                broadcast.counts = tx.find_broadcast(tenant, id).await?.map_or(before.counts, |fresh| fresh.counts);
                rest = Broadcast { counts: broadcast.counts, ..before.clone() }.unspent();
            }
            if !path.is_empty() {
                tx.insert_event(tenant, &event(&broadcast, before.version, before.status, &path), now).await?;
            }
            if let Some(estimate) = estimate {
                money::reserve(&mut *tx, &broadcast, estimate, now).await?;
            }
            money::release(&mut *tx, tenant, id, rest, now).await?;
            let change = Change::new("broadcast", verb(action), id);
            let change = change.from(&BroadcastView::whole(&before)).to(&BroadcastView::whole(&broadcast));
            change.record(&mut *tx, tenant).await?;
            tx.commit().await?;
            self.inner.dispatch.logs().changed(tenant);
            return Ok(broadcast);
        }
        Err(Error::unavailable("the broadcast keeps changing; try again"))
    }
}

/// What the audit log calls an operation of a person.
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

/// What a new status means for the rest.
fn enter(broadcast: &mut Broadcast, status: Status, now: Timestamp) {
    broadcast.status = status;
    if status == Status::Sending {
        broadcast.body.started_at.get_or_insert(now);
        broadcast.body.past_due = false;
    }
    if status.is_final() {
        broadcast.body.completed_at = Some(now);
    }
    broadcast.due_at = match status {
        Status::PendingReview | Status::Sending => Some(now),
        Status::Scheduled => broadcast.body.scheduled_at,
        // What was handed over and no provider has yet is taken back.
        Status::Paused | Status::Cancelled if broadcast.counts.handled() > 0 => Some(now),
        _ => None,
    };
}

/// One occurrence for each status on the way.
fn event(broadcast: &Broadcast, version: i64, from: Status, path: &[Status]) -> NewEvent {
    let previous = std::iter::once(&from).chain(path);
    let occurrence = |(previous, status): (&Status, &Status)| {
        let view = BroadcastView { status: status.as_str(), ..BroadcastView::from(broadcast) };
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
