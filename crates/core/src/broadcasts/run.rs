//! What a node does for broadcasts when nobody asks: reviews, schedules, hand-over, the end.
//!
//! A broadcast that needs something has `due_at`. Whoever takes it raises its fence and sets it due again a few seconds ahead, so that
//! others leave it alone meanwhile and go on if this node dies. That alone keeps nobody out: who is handed over is decided by the
//! transaction that accepts the message, under the fence of whoever took the broadcast last, and statuses change by compare-and-set.

use std::time::Duration;

use nuncio_domain::broadcast::{Broadcast, BroadcastAction, Status};
use nuncio_domain::lifecycle::Step;
use nuncio_domain::{Error, ErrorCode, Result, Timestamp, limits};
use nuncio_store::{DueBroadcast, Transition};

use super::Broadcasts;
use super::fan_out::Round;
use crate::base::Core;

/// For how long a node has a broadcast to itself.
pub(super) const LEASE: Duration = Duration::from_secs(5);
/// How soon a broadcast is looked at again whose connections have no room, and one that waits for receipts: a tenth of its age.
const CROWDED: Duration = Duration::from_millis(500);
const WAITING: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Recipients that are looked at in one step, to take their messages back.
const TAKEN_BACK: u32 = 1_000;

impl Broadcasts<'_> {
    /// Looks after one broadcast that is due.
    pub async fn process_due(&self, mut due: DueBroadcast) -> Result<()> {
        let Some(now) = self.inner.dispatch.accepting() else { return Ok(()) };
        let late = now.since(due.due_at) > limits::PAST_DUE;
        if !self.claim(&mut due, Some(now.plus(LEASE))).await? {
            return Ok(());
        }
        let broadcast = self.find(due.tenant, due.id).await?;
        // Someone is still to be handed over, and may have been by the original of this copy.
        let doubtful = late && broadcast.waiting() > 0;
        let next = match broadcast.status {
            Status::Scheduled | Status::Sending if doubtful => return settled(self.hold(&broadcast).await),
            Status::PendingReview => {
                if let Some(again) = settled(self.review(&broadcast, &mut due).await)? {
                    return self.claim(&mut due, Some(again)).await.map(drop);
                }
                return if doubtful { settled(self.hold(&broadcast).await) } else { Ok(()) };
            }
            Status::Scheduled => return settled(self.begin(&broadcast).await),
            Status::Sending => self.go_on(&broadcast, &mut due, now).await?,
            Status::Paused | Status::Cancelled => self.withdraw(&broadcast).await?,
            _ => Some(None),
        };
        match next {
            Some(next) => self.claim(&mut due, next).await.map(drop),
            None => Ok(()),
        }
    }

    /// Takes the broadcast under the next fence until `next`; `false` when someone was faster.
    pub(super) async fn claim(&self, due: &mut DueBroadcast, next: Option<Timestamp>) -> Result<bool> {
        let mut tx = self.inner.store.begin().await?;
        let claimed = tx.claim_broadcast(due, next).await?;
        tx.commit().await?;
        due.fence += i64::from(claimed);
        Ok(claimed)
    }

    async fn begin(&self, broadcast: &Broadcast) -> Result<()> {
        self.change(broadcast.tenant, broadcast.id, BroadcastAction::Begin, |_, _| Ok(())).await.map(drop)
    }

    /// More than an hour late: this may be a restored copy of what was sent long ago. A person resumes or cancels it.
    async fn hold(&self, broadcast: &Broadcast) -> Result<()> {
        tracing::warn!(broadcast.id = %broadcast.id, "a broadcast was found more than an hour late; it is paused until somebody resumes it");
        self.change(broadcast.tenant, broadcast.id, BroadcastAction::Hold, |broadcast, _| {
            broadcast.body.past_due = true;
            Ok(())
        })
        .await
        .map(drop)
    }

    /// Hands over what there is room for, or ends the broadcast. Returns when to look again, or nothing if it changed its status.
    async fn go_on(&self, broadcast: &Broadcast, due: &mut DueBroadcast, now: Timestamp) -> Result<Option<Option<Timestamp>>> {
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
        if fresh.counts.awaited > 0 || fresh.waiting() > 0 {
            let age = fresh.body.started_at.map_or(Duration::ZERO, |at| now.since(at));
            return Ok(Some(Some(now.plus((age / 10).clamp(WAITING.0, WAITING.1)))));
        }
        let counts = fresh.counts;
        let nothing_went_out = counts.taken == 0 && counts.failed > 0;
        let operation = if nothing_went_out { BroadcastAction::Fail } else { BroadcastAction::Complete };
        settled(self.change(fresh.tenant, fresh.id, operation, |_, _| Ok(())).await.map(drop))?;
        Ok(None)
    }

    /// Takes back the messages of a paused or cancelled broadcast that no provider has. No attempt of them can start meanwhile: a start looks
    /// at the broadcast too, which also stops those whose attempt is in flight now.
    async fn withdraw(&self, broadcast: &Broadcast) -> Result<Option<Option<Timestamp>>> {
        let mut after = None;
        loop {
            let mut tx = self.inner.store.read().await?;
            let page = tx.unsent_broadcast_messages(broadcast.tenant, broadcast.id, after, TAKEN_BACK).await?;
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

/// Someone else was faster: nothing is left to do.
fn settled<T: Default>(outcome: Result<T>) -> Result<T> {
    match outcome {
        Err(error) if error.code() == ErrorCode::InvalidRequest => Ok(T::default()),
        outcome => outcome,
    }
}
