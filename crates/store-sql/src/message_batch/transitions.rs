//! Applies the transitions of a batch: each message is loaded once, changed by its steps in order, and written once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nuncio_domain::broadcast::{Counts, Halt};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Applied, Change, Step};
use nuncio_domain::message::{Message, Money, State, Wait};
use nuncio_domain::{AddressId, MessageId, Micros};
use nuncio_store::{RawReceipt, Result, Transition, Transitioned};
use uuid::Uuid;

use super::broadcasts::{RecipientRow, RecipientUpdates};
use super::flags::Flags;
use super::references::{Reference, ResolvedTransition};
use crate::cache::CachedRow;

/// The messages of one batch of transitions: each is loaded once, changed by its steps in order, and written once.
#[derive(Debug, Default)]
pub(crate) struct TransitionBatch {
    loaded: HashMap<(i64, Uuid), LoadedMessage>,
    order: Vec<(i64, Uuid)>,
}

impl TransitionBatch {
    pub(crate) fn key(item: &Transition) -> (i64, Uuid) {
        // No message has the nil id.
        (item.tenant.0, item.id.map_or_else(Uuid::nil, |id| id.uuid()))
    }

    pub(crate) fn insert(&mut self, key: (i64, Uuid), loaded: LoadedMessage) {
        self.order.push(key);
        self.loaded.insert(key, loaded);
    }

    pub(crate) fn contains(&self, key: &(i64, Uuid)) -> bool {
        self.loaded.contains_key(key)
    }

    /// Removes a message, so that it can be loaded again.
    pub(crate) fn remove(&mut self, key: &(i64, Uuid)) {
        self.loaded.remove(key);
        self.order.retain(|other| other != key);
    }

    pub(crate) fn get(&self, key: &(i64, Uuid)) -> Option<&LoadedMessage> {
        self.loaded.get(key)
    }

    /// Cached messages that a step of the batch is too late for, unless the cache is out of date. They must be read.
    pub(crate) fn doubtful(&self, items: &[ResolvedTransition<'_>], answers: &[Transitioned]) -> BTreeSet<(i64, Uuid)> {
        let lost = items.iter().zip(answers).filter(|(_, answer)| matches!(answer, Transitioned::Found { applied: Applied::Lost, .. }));
        lost.map(|(item, _)| Self::key(item)).filter(|key| self.loaded.get(key).is_some_and(|loaded| loaded.from_cache)).collect()
    }

    /// Notes that the recipient of a message is suppressed.
    pub(crate) fn suppress(&mut self, key: &(i64, Uuid)) {
        if let Some(loaded) = self.loaded.get_mut(key) {
            loaded.suppressed = true;
        }
    }

    /// Applies one item. The answer must not be given before the commit.
    pub(crate) fn apply(&mut self, item: &Transition) -> Result<Transitioned> {
        let Some(loaded) = self.loaded.get_mut(&Self::key(item)) else { return Ok(Transitioned::Missing) };
        let seen = loaded.changes.len();
        let step = match &item.step {
            Step::Start { fence, .. } if loaded.halt.is_some() && *fence == loaded.row.state.fence => &Step::Withdraw { halt: loaded.halt },
            Step::Withdraw { .. } => &Step::Withdraw { halt: loaded.halt },
            Step::Start { node, fence, pause, .. } => {
                &Step::Start { node: *node, fence: *fence, suppressed: loaded.suppressed, pause: *pause }
            }
            other => other,
        };
        let state = &mut loaded.row.state;
        let cost = |state: &State| state.detail.cost.map_or(0, |cost| cost.total().0);
        let before = cost(state);
        let applied = state.apply(step, item.now, &mut loaded.changes);
        let spent = Micros(cost(state).saturating_sub(before));
        loaded.touched |= applied == Applied::Yes || loaded.changes.len() > seen;
        let started = applied == Applied::Yes && matches!(item.step, Step::Start { .. }) && matches!(state.wait, Wait::Owned { .. });
        // A message starts once in a batch, and may be large.
        let fixed = if started { loaded.row.fixed.take() } else { None };
        let message = fixed.map(|fixed| Box::new(Message { state: state.clone(), ..Arc::unwrap_or_clone(fixed) }));
        Ok(Transitioned::Found {
            id: MessageId::from_uuid(Self::key(item).1),
            applied,
            spent,
            state: Box::new(state.clone()),
            changes: loaded.changes[seen..].to_vec(),
            address: AddressId::from_uuid(loaded.row.address),
            message,
        })
    }

    /// The broadcasts whose status decides about steps of the batch.
    pub(crate) fn deciding_broadcasts(&self, items: &[ResolvedTransition<'_>]) -> BTreeSet<(i64, Uuid)> {
        let asking = items.iter().filter(|item| asks_broadcast(&item.step)).map(|item| Self::key(item));
        asking.filter_map(|key| Some((key.0, self.loaded.get(&key)?.broadcast()?))).collect()
    }

    /// Notes which broadcasts let no attempt start.
    pub(crate) fn halt(&mut self, halted: &HashMap<(i64, Uuid), Halt>) {
        for (key, loaded) in &mut self.loaded {
            loaded.halt = loaded.broadcast().and_then(|broadcast| halted.get(&(key.0, broadcast)).copied());
        }
    }

    /// The message ids that providers returned, each once. Some providers restart their counters: an id then belongs to the newer
    /// message.
    pub(crate) fn references<'a>(&self, items: &'a [ResolvedTransition<'_>]) -> Vec<Reference<'a>> {
        let mut references = BTreeMap::new();
        for item in items.iter().map(|item| &**item) {
            let Step::Settle { attempt, outcome, receipts, .. } = &item.step else { continue };
            let Some(loaded) = self.loaded.get(&Self::key(item)).filter(|loaded| !loaded.row.state.detail.erased) else { continue };
            let Some(made) = loaded.row.state.detail.attempts.get(*attempt) else { continue };
            let (tenant, message) = Self::key(item);
            for (reference, part) in outcome.references(*receipts).iter().zip(0_i16..) {
                let connection = made.connection.uuid();
                let new = Reference { tenant, connection, reference, message, attempt: *attempt as i16, part };
                let known = references.entry((tenant, connection, reference)).or_insert(new);
                if known.message < message {
                    *known = new;
                }
            }
        }
        references.into_values().collect()
    }

    /// The receipts as providers sent them, each with its tenant and message.
    pub(crate) fn receipts<'a>(&self, items: &'a [ResolvedTransition<'_>]) -> Vec<(i64, Uuid, &'a RawReceipt)> {
        // Nothing inbound is stored for an erased message.
        let is_kept = |item: &&Transition| self.loaded.get(&Self::key(item)).is_some_and(|loaded| !loaded.row.state.detail.erased);
        let known = items.iter().map(|item| &**item).filter(is_kept);
        let keyed = |item: &'a Transition| {
            let (tenant, id) = Self::key(item);
            item.raw.as_deref().map(|raw| (tenant, id, raw))
        };
        known.filter_map(keyed).collect()
    }

    /// Changes of broadcast recipients.
    pub(crate) fn recipient_updates(&self) -> RecipientUpdates {
        let mut updates = RecipientUpdates::default();
        for ((tenant, id), loaded) in self.loaded.iter().filter(|(_, l)| l.touched) {
            if let Some(before) = loaded.before {
                updates.add(*tenant, *id, before, &loaded.row.state);
            }
        }
        updates.contacts.sort_unstable_by_key(|m| (m.tenant, m.membership.broadcast, m.membership.contact));
        updates
    }

    /// What must be written, in key order.
    pub(crate) fn touched(&mut self) -> Vec<((i64, Uuid), &LoadedMessage)> {
        self.order.sort_unstable();
        self.order.iter().filter_map(|key| self.loaded.get(key).filter(|l| l.touched).map(|l| (*key, l))).collect()
    }
}

/// A message as the batch found it, with the changes of the batch.
#[derive(Debug)]
pub(crate) struct LoadedMessage {
    pub(crate) row: CachedRow,
    /// It comes from the cache, and may be out of date.
    pub(crate) from_cache: bool,
    pub(crate) changes: Vec<Change>,
    pub(crate) touched: bool,
    /// Money as it was before the batch.
    pub(crate) money: Option<Money>,
    pub(crate) flags: Flags,
    pub(crate) suppressed: bool,
    /// Why its broadcast lets no attempt start, if that was checked.
    pub(crate) halt: Option<Halt>,
    /// Row and counts of its broadcast recipient before the batch; `None` once the recipient has been withdrawn from the message.
    pub(crate) before: Option<(RecipientRow, Counts)>,
}

impl LoadedMessage {
    pub(crate) fn new(row: CachedRow, suppressed: bool) -> Self {
        let state = &row.state;
        let membership = state.detail.broadcast.filter(|membership| !membership.withdrawn);
        Self {
            money: state.detail.money.clone(),
            flags: Flags::of(state),
            before: membership.map(|_| (RecipientRow::of(state), Counts::of(state))),
            row,
            from_cache: false,
            changes: Vec::new(),
            touched: false,
            suppressed,
            halt: None,
        }
    }

    /// The broadcast to check before an attempt starts.
    pub(crate) fn broadcast(&self) -> Option<Uuid> {
        self.row.state.detail.broadcast.map(|membership| membership.broadcast.uuid())
    }
}

/// Whether the result of a step depends on the status of the broadcast.
pub(crate) const fn asks_broadcast(step: &Step) -> bool {
    matches!(step, Step::Start { .. } | Step::Withdraw { .. })
}
