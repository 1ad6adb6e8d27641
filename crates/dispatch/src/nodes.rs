//! Tracks which nodes are alive, and recovers the messages of dead ones.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::join_all;
use nuncio_domain::message::{HeldReason, NodeId};
use nuncio_domain::{MessageId, TenantId, Timestamp, lifecycle::Step, limits};
use nuncio_store::{DueMessage, Node, Result, StoreError, Transition};
use parking_lot::Mutex;

use crate::{Shared, retry};

/// Interval of heartbeats.
const BEAT: Duration = Duration::from_secs(1);
/// How long a heartbeat may take, with the comparison of clocks.
const BEAT_TIME: Duration = Duration::from_secs(10);
/// A node without a successful heartbeat for this long starts nothing.
const MAX_SILENCE: Duration = Duration::from_secs(5);
/// A node whose heartbeat others saw unchanged for this long is dead.
const DEAD: Duration = Duration::from_secs(10);
/// A pause between heartbeats of this node from which on the silence of others says nothing: the database may have been away from all.
const GAP: Duration = Duration::from_secs(3);
/// Interval of clock comparisons, and the maximum difference.
const COMPARE: Duration = Duration::from_secs(10);
const MAX_CLOCK_OFFSET: Duration = Duration::from_secs(60);
/// A database unused for this long may be a restored copy.
const STALE: Duration = Duration::from_secs(3_600);
/// How long a message that failed to be processed is skipped.
const SKIP_TIME: Duration = Duration::from_secs(60);
/// Messages per page.
const PAGE: u32 = 500;
/// Shards of the installation.
pub(crate) const SHARDS: i16 = 64;

/// Messages that are processed together.
#[derive(Clone, Copy, Debug)]
enum Selection {
    OwnedBy(NodeId),
    /// Waiting for an attempt, in a shard.
    WaitingIn(i16),
}

/// Whether this node may start work.
#[derive(Debug, Default)]
pub(crate) struct Fitness(Mutex<Pulse>);

#[derive(Debug, Default)]
struct Pulse {
    /// When the last stored heartbeat began, on the monotonic clock, like all times here.
    beat_at: Option<Duration>,
    /// Since when heartbeats have been stored without a gap.
    steady_since: Duration,
    compared_at: Option<Duration>,
    clock_off: bool,
    /// Wall time of the last stored heartbeat.
    beat_wall: Option<Timestamp>,
    /// Wall times between which the last long pause was.
    pause: Option<(Timestamp, Timestamp)>,
}

impl Pulse {
    /// Returns the last pause of more than [`PAST_DUE`](limits::PAST_DUE): the host was suspended, or the database away.
    fn pause(&self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let current = self.beat_wall.filter(|last| now.since(*last) > limits::PAST_DUE).map(|last| (last, now));
        current.or(self.pause)
    }
}

/// The last heartbeat seen of another node, and when it was seen first, on this node's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    beat: i64,
    since: Duration,
}

impl Fitness {
    /// Returns whether this node's last heartbeat is recent and its clock is right.
    pub(crate) fn is_fit(&self, now: Duration) -> bool {
        let pulse = self.0.lock();
        !pulse.clock_off && pulse.beat_at.is_some_and(|at| now.saturating_sub(at) < MAX_SILENCE)
    }

    /// Returns why the node is unfit; `None` if it is fit, or has not been started.
    fn trouble(&self, now: Duration) -> Option<&'static str> {
        let pulse = self.0.lock();
        if pulse.clock_off {
            return Some("its clock differs from the database's by more than a minute");
        }
        let is_silent = pulse.beat_at.is_some_and(|at| now.saturating_sub(at) >= MAX_SILENCE);
        is_silent.then_some("the database, or the disk under it, has taken no heartbeat for 5 seconds or more; the log says why")
    }

    /// Notes a heartbeat that began at `began` and is stored at `now`, `wall` by the wall clock.
    fn beaten(&self, began: Duration, now: Duration, wall: Timestamp) {
        let mut pulse = self.0.lock();
        (pulse.pause, pulse.beat_wall) = (pulse.pause(wall), Some(wall));
        if pulse.beat_at.is_none_or(|last| now.saturating_sub(last) >= GAP) {
            pulse.steady_since = now;
        }
        pulse.beat_at = Some(began);
    }

    /// Returns since when this node has stored its heartbeats without a gap; `now` during one.
    fn steady_since(&self, now: Duration) -> Duration {
        let pulse = self.0.lock();
        let is_steady = pulse.beat_at.is_some_and(|at| now.saturating_sub(at) < GAP);
        if is_steady { pulse.steady_since } else { now }
    }
}

impl Shared {
    /// Registers the node. With SQLite, recovers all earlier nodes. If the database was not used for an hour, it may be a copy whose messages
    /// were sent meanwhile: all unfinished messages are held for a person.
    pub async fn start(self: &Arc<Self>) -> Result<()> {
        let mut tx = self.store.read().await?;
        let nodes = tx.list_nodes().await?;
        let theirs = if self.config.compare_clocks { Some(tx.database_time().await?) } else { None };
        drop(tx);
        // Before the first heartbeat, which would make a node with a wrong clock fit.
        if let Some(theirs) = theirs {
            self.judge_clock(theirs);
        }
        let now = self.ids.clock.now();
        // This node's clock may still be hours ahead of the others', as before the first response of a time server.
        let today = theirs.unwrap_or(now);
        let last_used = nodes.iter().map(|n| n.beat_at).max();
        // Before the first heartbeat: if this start fails half-way, the next one must still see how old the database is.
        if last_used.is_some_and(|at| today.since(at) > STALE) {
            self.hold_all().await?;
        }
        self.register(now).await?;
        self.receipt_recovery.begin();
        let since = self.ids.clock.monotonic();
        for node in nodes {
            if self.config.sole {
                self.recover_node(node).await?;
            } else {
                // Known from the start, so that messages of live nodes are not mistaken for ones without an owner.
                self.peers.lock().insert(node.id, Sighting { beat: node.beat, since });
            }
        }
        Ok(())
    }

    async fn register(&self, now: Timestamp) -> Result<()> {
        let id = NodeId((self.ids.entropy.below(u64::MAX >> 1) | 1) as i64);
        let mut tx = self.store.begin().await?;
        tx.insert_node(id, now).await?;
        tx.commit().await?;
        self.node.store(id.0, Ordering::Release);
        let monotonic = self.ids.clock.monotonic();
        self.fitness.beaten(monotonic, monotonic, now);
        Ok(())
    }

    /// Signs off, so that other nodes need not wait for a timeout. No heartbeat or registration follows.
    pub(crate) async fn sign_off(&self) -> Result<()> {
        let mut left = self.left.lock().await;
        *left = true;
        let node = self.node();
        let nodes = self.store.read().await?.list_nodes().await?;
        let Some(me) = nodes.into_iter().find(|n| n.id == node) else { return Ok(()) };
        let mut tx = self.store.begin().await?;
        tx.mark_dead(me.id, me.beat).await?;
        tx.commit().await
    }

    /// Sends a heartbeat if one is due.
    pub(crate) async fn show_life(&self) -> Result<()> {
        // Held to the end: a heartbeat during sign-off would register the node again.
        let left = self.left.lock().await;
        let now = self.ids.clock.monotonic();
        if *left || self.fitness.0.lock().beat_at.is_some_and(|at| now.saturating_sub(at) < BEAT) {
            return Ok(());
        }
        let beat = self.beat(now);
        if self.config.sole {
            return beat.await; // a file does not vanish, and the outcome of a sync must be seen
        }
        // A server that vanished closes no connection: the heartbeat could wait for it for hours after another has taken its place. If it
        // was written after all, the next one follows it; a registration that was becomes a node that is found dead.
        tokio::time::timeout(BEAT_TIME, beat)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the database does not answer the heartbeat".to_owned())))
    }

    /// Writes a heartbeat, and compares clocks at intervals.
    async fn beat(&self, now: Duration) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let alive = tx.beat(self.node(), self.ids.clock.now()).await?;
        tx.commit().await?;
        if !alive && self.is_stopping() {
            // A stopping node starts nothing more; results of its attempts are recorded without its row.
            return Ok(());
        }
        if !alive {
            // Other nodes declared this one dead and recovered its messages. Results are still recorded; new attempts need a new id.
            tracing::error!("node was declared dead, perhaps after a long pause; registering again");
            // The pause may have put the clock wrong.
            self.fitness.0.lock().compared_at = None;
            self.compare_clocks(now).await?;
            return self.register(self.ids.clock.now()).await;
        }
        // First: the heartbeat makes a node fit whose clock was right when it was last compared.
        self.compare_clocks(now).await?;
        self.fitness.beaten(now, self.ids.clock.monotonic(), self.ids.clock.now());
        Ok(())
    }

    async fn compare_clocks(&self, now: Duration) -> Result<()> {
        let due = self.fitness.0.lock().compared_at.is_none_or(|at| now.saturating_sub(at) >= COMPARE);
        if !self.config.compare_clocks || !due {
            return Ok(());
        }
        let theirs = self.store.read().await?.database_time().await?;
        self.judge_clock(theirs);
        Ok(())
    }

    /// Compares this node's clock with the database's, read just now.
    fn judge_clock(&self, theirs: Timestamp) {
        let ours = self.ids.clock.now();
        let off = theirs.since(ours).max(ours.since(theirs)) > MAX_CLOCK_OFFSET;
        if off {
            tracing::error!(ours = %ours, theirs = %theirs, "clock differs from the database's by more than a minute; rejecting messages until it is corrected");
        }
        let mut pulse = self.fitness.0.lock();
        (pulse.compared_at, pulse.clock_off) = (Some(self.ids.clock.monotonic()), off);
    }

    /// Declares silent nodes dead and recovers their messages; returns whether there were any. Silence counts only while this node stores its
    /// own heartbeats: after an outage of the database, live nodes have been as silent as dead ones.
    pub(crate) async fn recover_dead(self: &Arc<Self>) -> Result<bool> {
        if self.config.sole {
            return Ok(false);
        }
        let now = self.ids.clock.monotonic();
        let steady_since = self.fitness.steady_since(now);
        let nodes = self.store.read().await?.list_nodes().await?;
        // A peer that is left here would keep its shards. Another node may have recovered it and deleted its row; or it is this node, which
        // registered again while an earlier round ran.
        self.peers.lock().retain(|id, _| *id != self.node() && nodes.iter().any(|node| node.id == *id));
        let mut any = false;
        for node in nodes.into_iter().filter(|n| n.id != self.node()) {
            let silent_since = {
                let mut peers = self.peers.lock();
                let sighting = peers.entry(node.id).or_insert(Sighting { beat: node.beat, since: now });
                if sighting.beat != node.beat {
                    *sighting = Sighting { beat: node.beat, since: now };
                }
                sighting.since
            };
            let is_dead = node.dead || now.saturating_sub(silent_since.max(steady_since)) >= DEAD;
            // By a wrong clock, recovered messages could be past their validity.
            if is_dead && self.is_fit() {
                self.recover_node(node).await?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Declares a node dead and recovers its messages.
    async fn recover_node(self: &Arc<Self>, node: Node) -> Result<()> {
        if !node.dead {
            let mut tx = self.store.begin().await?;
            let dead = tx.mark_dead(node.id, node.beat).await?;
            tx.commit().await?;
            if !dead {
                return Ok(()); // it is alive
            }
            tracing::warn!(node = node.id.0, "a node ended without unregistering; taking over its messages");
        }
        self.step_selection(Selection::OwnedBy(node.id), || self.recovery(node.id)).await?;
        self.peers.lock().remove(&node.id);
        self.receipt_recovery.begin();
        let mut tx = self.store.begin().await?;
        tx.delete_node(node.id).await?;
        tx.commit().await
    }

    /// Recovers messages that this node owns but is not processing, and messages of unknown owners: a node that was paused may have started
    /// attempts after others deleted its row.
    pub(crate) async fn recover_forgotten(&self) -> Result<()> {
        if !self.is_fit() {
            return Ok(());
        }
        let me = self.node();
        let mut tx = self.store.read().await?;
        let owned = tx.messages_owned_by(me, PAGE + self.in_flight.attempts() as u32).await?;
        // In this order: a node is registered before it owns anything.
        let owners = tx.owners().await?;
        let nodes = tx.list_nodes().await?;
        drop(tx);
        // A step by another node can leave a row of this owner that no node counts.
        self.delete_stale(&owned.stale).await?;
        let forgotten = self.in_flight.forgotten(owned.messages);
        for taken in join_all(forgotten.iter().map(|message| self.step(message, self.recovery(me)))).await {
            if taken? {
                tracing::warn!(node = me.0, "found a message that this node owns and does not process; recovered it");
            }
        }
        for owner in owners.into_iter().filter(|owner| nodes.iter().all(|node| node.id != *owner)) {
            self.step_selection(Selection::OwnedBy(owner), || self.recovery(owner)).await?;
        }
        Ok(())
    }

    /// Returns the step that starts a message by this node.
    pub(crate) fn start_step(&self, fence: i64) -> Step {
        let pause = self.fitness.0.lock().pause(self.ids.clock.now());
        Step::Start { node: self.node(), fence, suppressed: false, pause }
    }

    fn recovery(&self, node: NodeId) -> Step {
        Step::Recover { node, retry_in: retry::after(0, None, &*self.ids.entropy) }
    }

    /// Holds all messages that wait for an attempt, were being sent, or would fall back if no receipt came.
    async fn hold_all(&self) -> Result<()> {
        let hold = || Step::Hold { reason: HeldReason::StaleDatabase };
        let mut held = 0;
        for owner in self.store.read().await?.owners().await? {
            held += self.step_selection(Selection::OwnedBy(owner), hold).await?;
        }
        for shard in 0..SHARDS {
            held += self.step_selection(Selection::WaitingIn(shard), hold).await?;
            let mut before = None;
            loop {
                let page = self.store.read().await?.messages_awaiting_receipts(shard, before).await?;
                let Some(page) = page else { break };
                let with_fallback = page.messages.iter().filter(|waiting| waiting.has_fallback);
                for outcome in join_all(with_fallback.map(|waiting| self.step(&waiting.message, hold()))).await {
                    held += u64::from(outcome?);
                }
                before = Some(page.next);
            }
        }
        if held > 0 {
            tracing::warn!(held, "database was last used more than an hour ago; held its unfinished messages (nuncio held list)");
        }
        Ok(())
    }

    /// Returns whether the clock of this node is wrong: what it writes or signs by it would be wrong, too.
    pub fn has_wrong_clock(&self) -> bool {
        self.fitness.0.lock().clock_off
    }

    /// Returns why this node accepts no messages although it runs; `None` if it accepts them.
    pub fn trouble(&self) -> Option<&'static str> {
        self.fitness.trouble(self.ids.clock.monotonic())
    }

    /// Returns whether a node is this one or may be alive elsewhere.
    pub fn is_alive(&self, node: NodeId) -> bool {
        node == self.node() || (!self.config.sole && self.peers.lock().contains_key(&node))
    }

    /// Returns the number of live nodes, including this one.
    pub(crate) fn live_nodes(&self) -> usize {
        self.peers.lock().len() + 1
    }

    /// Applies a step to every message of a batch, page by page; returns how many it changed. Skips messages that cannot be read.
    async fn step_selection(&self, selection: Selection, step: impl Fn() -> Step + Send + Sync) -> Result<u64> {
        let (mut left, mut done) = (HashSet::new(), 0);
        loop {
            left.extend(self.left_alone());
            let limit = PAGE + left.len() as u32;
            let mut tx = self.store.read().await?;
            let mut page = match selection {
                Selection::OwnedBy(node) => tx.messages_owned_by(node, limit).await?.messages,
                Selection::WaitingIn(shard) => tx.waiting_messages(shard, limit).await?,
            };
            drop(tx);
            page.retain(|message| !left.contains(&message.id));
            if page.is_empty() {
                return Ok(done);
            }
            // All in one commit.
            let steps = page.iter().map(|message| self.step(message, step()));
            for (message, outcome) in page.iter().zip(join_all(steps).await) {
                if outcome? {
                    done += 1;
                } else {
                    left.insert(message.id);
                }
            }
        }
    }

    /// Applies a step to a message; returns whether it took effect. A message that cannot be read is logged and skipped for a while, so
    /// that it does not block others.
    pub(crate) async fn step(&self, message: &DueMessage, step: Step) -> Result<bool> {
        let recovers = matches!(step, Step::Recover { .. });
        let transition = Transition::new(message.tenant, message.id, step, self.ids.clock.now());
        match self.store.transition(transition).await {
            Ok(found) => {
                if recovers {
                    self.count_unknown(&found);
                }
                self.count_step(message.tenant, &found);
                Ok(found.is_applied())
            }
            Err(error @ (StoreError::Busy(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_))) => Err(error),
            Err(error) => {
                self.skip_temporarily(message.id, &error);
                Ok(false)
            }
        }
    }

    pub(crate) fn skip_temporarily(&self, id: MessageId, error: &StoreError) {
        tracing::error!(message.id = %id, %error, "failed to process message; skipping it for 60 s");
        self.troubled.lock().insert(id, self.ids.clock.monotonic() + SKIP_TIME);
    }

    /// Returns the messages that recently failed to be processed.
    pub(crate) fn left_alone(&self) -> HashSet<MessageId> {
        let now = self.ids.clock.monotonic();
        let mut troubled = self.troubled.lock();
        troubled.retain(|_, until| now < *until);
        troubled.keys().copied().collect()
    }

    /// Returns the shards of this node, see [`is_in`]: each shard goes to the live node with the highest score for it (rendezvous hashing).
    pub fn shards(&self) -> Vec<i16> {
        let me = self.node();
        let others: Vec<NodeId> = self.peers.lock().keys().copied().collect();
        (0..SHARDS).filter(|shard| others.iter().all(|other| score(*other, *shard) < score(me, *shard))).collect()
    }
}

/// Returns whether a tenant is in one of these shards.
pub fn is_in(shards: &[i16], tenant: TenantId) -> bool {
    shards.contains(&(tenant.0.rem_euclid(i64::from(SHARDS)) as i16))
}

/// Mixes both values (finaliser of SplitMix64).
fn score(node: NodeId, shard: i16) -> u64 {
    let mut x = (node.0 as u64) ^ (shard as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
