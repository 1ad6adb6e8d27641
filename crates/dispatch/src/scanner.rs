//! Finding what is due. Hints make things fast; the scanner makes them certain.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use nuncio_core::{Hint, contacts};
use nuncio_domain::ConnectionId;
use nuncio_domain::lifecycle::{Step, Wait};
use nuncio_store::{DueMessage, Result, StoreError};

use crate::Shared;
use crate::lane::Lane;

/// Messages of one look.
pub(crate) const LIMIT: u32 = 1_000;
/// Rows of one purge.
const PURGE: u32 = 1_000;
/// How old a spool chunk without a message must be: no accept takes this long.
const ORPHAN_AGE: Duration = Duration::from_secs(3_600);

impl Shared {
    /// Messages that are due, but for those that nothing can be done about now.
    pub(crate) async fn find_due(&self) -> Result<Vec<DueMessage>> {
        if self.is_stopping() {
            return Ok(Vec::new());
        }
        let clock = &self.ids.clock;
        let (skip, left) = (self.resting(clock.monotonic()), self.left_alone());
        let mut tx = self.store.read().await?;
        let mut due = tx.due_messages(&self.shards(), &skip, clock.now(), LIMIT + left.len() as u32).await?;
        due.retain(|message| !left.contains(&message.id));
        Ok(due)
    }

    /// Connections that start nothing now; what waits for them must not stand in front of others.
    fn resting(&self, now: Duration) -> Vec<ConnectionId> {
        self.lanes.read().values().filter(|lane| lane.is_resting(now) || lane.is_fed()).map(|lane| lane.connection).collect()
    }

    /// Sees to messages that are due; answers whether there was anything to do.
    pub(crate) async fn see_to(self: &Arc<Self>, due: Vec<DueMessage>) -> Result<bool> {
        let (now, mut any) = (self.ids.clock.now(), false);
        let mut lanes: HashMap<ConnectionId, Option<Arc<Lane>>> = HashMap::new();
        let mut steps = Vec::new();
        for message in &due {
            let DueMessage { tenant, id, fence, connection, .. } = *message;
            if !matches!(message.wait, Some(Wait::Attempt { .. })) {
                steps.push((message, Step::Deadline { fence }));
                continue;
            }
            if message.expires_at <= now {
                // Its start finds it so, and ends it: no lane is needed.
                steps.push((message, Step::Start { node: self.node(), fence, suppressed: false }));
                continue;
            }
            let lane = match lanes.entry(connection) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => match self.find_lane(tenant, connection).await {
                    Err(error @ StoreError::Corrupt { .. }) => {
                        self.leave_alone(id, &error);
                        continue;
                    }
                    lane => unknown.insert(lane?),
                },
            };
            match lane {
                Some(lane) => {
                    any |= lane.hint(Hint { tenant, id, fence, connection, bulk: false }) && !lane.is_resting(self.ids.clock.monotonic())
                }
                None => steps.push((message, Step::Disconnected { fence })),
            }
        }
        lanes.values().flatten().for_each(Lane::pump);
        // One commit takes them all.
        for taken in join_all(steps.into_iter().map(|(message, step)| self.step(message, step))).await {
            any |= taken?;
        }
        Ok(any)
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
