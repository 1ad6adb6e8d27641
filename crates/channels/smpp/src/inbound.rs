//! Stores what SMSCs deliver: receipts and inbound messages. Each is responded to when it is stored.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Account, Inbound, InboundPart, Origin, ProviderEvent, Services, Unrecorded};
use nuncio_domain::{LogLimit, Timestamp};
use parking_lot::Mutex;

use crate::receipt::{self, IdFormat};
use crate::recent::Recent;
use crate::session::{Inbox, Respond, Session, Taking};
use crate::turns::Turns;
use crate::wire::{DeliverSm, Sar};
use crate::{address, parts, status};

/// Takes deliveries of all sessions of an account.
pub(crate) struct EventInbox {
    services: Services,
    origin: Origin,
    ids: IdFormat,
    patience: Duration,
    recent: Mutex<Recent>,
    turns: Turns,
    /// Of receipts that are rejected or have an unknown state: an SMSC may send no others.
    log: LogLimit,
}

impl fmt::Debug for EventInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventInbox").field("connection", &self.origin.connection).finish_non_exhaustive()
    }
}

impl EventInbox {
    /// An inbox for `account`. Parts of messages wait for the others for `patience`.
    pub(crate) fn new(account: &Account, services: &Services, ids: IdFormat, patience: Duration) -> Self {
        Self {
            services: services.clone(),
            origin: Origin::of(account),
            ids,
            patience,
            recent: Mutex::default(),
            turns: Turns::default(),
            log: LogLimit::default(),
        }
    }

    async fn receipt(&self, delivery: &DeliverSm) -> u32 {
        let text = parts::read_receipt(delivery.data_coding, delivery.body().1);
        // A receipt that cannot be read now cannot be read later either.
        let Some(found) = receipt::read(delivery, &text) else {
            if let Some(suppressed) = self.log.line("", self.services.ids.clock.monotonic()) {
                tracing::warn!(connection = %self.origin.connection, suppressed, "rejected a receipt without an ID or a state");
            }
            return status::NEVER;
        };
        if let Some(state) = &found.unlisted
            && let Some(suppressed) = self.log.line(state, self.services.ids.clock.monotonic())
        {
            tracing::warn!(connection = %self.origin.connection, id = ?found.id, ?state, suppressed, "took a receipt with an unknown state for sent");
        }
        let target = self.origin.reference(self.ids.of_receipt(&found.id));
        // Its dates are in the SMSC's local time, which is unknown.
        let at = self.services.ids.clock.now();
        answer(self.services.events.record(ProviderEvent::Receipt { target, kind: found.kind, at, raw: found.raw }).await)
    }

    /// A message of a person, or a segment of one, that arrived at `at`.
    async fn text(&self, session: &Arc<Session>, delivery: &DeliverSm, at: Timestamp, respond: Respond) {
        let (marked, body) = delivery.body();
        let part = marked.or(delivery.sar).filter(|sar| sar.total > 1 && (1..=sar.total).contains(&sar.sequence));
        match part {
            Some(sar) => drop(respond(self.part(delivery, sar, body, at).await)),
            None => self.whole(session, delivery, body, at, respond).await,
        }
    }

    /// A message in one piece.
    async fn whole(&self, session: &Arc<Session>, delivery: &DeliverSm, body: &[u8], at: Timestamp, respond: Respond) {
        let mut hasher = DefaultHasher::new();
        (&delivery.source.text, &delivery.destination.text, delivery.data_coding, &delivery.octets).hash(&mut hasher);
        let (key, now) = (hasher.finish(), self.services.ids.clock.monotonic());
        let id = self.recent.lock().admit(key, session, now, || self.fresh_id());
        let recorded = self.record(id.clone(), delivery, parts::read(delivery.data_coding, body), at).await;
        let taken = recorded.is_ok();
        // Locked before the response is sent: an SMSC may deliver again at once.
        let mut recent = self.recent.lock();
        recent.responded(key, &id, taken, respond(answer(recorded)));
    }

    /// One segment of a message.
    async fn part(&self, delivery: &DeliverSm, sar: Sar, body: &[u8], at: Timestamp) -> u32 {
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
            at,
        };
        answer(self.services.events.record(ProviderEvent::Part(Box::new(part))).await)
    }

    async fn record(&self, id: String, delivery: &DeliverSm, text: String, at: Timestamp) -> Result<(), Unrecorded> {
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

impl Inbox for EventInbox {
    fn take(self: Arc<Self>, session: &Arc<Session>, delivery: DeliverSm, respond: Respond) -> Taking {
        if receipt::is_receipt(&delivery) {
            return Box::pin(async move {
                respond(self.receipt(&delivery).await);
            });
        }
        let (at, turn) = (self.services.ids.clock.now(), self.turns.take(&delivery.source.text));
        let session = Arc::clone(session);
        Box::pin(async move {
            let _turn = turn.come().await;
            self.text(&session, &delivery, at, respond).await;
        })
    }
}

fn written_to(delivery: &DeliverSm) -> Option<String> {
    Some(address::incoming(&delivery.destination)).filter(|to| !to.is_empty())
}

fn answer(recorded: Result<(), Unrecorded>) -> u32 {
    if recorded.is_ok() { status::OK } else { status::NOT_NOW }
}
