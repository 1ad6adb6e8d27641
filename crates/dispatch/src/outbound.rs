//! What core asks of dispatch.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use nuncio_channel::{Adapter, Receipts};
use nuncio_core::{Health, Hint, Outbound, Permit};
use nuncio_domain::config::Connection;
use nuncio_domain::lifecycle::NodeId;
use nuncio_domain::message::Message;
use nuncio_domain::{ConnectionId, TenantId, Timestamp};

use crate::lane::Place;
use crate::{Dispatch, Shared};

impl Outbound for Dispatch {
    fn node(&self) -> NodeId {
        self.shared.node()
    }

    fn reserve(&self, tenant: TenantId, connection: &Connection, bulk: bool, bytes: usize) -> Option<Permit> {
        if self.shared.is_stopping() {
            return None;
        }
        let lane = self.shared.lane_of(tenant, connection);
        let memory = if bytes > 0 { Some(self.shared.memory.for_request_now(bytes)?) } else { None };
        let mut place = lane.reserve(self.shared.ids.clock.monotonic(), bulk, bytes > 0)?;
        place.memory = memory;
        place.accepting = Some(self.shared.under_way.accept());
        Some(Permit(Box::new(place)))
    }

    fn bulk_room(&self, tenant: TenantId, connection: &Connection) -> usize {
        if self.shared.is_stopping() {
            return 0;
        }
        self.shared.lane_of(tenant, connection).bulk_room(self.shared.ids.clock.monotonic())
    }

    fn has_receipts(&self, tenant: TenantId, connection: &Connection) -> bool {
        self.shared.lane_of(tenant, connection).receipts() != Receipts::Never
    }

    fn started(&self, permit: Permit, message: Box<Message>) {
        let Ok(place) = permit.0.downcast::<Place>() else { return };
        self.shared.webhooks.grown(message.tenant);
        self.shared.spawn_attempt(*place, message);
    }

    fn waiting(&self, hint: Hint) {
        self.shared.webhooks.grown(hint.tenant);
        let lane = self.shared.lanes.read().get(&hint.connection).cloned();
        if let Some(lane) = lane
            && lane.hint(hint)
        {
            lane.pump();
        }
    }

    fn removed(&self, connection: ConnectionId) {
        self.shared.close_lane(connection);
    }

    fn told(&self, tenant: TenantId) {
        self.shared.webhooks.told(tenant);
    }

    fn webhooks_changed(&self) {
        self.shared.webhooks.changed();
    }

    fn adapter(&self, tenant: TenantId, connection: &Connection) -> Result<Arc<dyn Adapter>, String> {
        self.shared.lane_of(tenant, connection).adapter.clone()
    }

    fn health(&self, connection: &Connection) -> Health {
        let lane = self.shared.lanes.read().get(&connection.id).cloned();
        let lane = lane.filter(|lane| lane.opened_from >= connection.updated_at);
        lane.map_or_else(Health::default, |lane| lane.health(self.shared.ids.clock.monotonic()))
    }

    fn accepting(&self) -> Option<Timestamp> {
        let fit = !self.shared.is_stopping() && self.shared.health.is_fit(self.shared.ids.clock.monotonic());
        fit.then(|| self.shared.ids.clock.now())
    }
}

impl Shared {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Starts the attempt of a message that waited, on the place that came free.
    pub(crate) fn begin(self: &Arc<Self>, place: Place, hint: Hint) {
        let (shared, working) = (Arc::clone(self), (self.tracker.begin(), self.under_way.attempt(hint.id)));
        self.runtime.spawn(async move {
            let _working = working;
            shared.start_and_run(place, hint).await;
        });
    }

    /// Makes the attempt of a message that was born started.
    pub(crate) fn spawn_attempt(self: &Arc<Self>, mut place: Place, message: Box<Message>) {
        let (shared, working) = (Arc::clone(self), (self.tracker.begin(), self.under_way.attempt(message.id)));
        place.accepting = None;
        self.runtime.spawn(async move {
            let _working = working;
            shared.run_attempt(place, message).await;
        });
    }
}
