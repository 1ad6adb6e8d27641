//! What broadcasts cost: estimated before the review begins, reserved as a whole, taken over by messages one by one, the rest given back.
//!
//! A message takes its price out of what is reserved by being written ([`Budget`]); from then on it pays and gives back by itself. So what
//! is left for recipients who were not handed over is the reservation less what was taken over, at every moment.

use std::collections::{BTreeMap, HashMap};

use nuncio_domain::broadcast::Broadcast;
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Purpose, Transfer};
use nuncio_domain::message::{Message, Money};
use nuncio_domain::{AddressKind, BroadcastId, Channel, Error, Micros, Recipient, Result, SenderId, TenantId, Timestamp, address};
use nuncio_store::{ChannelMetrics, NewBroadcastContact, Tx};

use super::Broadcasts;
use super::composer::Composer;
use super::content;
use super::content::fingerprint;
use super::variables;
use crate::base::Core;
use crate::billing::{self, Reference};
use crate::messages::plan::Planned;
use crate::messages::routing::{self, RoutingInputs, Window};

/// Recipients that are looked at in one step.
const PAGE: u32 = 1_000;

/// Kinds of outcomes that are told apart.
const KINDS: usize = 1_000;

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

    fn add(&mut self, price: Price, count: u64) {
        let times = |one: Micros| one.0.saturating_mul(count as i64);
        if let Some(expected) = price.expected {
            let sum = self.expected.get_or_insert_default();
            sum.0 = sum.0.saturating_add(times(expected));
        }
        self.required.0 = self.required.0.saturating_add(times(price.required));
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

/// What the messages of a broadcast may still cost. Whoever hands over is alone with it: the store writes nothing under another fence.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    reserved: Micros,
    limited_sender: Option<SenderId>,
    /// What the sender may still spend today beside that, once it was looked up.
    today: Option<Micros>,
}

impl Broadcasts<'_> {
    /// What is left of a broadcast's reservation.
    pub(super) async fn budget(&self, composer: &Composer<'_>) -> Result<Budget> {
        let (tenant, id) = (composer.broadcast.tenant, composer.broadcast.id);
        let mut tx = self.inner.store.read().await?;
        let Some(broadcast) = tx.find_broadcast(tenant, id).await? else { return Ok(Budget::default()) };
        if broadcast.body.reserved == 0 {
            return Ok(Budget::default());
        }
        let limited_sender = reservation(&mut *tx, tenant, id).await?.and_then(|newest| newest.sender);
        Ok(Budget { reserved: broadcast.unspent(), limited_sender, today: None })
    }

    /// Whether the budget has room for a message, which takes its price out of the reservation. Beyond that it sets its price aside by
    /// itself, as far as its sender may spend so much today.
    pub(super) async fn pays(&self, budget: &mut Budget, composer: &Composer<'_>, message: &mut Message) -> Result<bool> {
        let Some(money) = &mut message.state.detail.money else { return Ok(true) };
        let price = money.whole();
        if price <= budget.reserved {
            budget.reserved.0 -= price.0;
            (money.prepaid, money.limited_sender) = (true, budget.limited_sender);
            return Ok(true);
        }
        let Some(limit) = composer.sender.daily_spend_limit else { return Ok(true) };
        let today = match budget.today {
            Some(today) => today,
            None => self.billing().left_today(composer.broadcast.tenant, composer.sender.id, limit).await?,
        };
        let pays = price <= today;
        budget.today = Some(if pays { Micros(today.0 - price.0) } else { today });
        Ok(pays)
    }

    /// Plans a message to each recipient and adds up what they would cost, a page of them at a time. One to whom nothing could be sent
    /// costs nothing. Fails with 402 when the sender may not spend so much a day.
    pub(super) async fn estimate(&self, broadcast: &Broadcast) -> Result<Estimate> {
        let mut estimate = Estimate { expected: None, required: Micros(0), limited_sender: None, basis: basis(broadcast) };
        let Ok(composer) = self.composer(broadcast).await? else { return Ok(estimate) };
        if self.price_book(&composer.config).await?.is_empty() {
            return Ok(estimate);
        }
        for (class, count) in self.classes_of(&composer).await? {
            if let Class::Sendable { price, .. } = class {
                estimate.add(price, count);
            }
        }
        if let Some(limit) = composer.sender.daily_spend_limit {
            self.billing().check_daily_spend(broadcast.tenant, composer.sender.id, limit, estimate.required).await?;
            estimate.limited_sender = Some(composer.sender.id);
        }
        Ok(estimate)
    }

    /// The messages to recipients who were not handed over, by what would become of them.
    pub(super) async fn classes(&self, broadcast: &Broadcast) -> Result<BTreeMap<Class, u64>> {
        match self.composer(broadcast).await? {
            Ok(composer) => self.classes_of(&composer).await,
            Err(failure) => Ok([(Class::Refused(failure.message), broadcast.waiting() as u64)].into()),
        }
    }

    async fn classes_of(&self, composer: &Composer<'_>) -> Result<BTreeMap<Class, u64>> {
        let broadcast = composer.broadcast;
        let same_text = !content::is_template(broadcast) && variables::used(broadcast).is_empty();
        let mut classes = Classes { composer, now: self.ids().clock.now(), same_text, alike: HashMap::new() };
        let (mut counts, mut after) = (BTreeMap::new(), None);
        loop {
            let mut tx = self.inner.store.read().await?;
            let page = tx.pending_broadcast_contacts(broadcast.tenant, broadcast.id, after, PAGE).await?;
            drop(tx);
            let mut knowledge = self.knowledge(composer, &page.found).await?;
            for contact in &page.found {
                let class = match classes.of(self, contact, &mut knowledge)? {
                    Class::Refused(_) if counts.len() >= KINDS => Class::Refused("other reasons".to_owned()),
                    class => class,
                };
                *counts.entry(class).or_default() += 1;
            }
            if page.next.is_none() {
                return Ok(counts);
            }
            after = page.next;
        }
    }

    /// What messages to these recipients rest on, looked up for all of them at once.
    pub(super) async fn knowledge(&self, composer: &Composer<'_>, page: &[NewBroadcastContact]) -> Result<Knowledge> {
        let (broadcast, config) = (composer.broadcast, &composer.config);
        let prices = self.price_book(config).await?;
        let (asked, message_type) = (broadcast.channel.requested(), broadcast.message_type.message_type());
        let nothing = Knowledge { common: RoutingInputs { prices, ..RoutingInputs::default() }, metrics: None };
        if !routing::needs_knowledge(config, &composer.sender, asked, message_type) {
            return Ok(nothing);
        }
        let kind = routing::known_kind(asked);
        let known: Vec<_> = page.iter().filter(|c| c.recipient.kind == kind).map(|c| c.recipient.identifier.as_str()).collect();
        if known.is_empty() {
            return Ok(nothing);
        }
        let metrics = self.messages().metrics_of(broadcast.tenant, kind, &known).await?;
        let common = RoutingInputs { countries: self.countries(broadcast.tenant).await?, ..nothing.common };
        Ok(Knowledge { common, metrics: Some((kind, metrics)) })
    }
}

/// What is known of a page of recipients.
pub(super) struct Knowledge {
    common: RoutingInputs,
    /// Of recipients of this kind, where it matters.
    metrics: Option<(AddressKind, HashMap<String, Vec<ChannelMetrics>>)>,
}

impl Knowledge {
    /// What is known of one recipient of the page.
    pub(super) fn of(&mut self, composer: &Composer<'_>, recipient: &Recipient, now: Timestamp) -> RoutingInputs {
        let Recipient { kind, identifier } = recipient;
        match &mut self.metrics {
            Some((known_kind, metrics)) if known_kind == kind => {
                let own = metrics.remove(identifier).unwrap_or_default();
                self.common.clone().of(&composer.config, *kind, identifier, own, now)
            }
            _ => self.common.clone(),
        }
    }
}

/// What becomes of messages that are alike.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Class {
    /// It goes by this channel first.
    Sendable { channel: Channel, segments: Option<u16>, price: Price },
    /// Nothing can be sent, and why.
    Refused(String),
}

/// What one message costs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(super) struct Price {
    /// By the channel that it takes first; absent without a price.
    pub(super) expected: Option<Micros>,
    /// With the fallbacks that it may take.
    pub(super) required: Micros,
}

/// What becomes of the messages of a broadcast, one by one.
struct Classes<'a> {
    composer: &'a Composer<'a>,
    now: Timestamp,
    /// Whether all recipients get the same text.
    same_text: bool,
    /// Of recipients who are alike.
    alike: HashMap<(AddressKind, String, Window), Class>,
}

impl Classes<'_> {
    /// Plans the message to one recipient. That is done once for all who get the same text and of whom nothing is known but their country.
    fn of(&mut self, core: &Core, contact: &NewBroadcastContact, knowledge: &mut Knowledge) -> Result<Class> {
        let Recipient { kind, identifier } = &contact.recipient;
        let known = knowledge.of(self.composer, &contact.recipient, self.now);
        let alike = known.metrics.is_empty() && self.same_text;
        let mut country = String::new();
        if *kind == AddressKind::Phone && alike {
            country = address::phone_facts(identifier).country;
        }
        let key = (*kind, country, known.window);
        if let Some(class) = self.alike.get(&key).filter(|_| alike) {
            return Ok(class.clone());
        }
        let class = match core.broadcasts().plan_contact(self.composer, contact, &known, self.now, false) {
            Ok(planned) => Class::of(&planned),
            Err(error) if error.code().status() < 500 => Class::Refused(error.message().to_owned()),
            Err(error) => return Err(error),
        };
        if alike {
            self.alike.insert(key, class.clone());
        }
        Ok(class)
    }
}

impl Class {
    fn of(planned: &Planned) -> Self {
        let message = &planned.accept.message;
        let (channel, money) = (message.state.route.channel, message.state.detail.money.as_ref());
        let first = money.and_then(|money| money.quotes.iter().find(|quote| quote.channel == channel));
        let price = Price { expected: first.map(|quote| quote.cost.total()), required: money.map(Money::whole).unwrap_or_default() };
        let by_sms = matches!(channel, Channel::Sms | Channel::SmsOneway);
        Self::Sendable { channel, segments: planned.measure.filter(|_| by_sms).map(|measure| measure.segments), price }
    }
}
