//! Finding what is due. Hints make things fast; the scanner makes them certain.

use std::sync::Arc;
use std::time::Duration;

use nuncio_core::{Hint, contacts};
use nuncio_domain::ConnectionId;
use nuncio_domain::lifecycle::{Step, Wait};
use nuncio_store::{DueMessage, Result, Transition, Transitioned};

use crate::Shared;

/// Messages of one look.
pub(crate) const LIMIT: u32 = 1_000;
/// Rows of one purge.
const PURGE: u32 = 1_000;
/// How old a spool chunk without a message must be: no accept takes this long.
const ORPHAN_AGE: Duration = Duration::from_secs(3_600);

impl Shared {
    /// Looks for due messages and sees to each; answers whether any was due that could be seen to.
    pub(crate) async fn scan(self: &Arc<Self>) -> Result<bool> {
        if self.is_stopping() {
            return Ok(false);
        }
        let clock = &self.ids.clock;
        let skip = self.resting(clock.monotonic());
        let shards = self.shards();
        let due = self.store.read().await?.due_messages(&shards, &skip, clock.now(), LIMIT).await?;
        let mut any = false;
        for message in due {
            any |= self.see_to(message).await?;
        }
        Ok(any)
    }

    /// Connections that start nothing now; what waits for them must not stand in front of others.
    fn resting(&self, now: Duration) -> Vec<ConnectionId> {
        self.lanes.read().values().filter(|lane| lane.is_resting(now) || lane.is_fed()).map(|lane| lane.connection).collect()
    }

    async fn see_to(self: &Arc<Self>, due: DueMessage) -> Result<bool> {
        if let Wait::Attempt { .. } = due.wait {
            let Some(lane) = self.find_lane(due.tenant, due.connection).await? else {
                tracing::warn!(message.id = %due.id, connection = %due.connection, "the connection of a waiting message was removed");
                return Ok(false);
            };
            let hint = Hint { tenant: due.tenant, id: due.id, fence: due.fence, connection: due.connection, bulk: false };
            let known = lane.hint(hint);
            lane.pump();
            return Ok(known && !lane.is_resting(self.ids.clock.monotonic()));
        }
        let step = Step::Deadline { fence: due.fence };
        let ended = self.store.transition(Transition::new(due.tenant, due.id, step, self.ids.clock.now())).await?;
        if let Transitioned::Found { changes, .. } = ended {
            self.count(&changes);
        }
        Ok(true)
    }

    /// Removes what nobody needs any more, a step at a time.
    pub(crate) async fn purge(&self) -> Result<()> {
        let now = self.ids.clock.now();
        let mut tx = self.store.begin().await?;
        tx.purge_idempotency_keys(now, PURGE).await?;
        tx.purge_orphaned_spool(now.minus(ORPHAN_AGE), PURGE).await?;
        tx.commit().await?;
        contacts::sweep(&*self.store, &self.ids).await
    }
}
