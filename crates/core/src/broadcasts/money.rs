//! Costs of broadcasts: estimated and reserved before the review, spent message by message; the rest is released.
//!
//! Storing a message transfers its price from the broadcast's reservation ([`Budget`]) to the message, which then settles its own costs. So
//! the reservation less the transferred amount is always what remains for pending recipients.

use std::collections::{BTreeMap, HashMap};

use nuncio_domain::broadcast::Broadcast;
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Purpose, Transfer};
use nuncio_domain::message::{Message, Money};
use nuncio_domain::{
    AddressKind, BroadcastId, Channel, Error, ErrorCode, Micros, Recipient, Result, SenderId, TenantId, Timestamp, address,
};
use nuncio_store::{ChannelMetrics, NewBroadcastContact, Tx};

use super::{Broadcasts, composer::Composer, content, content::fingerprint, variables};
use crate::messages::routing::{self, RoutingInputs, Window};
use crate::{
    base::{Core, is_mark},
    billing,
    messages::plan::Planned,
};

/// Recipients per page.
const PAGE: u32 = 1_000;

/// Maximum number of distinct classes.
const KINDS: usize = 1_000;

/// Cost of a broadcast's messages if they were accepted now.
#[derive(Debug)]
pub(super) struct Estimate {
    /// By the first channel of each message; `None` if no message has a price.
    expected: Option<Micros>,
    /// Including possible fallbacks.
    required: Micros,
    /// The sender, if its daily spending is limited.
    limited_sender: Option<SenderId>,
    /// Number of recipients and content fingerprint of the estimate.
    basis: (i64, String),
}

fn basis(broadcast: &Broadcast) -> (i64, String) {
    (broadcast.total, fingerprint(broadcast, None))
}

impl Estimate {
    /// Stores the estimate in the broadcast; `409 conflict` if recipients or content changed since.
    pub(super) fn put(&self, broadcast: &mut Broadcast) -> Result<()> {
        if self.basis != basis(broadcast) {
            return Err(Error::new(ErrorCode::Conflict, "the broadcast changed while its cost was estimated; try again"));
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

/// Reserves the maximum cost of a broadcast; must be the last step of the transaction that starts its review. `402 insufficient_balance` if
/// the balance is too low.
pub(super) async fn reserve(tx: &mut dyn Tx, broadcast: &Broadcast, estimate: &Estimate, now: Timestamp) -> Result<()> {
    if estimate.required.0 == 0 {
        return Ok(());
    }
    let part = reservation(tx, broadcast.tenant, broadcast.id).await?.map_or(1, |newest| newest.part + 1);
    let (amount, sender) = (estimate.required, estimate.limited_sender);
    let transfer = Transfer { purpose: Purpose::Reserve, resource: broadcast.id.uuid(), part, amount, sender };
    billing::transfer(tx, broadcast.tenant, &transfer, now).await
}

/// Releases the rest of a reservation; must be the last step of the transaction that rejects or ends a broadcast.
pub(super) async fn release(tx: &mut dyn Tx, tenant: TenantId, id: BroadcastId, rest: Micros, now: Timestamp) -> Result<()> {
    if rest.0 == 0 {
        return Ok(());
    }
    let Some(reservation) = reservation(tx, tenant, id).await? else { return Ok(()) };
    billing::transfer(tx, tenant, &Transfer { purpose: Purpose::Release, amount: rest, ..reservation }, now).await
}

/// Returns the newest reservation of a broadcast. Each review and each approval by an operator makes one.
async fn reservation(tx: &mut dyn Tx, tenant: TenantId, id: BroadcastId) -> Result<Option<Transfer>> {
    let transfers = tx.list_transfers(tenant, id.uuid()).await?;
    Ok(transfers.into_iter().filter(|t| t.purpose == Purpose::Reserve).max_by_key(|t| t.part))
}

/// Remaining money of a broadcast. The fence ensures that only one node spends it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    reserved: Micros,
    limited_sender: Option<SenderId>,
    /// What the sender may spend today in addition, once looked up.
    today: Option<Micros>,
}

impl Broadcasts<'_> {
    /// Returns the rest of a broadcast's reservation.
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

    /// Returns whether a message can be paid for. Its price comes from the reservation, or if that is spent, from a separate reservation
    /// within the sender's daily limit.
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

    /// Estimates the cost of a broadcast by planning a message to each recipient, page by page. Recipients who cannot be sent to cost
    /// nothing. 402 if the sender's daily limit is too low.
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

    /// Counts the messages to pending recipients by their plan.
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
            let page = self.inner.store.read().await?.pending_broadcast_contacts(broadcast.tenant, broadcast.id, after, PAGE).await?;
            let mut knowledge = self.knowledge(composer, &page.found).await?;
            for contact in page.found.iter().filter(|contact| !is_mark(&contact.recipient)) {
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

    /// Returns the routing inputs for these recipients, in few queries.
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

/// Routing inputs of a page of recipients.
pub(super) struct Knowledge {
    common: RoutingInputs,
    /// For recipients of this kind, if the channel depends on them.
    metrics: Option<(AddressKind, HashMap<String, Vec<ChannelMetrics>>)>,
}

impl Knowledge {
    /// Returns the routing inputs for a recipient of the page.
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

/// Plan shared by equal messages.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Class {
    /// Uses this channel first.
    Sendable { channel: Channel, segments: Option<u16>, price: Price },
    /// Cannot be sent, for this reason.
    Refused(String),
}

/// Cost of one message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub(super) struct Price {
    /// By its first channel; `None` without a price.
    pub(super) expected: Option<Micros>,
    /// Including possible fallbacks.
    pub(super) required: Micros,
}

/// Plans the messages of a broadcast, and counts them by class.
struct Classes<'a> {
    composer: &'a Composer<'a>,
    now: Timestamp,
    /// Whether all recipients get the same text.
    same_text: bool,
    /// Cached classes of equal recipients.
    alike: HashMap<(AddressKind, String, Window), Class>,
}

impl Classes<'_> {
    /// Plans the message to a recipient. Recipients with the same text and country share a plan if nothing else is known about them.
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
