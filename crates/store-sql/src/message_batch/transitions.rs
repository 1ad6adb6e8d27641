//! Applies the transitions of a batch: each message is loaded once, changed by its steps in order, and written once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nuncio_domain::AddressId;
use nuncio_domain::broadcast::{ContactStatus, Counts, Halt};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Applied, Change, Step, Wait};
use nuncio_domain::message::{Message, Money};
use nuncio_store::{RawReceipt, Result, Transition, Transitioned};
use uuid::Uuid;

use super::recipients::Moves;
use super::references::{Item, Reference};
use super::writes::Flags;
use crate::known::Known;

/// The messages of one batch of transitions: each is loaded once, changed by its steps in order, and written once.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    loaded: HashMap<(i64, Uuid), Loaded>,
    order: Vec<(i64, Uuid)>,
}

impl Fold {
    pub(crate) fn key(item: &Transition) -> (i64, Uuid) {
        (item.tenant.0, item.id.uuid())
    }

    pub(crate) fn insert(&mut self, key: (i64, Uuid), loaded: Loaded) {
        self.order.push(key);
        self.loaded.insert(key, loaded);
    }

    pub(crate) fn contains(&self, key: &(i64, Uuid)) -> bool {
        self.loaded.contains_key(key)
    }

    /// Takes out a message, so that it can be loaded again.
    pub(crate) fn remove(&mut self, key: &(i64, Uuid)) {
        self.loaded.remove(key);
        self.order.retain(|other| other != key);
    }

    pub(crate) fn get(&self, key: &(i64, Uuid)) -> Option<&Loaded> {
        self.loaded.get(key)
    }

    /// Messages that a step of the batch came too late for, if what memory says of them holds. They must be looked up.
    pub(crate) fn doubtful(&self, items: &[Item<'_>], answers: &[Transitioned]) -> BTreeSet<(i64, Uuid)> {
        let lost = items.iter().zip(answers).filter(|(_, answer)| matches!(answer, Transitioned::Found { applied: Applied::Lost, .. }));
        lost.map(|(item, _)| Self::key(item)).filter(|key| self.loaded.get(key).is_some_and(|loaded| loaded.remembered)).collect()
    }

    /// Notes that nothing may be sent to the recipient of a message.
    pub(crate) fn suppress(&mut self, key: &(i64, Uuid)) {
        if let Some(loaded) = self.loaded.get_mut(key) {
            loaded.suppressed = true;
        }
    }

    /// Applies one item and answers it. The answer must not be given before the commit.
    pub(crate) fn apply(&mut self, item: &Transition) -> Result<Transitioned> {
        let Some(loaded) = self.loaded.get_mut(&Self::key(item)) else { return Ok(Transitioned::Missing) };
        let seen = loaded.changes.len();
        let step = match &item.step {
            Step::Start { fence, .. } if loaded.halt.is_some() && *fence == loaded.known.state.fence => {
                &Step::Withdraw { halt: loaded.halt }
            }
            Step::Withdraw { .. } => &Step::Withdraw { halt: loaded.halt },
            Step::Start { node, fence, .. } => &Step::Start { node: *node, fence: *fence, suppressed: loaded.suppressed },
            other => other,
        };
        let state = &mut loaded.known.state;
        let applied = state.apply(step, item.now, &mut loaded.changes);
        loaded.touched |= applied == Applied::Yes || loaded.changes.len() > seen;
        let started = applied == Applied::Yes && matches!(item.step, Step::Start { .. }) && matches!(state.wait, Wait::Owned { .. });
        // A message starts once in a batch, and may be large.
        let fixed = if started { loaded.known.fixed.take() } else { None };
        let message = fixed.map(|fixed| Box::new(Message { state: state.clone(), ..Arc::unwrap_or_clone(fixed) }));
        Ok(Transitioned::Found {
            applied,
            state: Box::new(state.clone()),
            changes: loaded.changes[seen..].to_vec(),
            address: AddressId::from_uuid(loaded.known.address),
            message,
        })
    }

    /// The broadcasts whose status decides about steps of the batch.
    pub(crate) fn deciding_broadcasts(&self, items: &[Item<'_>]) -> BTreeSet<(i64, Uuid)> {
        let asking = items.iter().filter(|item| asks_broadcast(&item.step)).map(|item| Self::key(item));
        asking.filter_map(|key| Some((key.0, self.loaded.get(&key)?.broadcast()?))).collect()
    }

    /// Notes which broadcasts let no attempt start.
    pub(crate) fn halt(&mut self, halted: &HashMap<(i64, Uuid), Halt>) {
        for (key, loaded) in &mut self.loaded {
            loaded.halt = loaded.broadcast().and_then(|broadcast| halted.get(&(key.0, broadcast)).copied());
        }
    }

    /// The provider's ids that the batch's answers brought, each once. Some providers begin to count anew: an id then is the newer
    /// message's.
    pub(crate) fn references<'a>(&self, items: &'a [Item<'_>]) -> Vec<Reference<'a>> {
        let mut references = BTreeMap::new();
        for item in items.iter().map(|item| &**item) {
            let Step::Settle { attempt, outcome, .. } = &item.step else { continue };
            let Some(loaded) = self.loaded.get(&Self::key(item)) else { continue };
            let Some(made) = loaded.known.state.detail.attempts.get(*attempt) else { continue };
            let (tenant, message) = Self::key(item);
            for (reference, part) in outcome.references().iter().zip(0_i16..) {
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

    /// The receipts as they came, with their world and message.
    pub(crate) fn receipts<'a>(&self, items: &'a [Item<'_>]) -> Vec<(i64, Uuid, &'a RawReceipt)> {
        // Of a message that was erased nothing is kept that came from outside.
        let is_kept = |item: &&Transition| self.loaded.get(&Self::key(item)).is_some_and(|loaded| !loaded.known.state.detail.erased);
        let known = items.iter().map(|item| &**item).filter(is_kept);
        known.filter_map(|item| item.raw.as_deref().map(|raw| (item.tenant.0, item.id.uuid(), raw))).collect()
    }

    /// What the batch means for broadcasts.
    pub(crate) fn moves(&self) -> Moves {
        let mut moves = Moves::default();
        for ((tenant, id), loaded) in self.loaded.iter().filter(|(_, l)| l.touched) {
            if let Some(stood) = loaded.stood {
                moves.add(*tenant, *id, stood, &loaded.known.state);
            }
        }
        moves.contacts.sort_unstable_by_key(|m| (m.tenant, m.part.broadcast, m.part.contact));
        moves
    }

    /// What must be written, in key order.
    pub(crate) fn touched(&mut self) -> Vec<((i64, Uuid), &Loaded)> {
        self.order.sort_unstable();
        self.order.iter().filter_map(|key| self.loaded.get(key).filter(|l| l.touched).map(|l| (*key, l))).collect()
    }
}

/// A message as a batch found it, and what the batch made of it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) known: Known,
    /// It comes from memory, and may be out of date.
    pub(crate) remembered: bool,
    pub(crate) changes: Vec<Change>,
    pub(crate) touched: bool,
    /// As it was before the batch.
    pub(crate) money: Option<Money>,
    pub(crate) flags: Flags,
    pub(crate) suppressed: bool,
    /// Why its broadcast lets no attempt start, if it was asked.
    pub(crate) halt: Option<Halt>,
    /// Where its recipient stood in the broadcast before; absent once the recipient is no longer its own.
    pub(crate) stood: Option<(ContactStatus, Counts)>,
}

impl Loaded {
    pub(crate) fn new(known: Known, suppressed: bool) -> Self {
        let state = &known.state;
        let part = state.detail.broadcast.filter(|part| !part.withdrawn);
        Self {
            money: state.detail.money.clone(),
            flags: Flags::of(state),
            stood: part.map(|_| (ContactStatus::of(state), Counts::of(state))),
            known,
            remembered: false,
            changes: Vec::new(),
            touched: false,
            suppressed,
            halt: None,
        }
    }

    /// The broadcast to ask before an attempt may start.
    pub(crate) fn broadcast(&self) -> Option<Uuid> {
        self.known.state.detail.broadcast.map(|part| part.broadcast.uuid())
    }
}

/// Whether the status of a message's broadcast decides what comes of a step.
pub(crate) const fn asks_broadcast(step: &Step) -> bool {
    matches!(step, Step::Start { .. } | Step::Withdraw { .. })
}
