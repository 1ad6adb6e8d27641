//! Enqueues the recipients of a broadcast: each becomes an ordinary message.
//!
//! The transaction that accepts the message also claims the recipient: only if it is unclaimed, the broadcast is still being sent, and the
//! fence is current. So after any crash a recipient gets at most one message, no recipient is enqueued once a pause or cancel was
//! confirmed, and only one node at a time spends the broadcast's money.

use std::collections::HashMap;
use std::time::Duration;

use nuncio_dispatch::Dispatch;
use nuncio_domain::broadcast::Broadcast;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{AddressKind, BroadcastContactId, ConnectionId, Error, ErrorCode, RequestedChannel, Result, Timestamp};
use nuncio_store::{Accepted, DueBroadcast, NewBroadcastContact};
use tokio::task::JoinHandle;

use super::{Broadcasts, composer::Composer, money::Budget, quiet::QuietClock, safety};
use crate::base::{Core, is_mark};

/// Maximum recipients per step, and steps per round.
const CHUNK: u32 = 200;
const STEPS: usize = 25;
/// Recipients that end without a message in one transaction.
const ENDED: usize = 20;
/// A step for fewer recipients is delayed: for how long, and how many times in a row.
const MIN_STEP: usize = 100;
const PAUSE: Duration = Duration::from_millis(5);
const PAUSES: u32 = 20;
/// Maximum delay if all remaining recipients are in quiet hours.
const QUIET_RECHECK: Duration = Duration::from_secs(300);

/// Recipients that a round plans and passes over, because their connections have no room, for each that it enqueues, above which the next
/// round is delayed: it would plan most of them again, and enqueue as few.
const PASSED: usize = 10;

/// Delay after a round in which there was money or storage for none.
const STARVED: Duration = Duration::from_secs(10);

/// Result of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Round {
    /// More recipients may remain.
    More,
    /// Recipients remain, but connections have no room.
    Crowded,
    /// Recipients remain, but must not be sent to before this time.
    Waits(Timestamp),
    /// Paused: too many recipients failed, opted out or complained.
    Halted,
    /// No recipient is left to enqueue.
    Through,
}

/// Result of a chunk of recipients.
#[derive(Clone, Copy, Debug, Default)]
struct ChunkResult {
    /// Whether a recipient was enqueued, or failed permanently.
    any: bool,
    /// Whether a recipient waits for room on a connection.
    crowded: bool,
    /// Recipients that were planned: those whose message is being accepted, and those passed over, as their connection has no room.
    begun: usize,
    passed: usize,
    /// Whether a recipient waits for money or storage.
    starved: bool,
    /// Whether the broadcast was paused or cancelled, or claimed by another node.
    closed: bool,
    /// When the first recipient leaves quiet hours.
    opens: Option<Timestamp>,
}

impl ChunkResult {
    fn add(&mut self, other: Self) {
        self.any |= other.any;
        self.crowded |= other.crowded;
        self.begun += other.begun;
        self.passed += other.passed;
        self.starved |= other.starved;
        self.closed |= other.closed;
        self.opens = self.opens.into_iter().chain(other.opens).min();
    }

    /// Returns the result of a round; `wrapped` if it saw all recipients.
    fn round(&self, wrapped: bool, now: Timestamp) -> Round {
        match self.opens {
            // Each try costs a transaction, and takes permits from messages that can be paid.
            _ if self.starved && !self.any => Round::Waits(now.plus(STARVED)),
            _ if self.passed > PASSED * self.begun => Round::Crowded,
            _ if self.any || !wrapped => Round::More,
            // All remaining recipients are in quiet hours.
            Some(opens) if !self.crowded => Round::Waits(opens.min(now.plus(QUIET_RECHECK))),
            _ => Round::Crowded,
        }
    }
}

/// An accept in flight.
type Accepting = JoinHandle<Result<Accepted>>;

/// Room for bulk messages on the connections of the broadcast's sender.
struct Room {
    by_connection: HashMap<ConnectionId, usize>,
    /// Kinds of recipients without room on any connection.
    full: Vec<AddressKind>,
    /// Whether no connection has a rate limit.
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

    /// Returns how many more messages fit, in addition to accepts in flight.
    fn left(&self, accepting: usize) -> usize {
        // Without a connection, the planner rejects the recipients.
        let all = if self.by_connection.is_empty() { CHUNK as usize } else { self.by_connection.values().sum() };
        all.saturating_sub(accepting)
    }
}

impl Broadcasts<'_> {
    /// Enqueues as many recipients as there is room for, from the cursor of `due` on, which it advances; after the last recipient, it
    /// continues at the first. Writes nothing once another node has claimed the broadcast. Plans the next chunk while the current one is
    /// being accepted.
    pub(super) async fn hand_over(&self, broadcast: &Broadcast, due: &mut DueBroadcast) -> Result<Round> {
        due.starved = false;
        if broadcast.waiting() == 0 {
            return Ok(Round::Through);
        }
        let (mut handed, mut accepting, mut wrapped) = (ChunkResult::default(), Vec::new(), false);
        // Shared by the chunks of a round: the spending of the previous chunk is not stored yet.
        let mut budget = None;
        let now = self.ids().clock.now();
        let canary = safety::canary(broadcast, now);
        if canary == Some((0, None)) {
            // A change of the broadcast raises its fence: the next round comes with the next claim.
            self.start_wait(broadcast).await?;
            return Ok(Round::More);
        }
        let mut left = canary.map_or(i64::MAX, |(left, _)| left);
        for step in 0..STEPS {
            if let Some((_, until)) = canary.filter(|_| left == 0) {
                handed.add(self.finish_accepts(broadcast, accepting).await?);
                let look = now.plus(safety::LOOK);
                return Ok(if until.is_none() && handed.any { Round::More } else { Round::Waits(until.unwrap_or(look).min(look)) });
            }
            let Some(halt_allowance) = self.halt_allowance(broadcast, step, accepting.len()).await? else {
                self.finish_accepts(broadcast, accepting).await?;
                return Ok(Round::Halted);
            };
            let composer = self.composer(broadcast).await?;
            let (room, free) = match &composer {
                Ok(composer) => self.room(composer, accepting.len()).await,
                Err(_) => (None, CHUNK as usize),
            };
            let size = left.min(halt_allowance).min(free as i64).min(i64::from(CHUNK)) as u32;
            if size == 0 {
                handed.crowded = true;
                wrapped = !handed.any;
                break;
            }
            let chunk = self.inner.store.read().await?.pending_broadcast_contacts(broadcast.tenant, broadcast.id, due.cursor, size).await?;
            left = left.saturating_sub(chunk.found.len() as i64);
            let next = match composer {
                Ok(composer) => self.enqueue_chunk(&composer, room, due.fence, chunk.found, &mut budget).await,
                Err(failure) => {
                    let failures: Vec<_> = chunk.found.into_iter().map(|contact| (contact.id, Some(failure.clone()))).collect();
                    let any = self.end_contacts(broadcast, &failures, now).await?;
                    Ok((ChunkResult { any, ..ChunkResult::default() }, Vec::new()))
                }
            };
            handed.add(self.finish_accepts(broadcast, std::mem::take(&mut accepting)).await?);
            let (step, begun) = next?;
            handed.add(step);
            (accepting, due.cursor) = (begun, chunk.next);
            if handed.closed || handed.starved {
                break;
            }
            if due.cursor.is_none() {
                // Wait for the results first: the next scan must not find these recipients pending.
                handed.add(self.finish_accepts(broadcast, std::mem::take(&mut accepting)).await?);
                if handed.any || wrapped {
                    break;
                }
                wrapped = true;
            }
        }
        handed.add(self.finish_accepts(broadcast, accepting).await?);
        due.starved = handed.starved && !handed.any;
        Ok(handed.round(wrapped, now))
    }

    /// Returns how many recipients may be enqueued before more results are known, if a rate can halt the broadcast. `None` if it was halted
    /// just now.
    async fn halt_allowance(&self, broadcast: &Broadcast, step: usize, accepting: usize) -> Result<Option<i64>> {
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

    /// Returns the room on the connections, and how many more messages fit. Without rate limits, waits briefly for enough room.
    async fn room(&self, composer: &Composer<'_>, accepting: usize) -> (Option<Room>, usize) {
        let mut room = Room::of(composer, &self.inner.dispatch);
        for _ in 0..PAUSES {
            if room.left(accepting) >= MIN_STEP || !room.unpaced || self.inner.dispatch.accepting().is_none() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            room = Room::of(composer, &self.inner.dispatch);
        }
        let left = room.left(accepting);
        (Some(room), left)
    }

    /// Plans the messages of a chunk and starts to accept them.
    async fn enqueue_chunk(
        &self,
        composer: &Composer<'_>,
        room: Option<Room>,
        fence: i64,
        mut chunk: Vec<NewBroadcastContact>,
        budget: &mut Option<Budget>,
    ) -> Result<(ChunkResult, Vec<Accepting>)> {
        let (mut handed, broadcast) = (ChunkResult::default(), composer.broadcast);
        let (Some(now), Some(mut room)) = (self.inner.dispatch.accepting(), room) else { return Ok((handed, Vec::new())) };
        // A pause returned the recipient to the broadcast just before its message was erased.
        let erased: Vec<_> = chunk.extract_if(.., |contact| is_mark(&contact.recipient)).map(|contact| (contact.id, None)).collect();
        handed.any |= self.end_contacts(broadcast, &erased, now).await?;
        let mut clock = broadcast.body.quiet_hours.as_ref().map(|hours| QuietClock::new(hours, now));
        if let Some(clock) = &mut clock {
            chunk.retain(|contact| {
                let opens = clock.ask(&contact.recipient).err();
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
        let (mut accepts, mut failures) = (Vec::new(), Vec::new());
        for contact in chunk {
            tokio::task::consume_budget().await; // lets other tasks run
            let known = knowledge.of(composer, &contact.recipient, now);
            let mut planned = match self.plan_contact(composer, &contact, &known, now, true) {
                Ok(planned) => planned,
                Err(error) if error.code().status() < 500 => {
                    failures.push((contact.id, Some(failure(&error))));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let connection = planned.connection.id;
            if !room.has(connection) {
                handed.crowded = true;
                handed.passed += 1;
                continue;
            }
            if !self.pays(&mut left, composer, &mut planned.accept.message).await? {
                handed.starved = true;
                continue;
            }
            room.take(connection);
            planned.accept.broadcast_fence = fence;
            if let (Some(part), Some(clock)) = (&mut planned.accept.message.state.detail.broadcast, &mut clock) {
                part.quiet_hours = clock.ask(&contact.recipient).ok();
            }
            let core = Core::clone(self);
            accepts.push(tokio::spawn(async move { core.messages().accept(planned).await }));
        }
        handed.begun = accepts.len();
        *budget = Some(left);
        if !failures.is_empty() && !self.is_current(&composer.config).await? {
            // What another node has just changed may let them be sent to: the next round plans them again.
            failures.clear();
            handed.crowded = true;
        }
        handed.any |= self.end_contacts(broadcast, &failures, now).await?;
        Ok((handed, accepts))
    }

    /// Waits for all accepts, then evaluates their results: after an error, others may still have been stored.
    async fn finish_accepts(&self, broadcast: &Broadcast, accepting: Vec<Accepting>) -> Result<ChunkResult> {
        let mut handed = ChunkResult::default();
        let mut answers = Vec::with_capacity(accepting.len());
        for accept in accepting {
            answers.push(accept.await.map_err(Error::internal)?);
        }
        for answer in answers {
            match answer? {
                Accepted::New { .. } => handed.any = true,
                Accepted::Stale => self.forget_config(broadcast.tenant),
                Accepted::Closed => (handed.crowded, handed.closed) = (true, true),
                Accepted::Duplicate { .. } => handed.crowded = true,
                // The recipients stay pending and are retried.
                Accepted::Short(_) | Accepted::Full { .. } => handed.starved = true,
            }
        }
        Ok(handed)
    }

    /// Ends recipients without a message, in short transactions: as failed, or without a failure as skipped. Returns whether any was still
    /// pending.
    async fn end_contacts(&self, broadcast: &Broadcast, ended: &[(BroadcastContactId, Option<Failure>)], now: Timestamp) -> Result<bool> {
        let mut any = false;
        for ended in ended.chunks(ENDED) {
            let mut tx = self.inner.store.begin().await?;
            any |= tx.end_broadcast_contacts(broadcast.tenant, broadcast.id, ended, now).await? > 0;
            tx.commit().await?;
        }
        Ok(any)
    }
}

/// Maps the error of a message to the failure of its recipient.
fn failure(error: &Error) -> Failure {
    let (code, message) = match error.code() {
        ErrorCode::WhatsappWindowClosed | ErrorCode::WindowClosed => (FailureCode::WindowClosed, error.message()),
        ErrorCode::SenderNotConfigured => (FailureCode::Undeliverable, error.message()),
        // A country that the sender may not write to, or no recipient of the channel.
        _ if error.is_about("to") => (FailureCode::InvalidRecipient, error.message_without("to")),
        _ => (FailureCode::ContentRejected, error.message()),
    };
    Failure::own(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    // holds: broadcasts.recipients.wait_apart
    #[test]
    fn a_round_that_passes_over_nearly_all_is_not_repeated_at_once() {
        let now = Timestamp::from_millis(1);
        let round =
            |begun, passed| ChunkResult { any: begun > 0, crowded: passed > 0, begun, passed, ..ChunkResult::default() }.round(false, now);
        assert_eq!(round(1, 4_999), Round::Crowded);
        assert_eq!(round(0, 5_000), Round::Crowded);
        assert_eq!(round(500, 4_500), Round::More, "others can be sent");
        assert_eq!(round(0, 0), Round::More, "of other kinds, which cost no plan");
    }
}
