//! Processes due broadcasts: reviews, schedules, enqueues, completes.
//!
//! A broadcast with work to do has `due_at`. A node that claims it increments its fence and moves `due_at` a few seconds ahead, so that
//! other nodes wait, and continue if this one dies. The claim is not a lock: the transaction that accepts a message checks the fence, and
//! statuses change by compare-and-set.

use std::time::Duration;

use nuncio_dispatch::Shares;
use nuncio_domain::broadcast::{Broadcast, BroadcastAction, Status};
use nuncio_domain::{Error, Result, TenantId, Timestamp, lifecycle::Step, limits};
use nuncio_store::{DueBroadcast, Transition};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use super::{Broadcasts, act::is_ahead, change::ignore_lost_race, fan_out::Round};
use crate::base::Core;

/// Duration of a node's claim.
pub(super) const LEASE: Duration = Duration::from_secs(5);
/// Delay if connections have no room. If receipts are pending, it is a tenth of the broadcast's age.
const CROWDED: Duration = Duration::from_millis(500);
const WAITING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Recipients per step of a withdrawal.
const WITHDRAW_PAGE: u32 = 1_000;
/// Maximum broadcasts that a node processes at once, and that wait for its reviewer at once; and how many of the former one environment has.
const SLOTS: usize = 4;
const SHARE: usize = 2;

/// Limits how many broadcasts a node processes at once. Those that wait for the reviewer have slots of their own, so that a slow one does
/// not hold up the others.
#[derive(Debug)]
pub struct Slots {
    any: Semaphore,
    shares: Shares,
    reviews: Semaphore,
}

/// A slot, with its place in the environment's share.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    _permit: SemaphorePermit<'a>,
    _share: Option<OwnedSemaphorePermit>,
}

impl Default for Slots {
    fn default() -> Self {
        Self { any: Semaphore::new(SLOTS), shares: Shares::new(SHARE), reviews: Semaphore::new(SLOTS) }
    }
}

impl Slots {
    async fn take(&self, tenant: TenantId) -> Result<Slot<'_>> {
        let share = self.shares.of(tenant).acquire_owned().await.map_err(Error::internal)?;
        Ok(Slot { _permit: self.any.acquire().await.map_err(Error::internal)?, _share: Some(share) })
    }

    /// Takes a slot for a review if one is free.
    pub(super) fn take_for_review(&self) -> Option<Slot<'_>> {
        Some(Slot { _permit: self.reviews.try_acquire().ok()?, _share: None })
    }
}

impl Broadcasts<'_> {
    /// Processes a due broadcast, as soon as it has a slot.
    pub async fn process_due(&self, mut due: DueBroadcast, slots: &Slots) -> Result<()> {
        let mut slot = slots.take(due.tenant).await?;
        let Some(now) = self.inner.dispatch.accepting() else { return Ok(()) };
        let late = now.since(due.due_at) > limits::PAST_DUE;
        if !self.claim(&mut due, Some(now.plus(LEASE))).await? {
            return Ok(());
        }
        let broadcast = self.find(due.tenant, due.id).await?;
        // Recipients are pending that the original of this copy may already have sent to.
        let maybe_sent = late && broadcast.waiting() > 0;
        let next = match broadcast.status {
            Status::Scheduled | Status::Sending if maybe_sent => return ignore_lost_race(self.hold(&broadcast).await),
            Status::PendingReview => {
                let reviewed = self.review(&broadcast, &mut due, slots, &mut slot, maybe_sent).await;
                if let Some(again) = ignore_lost_race(reviewed)? {
                    return self.claim(&mut due, Some(again)).await.map(drop);
                }
                return if maybe_sent { ignore_lost_race(self.hold(&broadcast).await) } else { Ok(()) };
            }
            Status::Scheduled => return ignore_lost_race(self.begin(&broadcast).await),
            Status::Sending => self.advance(&broadcast, &mut due, now).await?,
            Status::Paused | Status::Cancelled => self.withdraw(&broadcast).await?,
            _ => Some(None),
        };
        match next {
            Some(next) => self.claim(&mut due, next).await.map(drop),
            None => Ok(()),
        }
    }

    /// Claims the broadcast until `next` under the next fence; `false` if another node was faster.
    pub(super) async fn claim(&self, due: &mut DueBroadcast, next: Option<Timestamp>) -> Result<bool> {
        let mut tx = self.inner.store.begin().await?;
        let claimed = tx.claim_broadcast(due, next).await?;
        tx.commit().await?;
        due.fence += i64::from(claimed);
        Ok(claimed)
    }

    async fn begin(&self, broadcast: &Broadcast) -> Result<()> {
        self.change(broadcast.tenant, broadcast.id, BroadcastAction::Begin, |broadcast, now| still_due(broadcast, now)).await.map(drop)
    }

    /// Holds a broadcast that is over an hour late: the database may be a restored copy, and the original may have sent it.
    async fn hold(&self, broadcast: &Broadcast) -> Result<()> {
        let was_due = broadcast.status == Status::Scheduled;
        self.change(broadcast.tenant, broadcast.id, BroadcastAction::Hold, |broadcast, now| {
            if was_due {
                still_due(broadcast, now)?;
            }
            broadcast.body.past_due = true;
            Ok(())
        })
        .await?;
        tracing::warn!(broadcast.id = %broadcast.id, "broadcast is more than an hour late; paused it");
        Ok(())
    }

    /// Enqueues recipients, or completes the broadcast. Returns the time of the next round, or nothing if the status changed.
    async fn advance(&self, broadcast: &Broadcast, due: &mut DueBroadcast, now: Timestamp) -> Result<Option<Option<Timestamp>>> {
        if self.halts(broadcast).await? {
            return Ok(None);
        }
        match self.hand_over(broadcast, due).await? {
            Round::Waits(until) => return Ok(Some(Some(until))),
            Round::More => return Ok(Some(Some(now))),
            Round::Crowded => return Ok(Some(Some(now.plus(CROWDED)))),
            Round::Halted => return Ok(None),
            Round::Through => {}
        }
        let fresh = self.find(broadcast.tenant, broadcast.id).await?;
        if fresh.status != Status::Sending {
            return Ok(None);
        }
        // Queued messages that nothing is awaited of are held, and may be sent later.
        if fresh.counts.awaited > 0 || fresh.pending() > 0 {
            let age = fresh.body.started_at.map_or(Duration::ZERO, |at| now.since(at));
            return Ok(Some(Some(now.plus((age / 10).clamp(WAITING.0, WAITING.1)))));
        }
        // One that is held may have gone out.
        let nothing_went_out = fresh.counts.taken == 0 && fresh.counts.sending == 0;
        let operation = if nothing_went_out { BroadcastAction::Fail } else { BroadcastAction::Complete };
        ignore_lost_race(self.change(fresh.tenant, fresh.id, operation, |_, _| Ok(())).await.map(drop))?;
        Ok(None)
    }

    /// Withdraws the messages of a paused or cancelled broadcast that no provider has. None of them can start meanwhile: a start checks the
    /// broadcast, which also stops retries of attempts in flight.
    async fn withdraw(&self, broadcast: &Broadcast) -> Result<Option<Option<Timestamp>>> {
        let mut after = None;
        loop {
            let mut tx = self.inner.store.read().await?;
            let page = tx.unsent_broadcast_messages(broadcast.tenant, broadcast.id, after, WITHDRAW_PAGE).await?;
            drop(tx);
            let steps: Vec<_> = page
                .found
                .into_iter()
                .map(|id| {
                    let (core, tenant, now) = (Core::clone(self), broadcast.tenant, self.ids().clock.now());
                    tokio::spawn(async move {
                        core.inner.store.transition(Transition::new(tenant, id, Step::Withdraw { halt: None }, now)).await
                    })
                })
                .collect();
            for step in steps {
                step.await.map_err(Error::internal)??;
            }
            after = page.next;
            if after.is_none() {
                return Ok(Some(None));
            }
        }
    }
}

/// Fails, as after a lost race, if the broadcast was rescheduled after it was found due.
fn still_due(broadcast: &Broadcast, now: Timestamp) -> Result<()> {
    if is_ahead(broadcast, now) {
        let message = "the broadcast was scheduled for another time";
        return Err(Error::wrong_state(message, broadcast.status.as_str(), &[]));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    // holds: broadcasts.shares
    #[test]
    fn an_environment_leaves_slots_to_others() {
        let slots = Slots::default();
        let take = |tenant| slots.take(TenantId(tenant)).now_or_never();
        let (mut slot, _other) = (take(1).unwrap().unwrap(), take(1).unwrap().unwrap());
        assert!(take(1).is_none() && take(2).is_some());
        // A review takes a slot of its own in exchange.
        drop(std::mem::replace(&mut slot, slots.take_for_review().unwrap()));
        assert!(take(1).is_some());
    }
}
