//! What broadcasts cost: estimated before the review begins, set aside as a whole, taken over by messages one by one, the rest given back.
//!
//! A message takes its price out of what is set aside by being written ([`Purse`]); from then on it pays and gives back by itself. So what
//! is left for recipients who were not handed over is the reservation less what was taken over, at every moment.

use std::collections::HashMap;

use nuncio_domain::broadcast::Broadcast;
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Purpose, Transfer};
use nuncio_domain::message::{Message, Money};
use nuncio_domain::{AddressKind, BroadcastId, Error, Micros, Recipient, Result, SenderId, TenantId, Timestamp, address};
use nuncio_store::{ChannelMetrics, NewBroadcastContact, Tx};

use super::Broadcasts;
use super::change::fingerprint;
use super::check;
use super::hand_over::Mould;
use crate::base::Core;
use crate::billing::{self, Reference};
use crate::messages::routing::{self, Known, Window};

/// Recipients that are looked at in one step.
const PAGE: u32 = 1_000;

/// What the messages of a broadcast would cost if they were accepted now.
#[derive(Debug)]
pub(super) struct Estimate {
    /// By the channels that they take first; absent when no message has a price.
    expected: Option<Micros>,
    /// With the fallbacks that they may take.
    required: Micros,
    /// The sender, should its daily spending be limited.
    limited_sender: Option<SenderId>,
    /// How many recipients it is for, and which content.
    basis: (i64, String),
}

fn basis(broadcast: &Broadcast) -> (i64, String) {
    (broadcast.total, fingerprint(broadcast))
}

impl Estimate {
    /// Writes it into the broadcast; fails when that is not any more what was estimated.
    pub(super) fn put(&self, broadcast: &mut Broadcast) -> Result<()> {
        if self.basis != basis(broadcast) {
            return Err(Error::unavailable("the broadcast changed while its cost was estimated; try again"));
        }
        broadcast.body.estimated_cost = self.expected.map(|micros| micros.0);
        broadcast.body.reserved = self.required.0;
        Ok(())
    }

    fn add(&mut self, price: Price) {
        if let Some(expected) = price.expected {
            let sum = self.expected.get_or_insert_default();
            sum.0 = sum.0.saturating_add(expected.0);
        }
        self.required.0 = self.required.0.saturating_add(price.required.0);
    }
}

/// Sets aside what a broadcast may cost, last of all in the transaction that begins its review. `402 insufficient_balance` when less is
/// available.
pub(super) async fn reserve(tx: &mut dyn Tx, broadcast: &Broadcast, estimate: &Estimate, now: Timestamp) -> Result<()> {
    if estimate.required.0 == 0 {
        return Ok(());
    }
    let part = reservation(tx, broadcast.tenant, broadcast.id).await?.map_or(1, |newest| newest.part + 1);
    let reference = Reference { resource: broadcast.id.uuid(), part, sender: estimate.limited_sender };
    billing::reserve(tx, broadcast.tenant, estimate.required, reference, now).await
}

/// Gives back what no message took over, last of all in the transaction that rejects or ends a broadcast.
pub(super) async fn release(tx: &mut dyn Tx, tenant: TenantId, id: BroadcastId, rest: Micros, now: Timestamp) -> Result<()> {
    if rest.0 == 0 {
        return Ok(());
    }
    let Some(Transfer { part, sender, .. }) = reservation(tx, tenant, id).await? else { return Ok(()) };
    billing::release(tx, tenant, rest, Reference { resource: id.uuid(), part, sender }, now).await
}

/// The newest reservation of a broadcast. There is one for each review that was begun, and for an operator's approval.
async fn reservation(tx: &mut dyn Tx, tenant: TenantId, id: BroadcastId) -> Result<Option<Transfer>> {
    let transfers = tx.list_transfers(tenant, id.uuid()).await?;
    Ok(transfers.into_iter().filter(|t| t.purpose == Purpose::Reserve).max_by_key(|t| t.part))
}

/// What is left of a reservation for those who hand over. They are alone with it: the store writes nothing under another fence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Purse {
    left: Micros,
    limited_sender: Option<SenderId>,
}

impl Purse {
    /// Has a message take its price out of the purse; `false` when that holds less: then the message sets its price aside itself.
    pub(super) fn pays(&mut self, message: &mut Message) -> bool {
        let Some(money) = &mut message.state.detail.money else { return true };
        let price = money.whole();
        if price > self.left {
            return false;
        }
        self.left.0 -= price.0;
        (money.prepaid, money.limited_sender) = (true, self.limited_sender);
        true
    }
}

impl Broadcasts<'_> {
    /// What is left of a broadcast's reservation.
    pub(super) async fn purse(&self, tenant: TenantId, id: BroadcastId) -> Result<Purse> {
        let mut tx = self.inner.store.read().await?;
        let Some(broadcast) = tx.find_broadcast(tenant, id).await? else { return Ok(Purse::default()) };
        if broadcast.body.reserved == 0 {
            return Ok(Purse::default());
        }
        let limited_sender = reservation(&mut *tx, tenant, id).await?.and_then(|newest| newest.sender);
        Ok(Purse { left: broadcast.purse(), limited_sender })
    }

    /// Plans a message to each recipient and adds up what they would cost, a page of them at a time. One to whom nothing could be sent
    /// costs nothing. Fails with 402 when the sender may not spend so much a day.
    pub(super) async fn estimate(&self, broadcast: &Broadcast) -> Result<Estimate> {
        let mut estimate = Estimate { expected: None, required: Micros(0), limited_sender: None, basis: basis(broadcast) };
        let Ok(mould) = self.mould(broadcast).await? else { return Ok(estimate) };
        let prices = self.price_book(&mould.world).await?;
        if prices.is_empty() {
            return Ok(estimate);
        }
        let known = Known { countries: self.countries(broadcast.tenant).await?, prices, ..Known::default() };
        let (mut prices, mut after) = (Prices { mould: &mould, known, now: self.ids().clock.now(), alike: HashMap::new() }, None);
        loop {
            let mut tx = self.inner.store.read().await?;
            let page = tx.pending_broadcast_contacts(broadcast.tenant, broadcast.id, after, PAGE).await?;
            drop(tx);
            let Some(last) = page.last() else { break };
            after = Some(last.id);
            let mut metrics = self.metrics(&mould, &page).await?;
            for contact in &page {
                let own = metrics.remove(&contact.recipient.identifier).unwrap_or_default();
                estimate.add(prices.of(self, contact, own)?);
            }
        }
        if let Some(limit) = mould.sender.daily_spend_limit {
            self.billing().check_daily_spend(broadcast.tenant, mould.sender.id, limit, estimate.required).await?;
            estimate.limited_sender = Some(mould.sender.id);
        }
        Ok(estimate)
    }

    /// What is known of those recipients for whom it matters.
    async fn metrics(&self, mould: &Mould<'_>, page: &[NewBroadcastContact]) -> Result<HashMap<String, Vec<ChannelMetrics>>> {
        let (asked, message_type) = (mould.broadcast.channel.requested(), mould.broadcast.message_type.message_type());
        if !routing::needs_knowledge(&mould.world, &mould.sender, asked, message_type) {
            return Ok(HashMap::new());
        }
        let kind = routing::known_kind(asked);
        let known = page.iter().map(|contact| &contact.recipient).filter(|recipient| recipient.kind == kind);
        let known: Vec<&str> = known.map(|recipient| recipient.identifier.as_str()).collect();
        if known.is_empty() { Ok(HashMap::new()) } else { self.messages().metrics_of(mould.broadcast.tenant, kind, &known).await }
    }
}

/// What the messages of a broadcast cost, one by one.
struct Prices<'a> {
    mould: &'a Mould<'a>,
    known: Known,
    now: Timestamp,
    /// Of recipients who are alike.
    alike: HashMap<(AddressKind, String, Window), Price>,
}

impl Prices<'_> {
    /// What the message to one recipient costs. It is worked out once for all who get the same text and of whom nothing is known but
    /// their country.
    fn of(&mut self, core: &Core, contact: &NewBroadcastContact, metrics: Vec<ChannelMetrics>) -> Result<Price> {
        let Recipient { kind, identifier } = &contact.recipient;
        let alike = metrics.is_empty() && !check::is_template(self.mould.broadcast);
        let (mut known, mut country) = (self.known.clone(), String::new());
        if matches!(kind, AddressKind::Phone | AddressKind::Instagram) {
            known = known.of(&self.mould.world, *kind, identifier, metrics, self.now);
        }
        if *kind == AddressKind::Phone && alike {
            country = address::phone_facts(identifier).country;
        }
        let class = (*kind, country, known.window);
        if let Some(price) = self.alike.get(&class).filter(|_| alike) {
            return Ok(*price);
        }
        let price = match core.broadcasts().plan_contact(self.mould, contact, &known, self.now, false) {
            Ok(planned) => Price::of(&planned.accept.message),
            Err(error) if error.code().status() < 500 => Price::default(),
            Err(error) => return Err(error),
        };
        if alike {
            self.alike.insert(class, price);
        }
        Ok(price)
    }
}

/// What one message costs.
#[derive(Clone, Copy, Debug, Default)]
struct Price {
    expected: Option<Micros>,
    required: Micros,
}

impl Price {
    fn of(message: &Message) -> Self {
        let (channel, money) = (message.state.route.channel, message.state.detail.money.as_ref());
        let first = money.and_then(|money| money.quotes.iter().find(|quote| quote.channel == channel));
        Self { expected: first.map(|quote| quote.cost.total()), required: money.map(Money::whole).unwrap_or_default() }
    }
}
