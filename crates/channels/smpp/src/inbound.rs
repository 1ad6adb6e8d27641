//! Stores what SMSCs deliver: receipts and inbound messages. Each is responded to when it is stored.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{Account, Inbound, InboundPart, Origin, ProviderEvent, Services, Unrecorded};
use parking_lot::Mutex;

use crate::receipt::{self, IdFormat};
use crate::recent::Recent;
use crate::session::{Inbox, Respond, Session};
use crate::wire::{DeliverSm, Sar};
use crate::{address, parts, status};

/// Takes deliveries of all sessions of an account.
pub(crate) struct EventInbox {
    services: Services,
    origin: Origin,
    ids: IdFormat,
    patience: Duration,
    recent: Mutex<Recent>,
}

impl fmt::Debug for EventInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventInbox").field("connection", &self.origin.connection).finish_non_exhaustive()
    }
}

impl EventInbox {
    /// An inbox for `account`. Parts of messages wait for the others for `patience`.
    pub(crate) fn new(account: &Account, services: &Services, ids: IdFormat, patience: Duration) -> Self {
        Self { services: services.clone(), origin: Origin::of(account), ids, patience, recent: Mutex::default() }
    }

    async fn receipt(&self, delivery: &DeliverSm) -> u32 {
        let text = parts::read_receipt(delivery.data_coding, delivery.body().1);
        // A receipt that cannot be read now cannot be read later either.
        let Some(found) = receipt::read(delivery, &text) else { return status::NEVER };
        let target = self.origin.reference(self.ids.of_receipt(&found.id));
        // Its dates are in the SMSC's local time, which is unknown.
        let at = self.services.ids.clock.now();
        answer(self.services.events.record(ProviderEvent::Receipt { target, kind: found.kind, at, raw: found.raw }).await)
    }

    /// A message in one piece.
    async fn whole(&self, session: &Arc<Session>, delivery: &DeliverSm, body: &[u8], respond: Respond) {
        let mut hasher = DefaultHasher::new();
        (&delivery.source.text, &delivery.destination.text, delivery.data_coding, &delivery.octets).hash(&mut hasher);
        let (key, now) = (hasher.finish(), self.services.ids.clock.monotonic());
        let id = self.recent.lock().admit(key, session, now, || self.fresh_id());
        let recorded = self.record(id.clone(), delivery, parts::read(delivery.data_coding, body)).await;
        let taken = recorded.is_ok();
        // Locked before the response is sent: an SMSC may deliver again at once.
        let mut recent = self.recent.lock();
        recent.responded(key, &id, taken, respond(answer(recorded)));
    }

    /// One segment of a message.
    async fn part(&self, delivery: &DeliverSm, sar: Sar, body: &[u8]) -> u32 {
        let Origin { tenant, connection, channel } = self.origin;
        let part = InboundPart {
            tenant,
            connection,
            channel,
            from: address::incoming(&delivery.source),
            to: written_to(delivery),
            key: format!("{} {} {} {}", delivery.source.text, delivery.destination.text, sar.reference, sar.total),
            sequence: sar.sequence,
            total: sar.total,
            alphabet: parts::alphabet(delivery.data_coding),
            octets: body.to_vec(),
            patience: self.patience,
            at: self.services.ids.clock.now(),
        };
        answer(self.services.events.record(ProviderEvent::Part(Box::new(part))).await)
    }

    async fn record(&self, id: String, delivery: &DeliverSm, text: String) -> Result<(), Unrecorded> {
        let at = self.services.ids.clock.now();
        let from = address::incoming(&delivery.source);
        let inbound = Inbound::text(self.origin, id, from, text, at);
        let inbound = Inbound { to: written_to(delivery), ..inbound };
        self.services.events.record(ProviderEvent::Inbound(inbound)).await
    }

    /// A new id: deliveries have none.
    fn fresh_id(&self) -> String {
        let mut random = [0; 16];
        self.services.ids.entropy.fill(&mut random);
        hex::encode(random)
    }
}

#[async_trait]
impl Inbox for EventInbox {
    async fn take(&self, session: &Arc<Session>, delivery: DeliverSm, respond: Respond) {
        if receipt::is_receipt(&delivery) {
            respond(self.receipt(&delivery).await);
            return;
        }
        let (marked, body) = delivery.body();
        let part = marked.or(delivery.sar).filter(|sar| sar.total > 1 && (1..=sar.total).contains(&sar.sequence));
        match part {
            Some(sar) => drop(respond(self.part(&delivery, sar, body).await)),
            None => self.whole(session, &delivery, body, respond).await,
        }
    }
}

fn written_to(delivery: &DeliverSm) -> Option<String> {
    Some(address::incoming(&delivery.destination)).filter(|to| !to.is_empty())
}

fn answer(recorded: Result<(), Unrecorded>) -> u32 {
    if recorded.is_ok() { status::OK } else { status::NOT_NOW }
}
