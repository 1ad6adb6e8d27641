//! Finds due messages. Hints are an optimisation; the scanner guarantees progress.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use nuncio_domain::{ConnectionId, MessageId, lifecycle::Step, message::Wait};
use nuncio_store::{AgendaKey, Due, DueMessage, Result, Skip, StoreError};

use crate::lane::{FED, Hinted, Lane};
use crate::{Hint, Shared};

/// Messages per scan.
const LIMIT: u32 = FED as u32;

/// Looks per scan, if one is not enough. Other work of the round waits for them.
const LOOKS: u32 = 16;

/// The outcome of a scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Processed {
    /// Whether there was anything to do.
    pub(crate) any: bool,
    /// Whether lanes live on what scans find: the backlog is larger than they can remember.
    pub(crate) feeds: bool,
}

impl Shared {
    /// Returns due messages, except those that cannot be processed now; none unless this node is fit: by a wrong clock, messages would expire.
    pub(crate) async fn find_due(&self) -> Result<Vec<DueMessage>> {
        if !self.is_fit() {
            return Ok(Vec::new());
        }
        let (mut skip, left) = (self.resting(self.ids.clock.monotonic()), self.left_alone());
        let limit = LIMIT + left.len() as u32;
        let (mut found, mut seen) = (Vec::new(), HashSet::<MessageId>::new());
        for _ in 0..LOOKS {
            let Due { messages, stale } = self.look(&skip, limit).await?;
            // The backlog of some connections, most of which their lanes may know already, must not hide what comes after it.
            let is_full = messages.len() >= limit as usize;
            let served = skip_found(&mut skip, &messages);
            found.extend(messages.into_iter().filter(|message| seen.insert(message.id)));
            let goes_on = if is_full { served } else { found.is_empty() && !stale.is_empty() };
            if !goes_on {
                break;
            }
        }
        // One that waits for memory is in progress.
        found.retain(|message: &DueMessage| !left.contains(&message.id) && !self.in_flight.has(message.id));
        Ok(found)
    }

    /// Looks once, and deletes the stale rows that it finds. No node counts them, as after a restart, and they would hide what comes after
    /// them.
    async fn look(&self, skip: &Skip, limit: u32) -> Result<Due> {
        let mut tx = self.store.read().await?;
        let due = tx.due_messages(&self.shards(), skip, self.ids.clock.now(), limit).await?;
        drop(tx);
        self.delete_stale(&due.stale).await?;
        Ok(due)
    }

    pub(crate) async fn delete_stale(&self, rows: &[AgendaKey]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut tx = self.store.begin().await?;
        tx.delete_agenda_rows(rows).await?;
        tx.commit().await
    }

    /// Returns connections that start nothing now, or have enough to start; their messages must not block others.
    fn resting(&self, now: Duration) -> Skip {
        let lanes = self.lanes.read();
        let (mut all, mut bulk) = (Vec::new(), Vec::new());
        for lane in lanes.values() {
            if lane.is_resting(now) || lane.is_fed() {
                all.push(lane.connection);
            } else if lane.is_blocked(now) || !lane.has_room(true, false) {
                // The others may not be waiting there yet, and go first.
                bulk.push(lane.connection);
            }
        }
        Skip { all, bulk }
    }

    pub(crate) async fn process_due(self: &Arc<Self>, due: Vec<DueMessage>) -> Result<Processed> {
        let (now, mut any, mut added) = (self.ids.clock.now(), false, 0);
        let mut lanes: HashMap<ConnectionId, Option<Arc<Lane>>> = HashMap::new();
        let mut steps = Vec::new();
        for message in &due {
            let DueMessage { tenant, id, fence, connection, bulk, bytes, .. } = *message;
            if !is_attempt(message) {
                steps.push((message, Step::Deadline { fence }));
                continue;
            }
            if message.expires_at <= now {
                // Its start detects that and ends it: no lane is needed.
                steps.push((message, self.start_step(fence)));
                continue;
            }
            let lane = match lanes.entry(connection) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => match self.find_lane(tenant, connection).await {
                    Err(error @ StoreError::Corrupt { .. }) => {
                        self.skip_temporarily(id, &error);
                        continue;
                    }
                    lane => unknown.insert(lane?),
                },
            };
            match lane {
                Some(lane) if message.fallback_is_due && lane.is_failing(self.ids.clock.monotonic()) => {
                    steps.push((message, Step::Deadline { fence }));
                }
                Some(lane) => {
                    let hinted = lane.hint(Hint { tenant, id, fence, connection, bulk, bytes });
                    added += usize::from(hinted == Hinted::Added);
                    any |= hinted != Hinted::Refused && !lane.is_blocked(self.ids.clock.monotonic());
                }
                None => steps.push((message, Step::Disconnected { fence })),
            }
        }
        lanes.values().flatten().for_each(Lane::pump);
        // One commit for all of them.
        for taken in join_all(steps.into_iter().map(|(message, step)| self.step(message, step))).await {
            any |= taken?;
        }
        Ok(Processed { any, feeds: added >= LIMIT as usize / 2 })
    }
}

/// Skips from now on what was found: of a connection with bulk messages only these, of others all. Returns whether there was any.
fn skip_found(skip: &mut Skip, messages: &[DueMessage]) -> bool {
    let before = skip.all.len() + skip.bulk.len();
    for message in messages.iter().filter(|message| is_attempt(message)) {
        if skip.all.contains(&message.connection) {
            continue;
        }
        if !message.bulk {
            skip.all.push(message.connection);
        } else if !skip.bulk.contains(&message.connection) {
            skip.bulk.push(message.connection);
        }
    }
    skip.all.len() + skip.bulk.len() > before
}

fn is_attempt(message: &DueMessage) -> bool {
    matches!(message.wait, Some(Wait::Attempt { .. }))
}
