//! Dispatches messages: permits for those that can start at once, hints for those that wait.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nuncio_channel::{Adapter, Receipts};
use nuncio_domain::message::NodeId;
use nuncio_domain::{TenantId, Timestamp, config::Connection, health::Health};

use crate::Shared;
use crate::hint::Hint;
use crate::lane::{Hinted, Slot};

/// The right to run one attempt now. Released when dropped.
pub struct Permit {
    pub(crate) slot: Slot,
    pub(crate) shared: Arc<Shared>,
}

impl Permit {
    /// Returns the node that owns the attempt.
    pub fn node(&self) -> NodeId {
        self.shared.node()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("connection", &self.slot.lane.connection).finish_non_exhaustive()
    }
}

impl Shared {
    /// Returns a permit for the attempt of a new message by `connection`, if one is free and no other message waits for it. A bulk message
    /// waits for one (100 ms) if no other message waits: stored with its attempt started, it needs no second write to start it.
    pub async fn permit(self: &Arc<Self>, hint: &Hint, connection: &Connection) -> Option<Permit> {
        if !hint.bulk {
            return self.reserve(hint, connection);
        }
        let lane = self.lane_of(hint.tenant, connection);
        let end = tokio::time::Instant::now() + self.config.bulk_wait;
        loop {
            let mut released = pin!(lane.released.notified());
            // From here on: several slots may be released before it is awaited, each for another message.
            released.as_mut().enable();
            if let Some(permit) = self.reserve(hint, connection) {
                return Some(permit);
            }
            if hint.bytes > 0 || self.is_stopping() || !lane.serves_bulk_next(self.ids.clock.monotonic()) {
                return None;
            }
            tokio::time::timeout_at(end, released).await.ok()?;
        }
    }

    /// Returns a permit if one is free now, no message waits for it, and there is memory for a large request. Some permits are not available
    /// to bulk messages.
    pub fn reserve(self: &Arc<Self>, hint: &Hint, connection: &Connection) -> Option<Permit> {
        if self.is_stopping() {
            return None;
        }
        let lane = self.lane_of(hint.tenant, connection);
        let is_large = hint.bytes > 0;
        let memory = if is_large { Some(self.memory.for_request_now(hint.tenant, hint.bytes)?) } else { None };
        let mut slot = lane.reserve(self.ids.clock.monotonic(), hint.bulk, is_large)?;
        slot.memory = memory;
        slot.accepting = Some(self.in_flight.accept());
        Some(Permit { slot, shared: Arc::clone(self) })
    }

    /// Returns whether a message that gets no permit now could wait for one at `connection`. If not, the scanner has to find it.
    pub fn has_room(self: &Arc<Self>, hint: &Hint, connection: &Connection) -> bool {
        self.lane_of(hint.tenant, connection).has_room(hint.bulk, hint.bytes > 0)
    }

    /// Returns how many more bulk messages can wait for `connection`; 0 while it is backing off.
    pub fn bulk_room(self: &Arc<Self>, tenant: TenantId, connection: &Connection) -> usize {
        if self.is_stopping() {
            return 0;
        }
        self.lane_of(tenant, connection).bulk_room(self.ids.clock.monotonic())
    }

    /// Returns whether the provider of `connection` sends receipts.
    pub fn has_receipts(self: &Arc<Self>, tenant: TenantId, connection: &Connection) -> bool {
        self.lane_of(tenant, connection).receipts() != Receipts::Never
    }

    /// Returns the adapter of a connection, the one that also sends; or the errors of its settings.
    pub fn adapter(self: &Arc<Self>, tenant: TenantId, connection: &Connection) -> Result<Arc<dyn Adapter>, String> {
        self.lane_of(tenant, connection).adapter.clone()
    }

    /// Records the result of an account check in the health of the connection.
    pub fn checked(self: &Arc<Self>, tenant: TenantId, connection: &Connection, result: &Result<String, String>) {
        self.lane_of(tenant, connection).checked(self, result);
    }

    /// Returns the health of a connection as observed by this node.
    pub fn health(&self, connection: &Connection) -> Health {
        let lane = self.lanes.read().get(&connection.id).cloned();
        let lane = lane.filter(|lane| lane.opened_from >= connection.updated_at);
        lane.map_or_else(Health::default, |lane| lane.health(self.ids.clock.monotonic()))
    }

    /// Returns the wall time, or `None` while this node must not accept messages: its clock is off, its heartbeat failed, or it is
    /// stopping.
    pub fn accepting(&self) -> Option<Timestamp> {
        self.is_fit().then(|| self.ids.clock.now())
    }

    /// Returns whether [`Self::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Returns whether this node can take on work.
    pub(crate) fn is_fit(&self) -> bool {
        !self.is_stopping() && self.fitness.is_fit(self.ids.clock.monotonic())
    }

    /// Adds a hint. Hints can be lost: the scanner finds the message when it is due.
    pub fn add_hint(&self, hint: Hint) {
        self.logs.grown(hint.tenant);
        let lane = self.lanes.read().get(&hint.connection).cloned();
        if let Some(lane) = lane
            && lane.hint(hint) != Hinted::Refused
        {
            lane.pump();
        }
    }
}
