//! Handing the recipients of a broadcast over: each becomes a message by the way of all messages.
//!
//! The transaction that accepts the message also takes the recipient, if nobody did before, the broadcast still is being sent and nobody
//! took it over. So nobody gets two, whoever dies when, nobody is handed over after a pause or a cancel was answered, and the broadcast's
//! money is spent by one node at a time.

use std::collections::HashMap;
use std::time::Duration;

use nuncio_dispatch::Dispatch;
use nuncio_domain::broadcast::Broadcast;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{AddressKind, BroadcastContactId, ConnectionId, Error, ErrorCode, RequestedChannel, Result, Timestamp};
use nuncio_store::{Accepted, DueBroadcast, NewBroadcastContact};
use tokio::task::JoinHandle;

use super::Broadcasts;
use super::composer::Composer;
use super::money::Budget;
use super::quiet::QuietClock;
use super::safety;
use crate::base::Core;

/// The most recipients of one step, and steps of one round.
const CHUNK: u32 = 200;
const STEPS: usize = 5;
/// A step for fewer is put off: how long, and how often in a row.
const WORTHWHILE: usize = 100;
const PAUSE: Duration = Duration::from_millis(5);
const PAUSES: u32 = 20;
/// How soon a broadcast is looked at again all of whose recipients have quiet hours.
const ASLEEP: Duration = Duration::from_secs(300);

/// How a round ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Round {
    /// There may be more to hand over.
    More,
    /// There is more, but no room for it.
    Crowded,
    /// There is more, and it must not be sent before this moment.
    Waits(Timestamp),
    /// Too many recipients failed, opted out or complained: it is paused.
    Halted,
    /// No recipient is left who could be handed over.
    Through,
}

/// Outcome of a chunk of recipients.
#[derive(Clone, Copy, Debug, Default)]
struct Handed {
    /// Whether anybody was handed over, or cannot be.
    any: bool,
    /// Whether someone has to wait for room or money.
    crowded: bool,
    /// When the first of those may be sent to for whom it is too early or too late in the day.
    opens: Option<Timestamp>,
}

impl Handed {
    fn add(&mut self, other: Self) {
        self.any |= other.any;
        self.crowded |= other.crowded;
        self.opens = self.opens.into_iter().chain(other.opens).min();
    }
}

/// A message that is being accepted.
type Accepting = JoinHandle<Result<Accepted>>;

/// Room for bulk on the connections of a broadcast's sender.
struct Room {
    by_connection: HashMap<ConnectionId, usize>,
    /// Kinds of recipients that no connection has room for.
    full: Vec<AddressKind>,
    /// Whether all of them may be used as fast as they can.
    unpaced: bool,
}

impl Room {
    fn of(composer: &Composer<'_>, dispatch: &Dispatch) -> Self {
        let broadcast = composer.broadcast;
        let asked = |channel| {
            broadcast.channel.requested() == RequestedChannel::Auto || broadcast.channel.requested() == RequestedChannel::Only(channel)
        };
        let connections = composer.config.connections.iter().filter(|c| c.sender == composer.sender.id && asked(c.channel));
        let (mut by_connection, mut left) = (HashMap::new(), HashMap::<AddressKind, usize>::new());
        let mut unpaced = true;
        for connection in connections {
            let room = dispatch.bulk_room(broadcast.tenant, connection);
            by_connection.insert(connection.id, room);
            *left.entry(connection.channel.address_kind()).or_default() += room;
            unpaced &= connection.throttle.is_none();
        }
        let full = left.into_iter().filter(|(_, room)| *room == 0).map(|(kind, _)| kind).collect();
        Self { by_connection, full, unpaced }
    }

    fn has(&self, connection: ConnectionId) -> bool {
        self.by_connection.get(&connection).is_some_and(|left| *left > 0)
    }

    fn take(&mut self, connection: ConnectionId) {
        self.by_connection.entry(connection).and_modify(|left| *left -= 1);
    }

    /// For how many messages beside those that are being accepted.
    fn left(&self, accepting: usize) -> usize {
        // Without a connection, the planner says what becomes of the recipients.
        let all = if self.by_connection.is_empty() { CHUNK as usize } else { self.by_connection.values().sum() };
        all.saturating_sub(accepting)
    }
}

impl Broadcasts<'_> {
    /// Hands over as many recipients as there is room for, from the cursor of `due` on, which moves, and from the first one again after
    /// the last. Nothing is written once another node has taken the broadcast. While the messages of a chunk are written, those of the
    /// next are planned.
    pub(super) async fn hand_over(&self, broadcast: &Broadcast, due: &mut DueBroadcast) -> Result<Round> {
        if broadcast.waiting() == 0 {
            return Ok(Round::Through);
        }
        let (mut handed, mut accepting, mut wrapped) = (Handed::default(), Vec::new(), false);
        // The chunks of a round share it: what the one before takes is not in the database yet.
        let mut budget = None;
        let now = self.ids().clock.now();
        let canary = safety::canary(broadcast, now);
        let mut left = canary.map_or(i64::MAX, |(left, _)| left);
        for step in 0..STEPS {
            if let Some((_, until)) = canary.filter(|_| left == 0) {
                self.answered(broadcast, accepting).await?;
                return Ok(Round::Waits(until.min(now.plus(safety::LOOK))));
            }
            let Some(careful) = self.careful(broadcast, step, accepting.len()).await? else {
                self.answered(broadcast, accepting).await?;
                return Ok(Round::Halted);
            };
            let composer = self.composer(broadcast).await?;
            let (room, free) = match &composer {
                Ok(composer) => self.room(composer, accepting.len()).await,
                Err(_) => (None, CHUNK as usize),
            };
            let size = left.min(careful).min(free as i64).min(i64::from(CHUNK)) as u32;
            if size == 0 {
                handed.crowded = true;
                wrapped = !handed.any;
                break;
            }
            let mut tx = self.inner.store.read().await?;
            let chunk = tx.pending_broadcast_contacts(broadcast.tenant, broadcast.id, due.cursor, size).await?;
            drop(tx);
            left = left.saturating_sub(chunk.found.len() as i64);
            let next = match composer {
                Ok(composer) => self.hand_over_chunk(&composer, room, due.fence, chunk.found, &mut budget).await,
                Err(failure) => self.fail_chunk(broadcast, &chunk.found, &failure, now).await,
            };
            handed.add(self.answered(broadcast, std::mem::take(&mut accepting)).await?);
            let (step, begun) = next?;
            handed.add(step);
            (accepting, due.cursor) = (begun, chunk.next);
            if due.cursor.is_none() {
                // Their answers first: the next look must not find them pending.
                handed.add(self.answered(broadcast, std::mem::take(&mut accepting)).await?);
                if handed.any || wrapped {
                    break;
                }
                wrapped = true;
            }
        }
        handed.add(self.answered(broadcast, accepting).await?);
        Ok(match handed.opens {
            _ if handed.any || !wrapped => Round::More,
            // All who are left sleep.
            Some(opens) if !handed.crowded => Round::Waits(opens.min(now.plus(ASLEEP))),
            _ => Round::Crowded,
        })
    }

    /// How many recipients may be handed over before more results are known, if a rate may halt the broadcast. `None` if it has just been
    /// halted.
    async fn careful(&self, broadcast: &Broadcast, step: usize, accepting: usize) -> Result<Option<i64>> {
        if broadcast.body.halt_on.is_none() {
            return Ok(Some(i64::MAX));
        }
        let mut counts = broadcast.counts;
        if step > 0 {
            let fresh = self.find(broadcast.tenant, broadcast.id).await?;
            if self.halts(&fresh).await? {
                return Ok(None);
            }
            counts = fresh.counts;
        }
        Ok(Some((safety::allowance(&counts) - accepting as i64).max(0)))
    }

    /// The room on the connections, and for how many more messages. Where it comes back within milliseconds, waits for some of it.
    async fn room(&self, composer: &Composer<'_>, accepting: usize) -> (Option<Room>, usize) {
        let mut room = Room::of(composer, &self.inner.dispatch);
        for _ in 0..PAUSES {
            if room.left(accepting) >= WORTHWHILE || !room.unpaced || self.inner.dispatch.accepting().is_none() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            room = Room::of(composer, &self.inner.dispatch);
        }
        let left = room.left(accepting);
        (Some(room), left)
    }

    /// Plans the messages of a chunk and begins to accept them.
    async fn hand_over_chunk(
        &self,
        composer: &Composer<'_>,
        room: Option<Room>,
        fence: i64,
        mut chunk: Vec<NewBroadcastContact>,
        budget: &mut Option<Budget>,
    ) -> Result<(Handed, Vec<Accepting>)> {
        let (mut handed, broadcast) = (Handed::default(), composer.broadcast);
        let (Some(now), Some(mut room)) = (self.inner.dispatch.accepting(), room) else { return Ok((handed, Vec::new())) };
        if let Some(hours) = &broadcast.body.quiet_hours {
            let mut clock = QuietClock::new(hours, now);
            chunk.retain(|contact| {
                let opens = clock.not_before(&contact.recipient);
                handed.opens = handed.opens.into_iter().chain(opens).min();
                opens.is_none()
            });
        }
        handed.crowded = chunk.iter().any(|contact| room.full.contains(&contact.recipient.kind));
        chunk.retain(|contact| !room.full.contains(&contact.recipient.kind));
        if chunk.is_empty() {
            return Ok((handed, Vec::new()));
        }
        let mut knowledge = self.knowledge(composer, &chunk).await?;
        let mut left = match budget.take() {
            Some(left) => left,
            None => self.budget(composer).await?,
        };
        let mut accepts = Vec::new();
        for contact in chunk {
            tokio::task::consume_budget().await; // so that other tasks come in between
            let known = knowledge.of(composer, &contact.recipient, now);
            let mut planned = match self.plan_contact(composer, &contact, &known, now, true) {
                Ok(planned) => planned,
                Err(error) if error.code().status() < 500 => {
                    handed.any |= self.fail_contact(broadcast, contact.id, &failure(&error), now).await?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let connection = planned.connection.id;
            if !room.has(connection) || !self.pays(&mut left, composer, &mut planned.accept.message).await? {
                handed.crowded = true;
                continue;
            }
            room.take(connection);
            planned.accept.broadcast_fence = fence;
            let core = Core::clone(self);
            accepts.push(tokio::spawn(async move { core.messages().accept(planned).await }));
        }
        *budget = Some(left);
        Ok((handed, accepts))
    }

    /// Every recipient of a chunk fails in the same way.
    async fn fail_chunk(
        &self,
        broadcast: &Broadcast,
        chunk: &[NewBroadcastContact],
        failure: &Failure,
        now: Timestamp,
    ) -> Result<(Handed, Vec<Accepting>)> {
        let mut handed = Handed::default();
        for contact in chunk {
            handed.any |= self.fail_contact(broadcast, contact.id, failure, now).await?;
        }
        Ok((handed, Vec::new()))
    }

    /// What became of messages that were being accepted. All of them are waited for before anything is said of one: each may be written.
    async fn answered(&self, broadcast: &Broadcast, accepting: Vec<Accepting>) -> Result<Handed> {
        let mut handed = Handed::default();
        let mut answers = Vec::with_capacity(accepting.len());
        for accept in accepting {
            answers.push(accept.await.map_err(Error::internal)?);
        }
        for answer in answers {
            match answer? {
                Accepted::New { .. } => handed.any = true,
                Accepted::Stale => self.forget_config(broadcast.tenant),
                // Short of money or room they stay pending, and are tried again.
                Accepted::Closed | Accepted::Duplicate { .. } | Accepted::Short(_) | Accepted::Full { .. } => handed.crowded = true,
            }
        }
        Ok(handed)
    }

    async fn fail_contact(&self, broadcast: &Broadcast, contact: BroadcastContactId, failure: &Failure, now: Timestamp) -> Result<bool> {
        let mut tx = self.inner.store.begin().await?;
        let failed = tx.fail_broadcast_contact(broadcast.tenant, broadcast.id, contact, failure, now).await?;
        tx.commit().await?;
        Ok(failed)
    }
}

/// Why a recipient cannot be sent to, from the error that a message to them would have met.
fn failure(error: &Error) -> Failure {
    let code = match error.code() {
        ErrorCode::WhatsappWindowClosed | ErrorCode::WindowClosed => FailureCode::WindowClosed,
        ErrorCode::SenderNotConfigured => FailureCode::Undeliverable,
        _ => FailureCode::ContentRejected,
    };
    Failure::own(code, error.message())
}
