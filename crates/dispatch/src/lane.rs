//! The lane of a connection: its adapter, its window, and the messages waiting for a slot.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use nuncio_channel::{Account, Adapter, Receipts};
use nuncio_domain::config::{Connection, Throttle};
use nuncio_domain::{ConnectionId, MessageId, TenantId, Timestamp};
use nuncio_secrets::Row;
use nuncio_store::StoreError;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::{Shared, hint::Hint, in_flight::Accepting, memory::Held};

mod health;

/// A lane with more hints needs none from the scanner, which adds at most as many at a time.
pub(crate) const FED: usize = 4_000;

/// Bulk hints up to which broadcasts add more: just enough to keep the connection busy, since a pause withdraws them one by one. Retries and
/// the scanner may fill the queue up to twice this.
const BULK: usize = 512;
/// Of a throttled connection, instead: as many as it sends in this many seconds, from `BULK_LEAST` to `BULK`. Broadcasts enqueue twice a second.
const BULK_SECONDS: f64 = 2.0;
const BULK_LEAST: usize = 16;
/// Minimum pause before a throttled lane is checked again.
const MIN_PAUSE: Duration = Duration::from_millis(2);
/// How long a lane that could not be opened stays as it is.
const REOPEN: Duration = Duration::from_secs(60);
/// One part in this many of a window is unavailable to bulk messages, so that others find a slot at once.
const KEPT: usize = 8;

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) connection: ConnectionId,
    pub(crate) tenant: TenantId,
    pub(crate) opened_from: Timestamp,
    /// The adapter, or why the account cannot be used.
    pub(crate) adapter: Result<Arc<dyn Adapter>, String>,
    window: Arc<Semaphore>,
    /// Slots of the window.
    size: usize,
    /// Slots that bulk messages cannot use.
    kept: usize,
    /// Maximum number of hints of each kind that is not bulk.
    hints: usize,
    /// Rate limit over all nodes.
    throttle: Option<Throttle>,
    state: Mutex<LaneState>,
    /// Notified of each released slot.
    pub(crate) released: Notify,
    /// When it was opened, by the wall clock.
    opened_at: Timestamp,
    shared: Weak<Shared>,
}

/// The outcome of [`Lane::hint`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hinted {
    Added,
    Known,
    Refused,
}

#[derive(Debug, Default)]
struct LaneState {
    hints: VecDeque<Hint>,
    /// Hints of large messages, which take turns with the others.
    large: VecDeque<Hint>,
    large_turn: bool,
    /// Slots in use by large messages.
    large_slots: usize,
    /// Hints of bulk messages, which come last.
    bulk: VecDeque<Hint>,
    hinted: HashSet<MessageId>,
    /// Consecutive failures of the whole connection.
    failures: u32,
    /// Unknown outcomes since the last response.
    unanswered: u32,
    /// No attempt before this monotonic time.
    paused_until: Duration,
    /// Since when the whole connection has failed, and its last error.
    trouble: Option<(Timestamp, String)>,
    /// Replaced by another lane, or its connection was deleted.
    closed: bool,
    /// The provider refuses the account: nothing is sent until it accepts it.
    refused: bool,
    /// Limit on attempts in flight: the window, or less after the provider throttled.
    share: f64,
    /// After a pause, one attempt is tried before the others; its slot clears this.
    probing: bool,
    /// Attempts that can start now, and when that was computed, on the monotonic clock.
    tokens: f64,
    filled_at: Duration,
    /// Whether a timer is set for when the next attempt can start.
    has_timer: bool,
}

/// A slot of a lane's window. Dropping it admits the next message.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) lane: Arc<Lane>,
    permit: Option<OwnedSemaphorePermit>,
    /// Whether it counts as a slot for large messages.
    large: bool,
    /// Reserved memory.
    pub(crate) memory: Option<Held>,
    /// Whether the other messages wait for its result.
    probe: bool,
    /// Whether an attempt ran in it. If not, dropping it returns its token.
    pub(crate) used: bool,
    /// The accept that uses it, until that ends.
    pub(crate) accepting: Option<Accepting>,
}

impl LaneState {
    const fn queue_of(&mut self, hint: Hint) -> &mut VecDeque<Hint> {
        match hint {
            Hint { bulk: true, .. } => &mut self.bulk,
            Hint { bytes: 1.., .. } => &mut self.large,
            _ => &mut self.hints,
        }
    }

    /// Refills the tokens.
    fn fill(&mut self, share: NodeShare, now: Duration) {
        let elapsed = now.saturating_sub(self.filled_at).as_secs_f64();
        self.add_tokens(elapsed * share.rate, share);
        self.filled_at = now;
    }

    fn add_tokens(&mut self, tokens: f64, share: NodeShare) {
        self.tokens = (self.tokens + tokens).min(share.burst);
    }
}

/// A node's equal share of a throttle.
#[derive(Clone, Copy, Debug)]
struct NodeShare {
    /// Attempts per second.
    rate: f64,
    /// Attempts that can start at once after a rest; at least one, without which a node would never send.
    burst: f64,
}

impl NodeShare {
    fn of(throttle: Throttle, shared: &Shared) -> Self {
        let nodes = shared.live_nodes() as f64;
        Self { rate: throttle.messages_per_second / nodes, burst: (f64::from(throttle.burst) / nodes).max(1.0) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let unused = self.lane.node_share().filter(|_| !self.used);
        {
            let mut state = self.lane.state.lock();
            state.probing &= !self.probe;
            state.large_slots -= usize::from(self.large);
            if let Some(share) = unused {
                state.add_tokens(1.0, share);
            }
        }
        self.memory = None;
        self.permit = None;
        self.lane.pump();
        self.lane.released.notify_one();
    }
}

impl Lane {
    /// Opens the lane of `connection`. With an unusable account, the lane starts nothing.
    pub(crate) fn open(shared: &Arc<Shared>, tenant: TenantId, connection: &Connection) -> Arc<Self> {
        let adapter = shared.open_adapter(tenant, connection);
        if let Err(why) = &adapter {
            tracing::error!(connection = %connection.id, %why, "failed to open connection; its messages wait");
        }
        let window = adapter.as_ref().map_or(0, |a| a.capabilities().window);
        Arc::new(Self {
            connection: connection.id,
            tenant,
            opened_from: connection.updated_at,
            adapter,
            window: Arc::new(Semaphore::new(window)),
            size: window,
            kept: window / KEPT,
            hints: shared.config.hints,
            throttle: connection.throttle,
            // Starts full: a whole burst can be sent at once.
            state: Mutex::new(LaneState {
                tokens: connection.throttle.map_or(0.0, |throttle| NodeShare::of(throttle, shared).burst),
                share: window as f64,
                ..LaneState::default()
            }),
            released: Notify::new(),
            opened_at: shared.ids.clock.now(),
            shared: Arc::downgrade(shared),
        })
    }

    /// Returns whether it is the lane of the connection as loaded.
    fn is_of(&self, connection: &Connection, shared: &Shared) -> bool {
        self.opened_from >= connection.updated_at && !self.can_reopen(shared)
    }

    /// Returns whether it could not be opened some time ago. The reason may have passed: too many open files, or root certificates that were
    /// being replaced.
    fn can_reopen(&self, shared: &Shared) -> bool {
        self.adapter.is_err() && shared.ids.clock.now().since(self.opened_at) >= REOPEN
    }

    /// Returns a slot if one is free now and no message waits for it.
    pub(crate) fn reserve(self: &Arc<Self>, now: Duration, bulk: bool, large: bool) -> Option<Slot> {
        let mut state = self.state.lock();
        if !state.hints.is_empty() || (bulk && !state.bulk.is_empty()) || (large && !state.large.is_empty()) {
            return None;
        }
        self.slot(&mut state, now, bulk, large)
    }

    /// Returns whether a bulk message without a hint can get the next released slot: no message waits here, and attempts are neither throttled
    /// nor paused.
    pub(crate) fn serves_bulk_next(&self, now: Duration) -> bool {
        let state = self.state.lock();
        let is_idle = state.hints.is_empty() && state.large.is_empty() && state.bulk.is_empty();
        is_idle && !state.closed && state.failures == 0 && self.throttle.is_none() && !self.rests(&state, now)
    }

    /// Returns whether no attempt can start at `now`, even if the throttle permits one.
    pub(crate) fn is_resting(&self, now: Duration) -> bool {
        self.rests(&self.state.lock(), now)
    }

    /// Returns whether the connection as a whole fails: it rests, or one attempt tries whether it works again.
    pub(crate) fn is_failing(&self, now: Duration) -> bool {
        let state = self.state.lock();
        state.failures > 0 || self.rests(&state, now)
    }

    /// Returns whether the account cannot be used or is refused, or the lane backs off.
    fn rests(&self, state: &LaneState, now: Duration) -> bool {
        self.adapter.is_err() || state.refused || now < state.paused_until
    }

    /// Returns how many more bulk messages can wait here.
    pub(crate) fn bulk_room(&self, now: Duration) -> usize {
        let state = self.state.lock();
        if self.rests(&state, now) { 0 } else { self.most_bulk().saturating_sub(state.bulk.len()) }
    }

    fn most_bulk(&self) -> usize {
        let Some(share) = self.node_share() else { return BULK };
        ((share.rate * BULK_SECONDS).ceil() as usize).clamp(BULK_LEAST, BULK)
    }

    /// Returns this node's share of the throttle; `None` without a throttle, or if the node is gone.
    fn node_share(&self) -> Option<NodeShare> {
        Some(NodeShare::of(self.throttle?, &*self.shared.upgrade()?))
    }

    /// Returns how the provider reports delivery.
    pub(crate) fn receipts(&self) -> Receipts {
        self.adapter.as_ref().map_or(Receipts::Never, |adapter| adapter.capabilities().receipts)
    }

    /// Large messages can use half of the slots: they may wait for memory there, and must not block others.
    fn has_room_for_large(&self, state: &LaneState) -> bool {
        state.large_slots < (self.size / 2).max(1)
    }

    fn slot(self: &Arc<Self>, state: &mut LaneState, now: Duration, bulk: bool, large: bool) -> Option<Slot> {
        if large && !self.has_room_for_large(state) {
            return None;
        }
        let probe = state.failures > 0;
        let free = self.window.available_permits();
        if state.closed || state.refused || now < state.paused_until || (probe && state.probing) || (bulk && free <= self.kept) {
            return None;
        }
        if (self.size - free) as f64 >= state.share {
            return None;
        }
        let permit = Arc::clone(&self.window).try_acquire_owned().ok()?;
        if !self.take_token(state, now) {
            return None;
        }
        state.probing |= probe;
        state.large_slots += usize::from(large);
        Some(Slot { lane: Arc::clone(self), permit: Some(permit), large, memory: None, probe, used: false, accepting: None })
    }

    /// Returns whether the throttle permits an attempt now. If not, sets a timer.
    fn take_token(self: &Arc<Self>, state: &mut LaneState, now: Duration) -> bool {
        let Some(throttle) = self.throttle else { return true };
        let Some(shared) = self.shared.upgrade() else { return false };
        let share = NodeShare::of(throttle, &shared);
        state.fill(share, now);
        if state.tokens >= 1.0 {
            state.tokens -= 1.0;
            return true;
        }
        if !std::mem::replace(&mut state.has_timer, true) {
            let (lane, pause) = (Arc::downgrade(self), Duration::from_secs_f64((1.0 - state.tokens) / share.rate).max(MIN_PAUSE));
            shared.runtime.spawn(async move {
                tokio::time::sleep(pause).await;
                if let Some(lane) = lane.upgrade() {
                    lane.state.lock().has_timer = false;
                    lane.pump();
                }
            });
        }
        false
    }

    /// Returns whether a message could wait here.
    pub(crate) fn has_room(&self, bulk: bool, large: bool) -> bool {
        let state = self.state.lock();
        match (bulk, large) {
            (true, _) => state.bulk.len() < 2 * BULK,
            (_, true) => state.large.len() < self.hints,
            _ => state.hints.len() < self.hints,
        }
    }

    /// Adds a hint, unless there is no room or the message waits here already.
    pub(crate) fn hint(&self, hint: Hint) -> Hinted {
        let mut state = self.state.lock();
        let most = if hint.bulk { 2 * BULK } else { self.hints };
        if state.closed || state.queue_of(hint).len() >= most {
            return Hinted::Refused;
        }
        if !state.hinted.insert(hint.id) {
            return Hinted::Known;
        }
        state.queue_of(hint).push_back(hint);
        Hinted::Added
    }

    /// Starts as many waiting messages as there are slots.
    pub(crate) fn pump(self: &Arc<Self>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let now = shared.ids.clock.monotonic();
        loop {
            let (slot, hint) = {
                let mut state = self.state.lock();
                let Some(next) = self.next(&state) else { return };
                // Without a recent heartbeat this node may be declared dead: what it started now would have no owner.
                if shared.is_stopping() || !shared.fitness.is_fit(now) {
                    return;
                }
                let Some(slot) = self.slot(&mut state, now, next.bulk, next.bytes > 0) else { return };
                let Some(hint) = state.queue_of(next).pop_front() else { return };
                state.hinted.remove(&hint.id);
                state.large_turn = next.bytes == 0;
                (slot, hint)
            };
            shared.begin(slot, hint);
        }
    }

    /// Returns the message for the next slot: large messages take turns with others, and bulk comes last.
    fn next(&self, state: &LaneState) -> Option<Hint> {
        let room = self.has_room_for_large(state);
        let large = state.large.front().filter(|_| room);
        let (first, second) = if state.large_turn { (large, state.hints.front()) } else { (state.hints.front(), large) };
        first.or(second).or_else(|| state.bulk.front().filter(|hint| room || hint.bytes == 0)).copied()
    }

    /// Closes the lane; returns its hints.
    fn close(&self) -> Vec<Hint> {
        let mut state = self.state.lock();
        state.closed = true;
        state.hinted.clear();
        let LaneState { hints, large, bulk, .. } = &mut *state;
        hints.drain(..).chain(large.drain(..)).chain(bulk.drain(..)).collect()
    }

    /// Returns whether no attempt can start at `now`: the account cannot be used or is refused, the lane backs off, or its throttle is empty.
    pub(crate) fn is_blocked(&self, now: Duration) -> bool {
        let mut state = self.state.lock();
        self.rests(&state, now) || self.is_throttled(&mut state, now)
    }

    /// Returns whether the throttle permits no attempt at `now`.
    fn is_throttled(&self, state: &mut LaneState, now: Duration) -> bool {
        let Some(throttle) = self.throttle else { return false };
        let Some(shared) = self.shared.upgrade() else { return true };
        state.fill(NodeShare::of(throttle, &shared), now);
        state.tokens < 1.0
    }

    /// Returns whether the lane has enough hints.
    pub(crate) fn is_fed(&self) -> bool {
        let state = self.state.lock();
        state.hints.len() + state.large.len() > FED
    }
}

impl Shared {
    /// Opens an adapter for calls other than sending, or returns why it cannot be opened.
    pub fn open_adapter(&self, tenant: TenantId, connection: &Connection) -> Result<Arc<dyn Adapter>, String> {
        let opened = self.sealer.open(Row::Connection(tenant, connection.id), connection.sealed.expose());
        let secrets = opened.map_err(|error| format!("its secrets cannot be decrypted: {error}"))?;
        let account = Account::new(connection, tenant, secrets);
        self.registry
            .open(&connection.kind, &account, &self.services)
            .map_err(|faults| faults.iter().map(|f| format!("{}: {}", f.path, f.message)).collect::<Vec<_>>().join("; "))
    }

    /// Returns the lane of a loaded connection, reopened if the connection changed or could not be opened.
    pub(crate) fn lane_of(self: &Arc<Self>, tenant: TenantId, connection: &Connection) -> Arc<Lane> {
        if let Some(lane) = self.lanes.read().get(&connection.id)
            && lane.is_of(connection, self)
        {
            return Arc::clone(lane);
        }
        let mut lanes = self.lanes.write();
        if let Some(lane) = lanes.get(&connection.id)
            && lane.is_of(connection, self)
        {
            return Arc::clone(lane);
        }
        let lane = Lane::open(self, tenant, connection);
        if let Some(before) = lanes.insert(connection.id, Arc::clone(&lane)) {
            for hint in before.close() {
                let _ = lane.hint(hint);
            }
        }
        // The configuration it was opened from can be a second old.
        self.epochs.lock().remove(&tenant);
        lane
    }

    /// Closes the lane of a deleted connection. The scanner finds its messages.
    pub fn close_lane(&self, id: ConnectionId) {
        let lane = self.lanes.write().remove(&id);
        lane.iter().for_each(|lane| drop(lane.close()));
    }

    /// Returns the lane of a connection by id; `None` if it was deleted.
    pub(crate) async fn find_lane(self: &Arc<Self>, tenant: TenantId, id: ConnectionId) -> nuncio_store::Result<Option<Arc<Lane>>> {
        if let Some(lane) = self.lanes.read().get(&id) {
            return Ok(Some(Arc::clone(lane)));
        }
        let config = self.store.read().await?.load_tenant(tenant).await?;
        let connection = config.as_ref().and_then(|w| w.connections.iter().find(|c| c.id == id));
        Ok(connection.map(|c| self.lane_of(tenant, c)))
    }

    /// Reopens lanes whose connections changed or could not be opened, and closes those whose connections were deleted, by any node.
    pub(crate) async fn refresh_lanes(self: &Arc<Self>) -> nuncio_store::Result<()> {
        let tenants: BTreeSet<TenantId> = self.lanes.read().values().map(|lane| lane.tenant).collect();
        let broken: BTreeSet<TenantId> = self.lanes.read().values().filter(|lane| lane.can_reopen(self)).map(|lane| lane.tenant).collect();
        let tenants = Vec::from_iter(tenants);
        let epochs: HashMap<_, _> = self.store.read().await?.epochs(&tenants).await?.into_iter().collect();
        for tenant in tenants {
            let epoch = epochs.get(&tenant).copied();
            if epoch.is_some() && !broken.contains(&tenant) && self.epochs.lock().get(&tenant).copied() == epoch {
                continue;
            }
            let config = self.store.read().await?.load_tenant(tenant).await;
            self.epochs.lock().extend(epoch.map(|epoch| (tenant, epoch)));
            let config = match config {
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(tenant = tenant.0, %error, "failed to read an environment; keeping its connections unchanged");
                    continue;
                }
                config => config?,
            };
            let lanes: Vec<_> = self.lanes.read().values().filter(|lane| lane.tenant == tenant).map(|lane| lane.connection).collect();
            for id in lanes {
                match config.as_ref().and_then(|config| config.connections.iter().find(|c| c.id == id)) {
                    Some(connection) => drop(self.lane_of(tenant, connection)),
                    None => self.close_lane(id),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn pump_all(&self) {
        let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
        lanes.iter().for_each(Lane::pump);
    }
}
