//! What SMSCs deliver: receipts and messages from outside. Each is answered when it is on disk.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Account, Inbound, InboundPart, ProviderEvent, ReceiptTarget, Services, Unrecorded};
use nuncio_domain::{Channel, ConnectionId, TenantId};
use parking_lot::Mutex;

use crate::receipt::{self, IdFormat};
use crate::recent::Recent;
use crate::session::{Handed, Session};
use crate::wire::{Delivery, Sar};
use crate::{address, parts, status};

/// Takes deliveries of all sessions of an account.
pub(crate) struct Inbox {
    services: Services,
    tenant: TenantId,
    connection: ConnectionId,
    channel: Channel,
    ids: IdFormat,
    patience: Duration,
    recent: Mutex<Recent>,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl Inbox {
    /// An inbox for `account`. Parts of messages wait for the others for `patience`.
    pub(crate) fn new(account: &Account, services: &Services, ids: IdFormat, patience: Duration) -> Self {
        Self {
            services: services.clone(),
            tenant: account.tenant,
            connection: account.id,
            channel: account.channel,
            ids,
            patience,
            recent: Mutex::default(),
        }
    }

    /// Takes one delivery that came over `session`, and has `hand` answer it with a status.
    pub(crate) async fn take(&self, session: &Arc<Session>, delivery: Delivery, hand: impl FnOnce(u32) -> Option<Handed>) {
        if receipt::is_receipt(&delivery) {
            hand(self.receipt(&delivery).await);
            return;
        }
        let (marked, body) = delivery.body();
        let part = marked.or(delivery.sar).filter(|sar| sar.total > 1 && (1..=sar.total).contains(&sar.sequence));
        match part {
            Some(sar) => drop(hand(self.part(&delivery, sar, body).await)),
            None => self.whole(session, &delivery, body, hand).await,
        }
    }

    async fn receipt(&self, delivery: &Delivery) -> u32 {
        let text = parts::read(delivery.data_coding, delivery.body().1);
        // One that cannot be read will not be readable the next time.
        let Some(found) = receipt::read(delivery, &text) else { return status::NEVER };
        let target =
            ReceiptTarget::Reference { tenant: self.tenant, connection: self.connection, reference: self.ids.of_receipt(&found.id) };
        // Its dates are in the local time of an SMSC that does not say where it stands.
        let at = self.services.ids.clock.now();
        answer(self.services.events.record(ProviderEvent::Receipt { target, kind: found.kind, at, raw: found.raw }).await)
    }

    /// A message in one piece.
    async fn whole(&self, session: &Arc<Session>, delivery: &Delivery, body: &[u8], hand: impl FnOnce(u32) -> Option<Handed>) {
        let mut hasher = DefaultHasher::new();
        (&delivery.source.text, &delivery.destination.text, delivery.data_coding, &delivery.octets).hash(&mut hasher);
        let (key, now) = (hasher.finish(), self.services.ids.clock.monotonic());
        let id = self.recent.lock().admit(key, session, now, || self.fresh_id());
        let recorded = self.record(id.clone(), delivery, parts::read(delivery.data_coding, body)).await;
        let taken = recorded.is_ok();
        // Locked before the answer leaves: an SMSC may deliver again at once.
        let mut recent = self.recent.lock();
        recent.answered(key, &id, taken, hand(answer(recorded)));
    }

    /// One part of a message.
    async fn part(&self, delivery: &Delivery, sar: Sar, body: &[u8]) -> u32 {
        let part = InboundPart {
            tenant: self.tenant,
            connection: self.connection,
            channel: self.channel,
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

    async fn record(&self, id: String, delivery: &Delivery, text: String) -> Result<(), Unrecorded> {
        let at = self.services.ids.clock.now();
        let from = address::incoming(&delivery.source);
        let inbound = Inbound::text((self.tenant, self.connection, self.channel), id, from, text, at);
        let inbound = Inbound { to: written_to(delivery), ..inbound };
        self.services.events.record(ProviderEvent::Inbound(inbound)).await
    }

    /// SMSCs give no ids to what they deliver.
    fn fresh_id(&self) -> String {
        let mut random = [0; 16];
        self.services.ids.entropy.fill(&mut random);
        hex::encode(random)
    }
}

fn written_to(delivery: &Delivery) -> Option<String> {
    Some(address::incoming(&delivery.destination)).filter(|to| !to.is_empty())
}

fn answer(recorded: Result<(), Unrecorded>) -> u32 {
    if recorded.is_ok() { status::OK } else { status::NOT_NOW }
}
