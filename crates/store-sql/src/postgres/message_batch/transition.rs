//! Applies the transitions of a batch.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use nuncio_domain::lifecycle::{Applied, Step};
use nuncio_store::{RawReceipt, Result, StoreError, Transitioned};
use uuid::Uuid;

use super::super::session::failed;
use super::{Session, load, starts, states};
use crate::cache::{Cache, CachedRow};
use crate::ledger_batch::LedgerBatch;
use crate::message_batch::{LoadedMessage, ResolvedTransition, StateWrite, TransitionBatch, Writes, asks_broadcast, by_reference};

/// Transitions of a batch, applied to their messages.
#[derive(Debug, Default)]
pub(super) struct AppliedTransitions {
    pub(super) transitions: TransitionBatch,
    pub(super) answers: Vec<Transitioned>,
    /// The states that were written.
    pub(super) states: Vec<StateWrite<'static>>,
}

/// Applies transitions and updates the states of their messages. Must run in a transaction.
pub(super) async fn apply(
    session: &Session,
    cache: &Cache,
    items: &[ResolvedTransition<'_>],
    writes: &mut Writes,
) -> Result<AppliedTransitions> {
    let mut transitions = TransitionBatch::default();
    let (unknown, mut starting) = take_known(cache, items, &mut transitions);
    load::load(session, &mut transitions, &unknown).await?;
    starting.extend(unknown.iter().filter(|(_, starts)| *starts).map(|(key, _)| *key));
    if items.iter().any(|item| asks_broadcast(&item.step)) {
        starts::check(session, &mut transitions, &starting, items).await?;
    }
    let mut answers = items.iter().map(|item| transitions.apply(item)).collect::<Result<Vec<_>>>()?;
    forget_doubtful_references(cache, items, &answers)?;
    let doubtful = transitions.doubtful(items, &answers);
    apply_again(session, &mut transitions, &doubtful, items, &mut answers).await?;
    let mut states = update(session, &mut transitions, writes, items, None).await?;
    let stale: BTreeSet<(i64, Uuid)> =
        transitions.touched().into_iter().map(|(key, _)| key).filter(|key| !states.iter().any(|s| (s.tenant, s.id) == *key)).collect();
    forget_stale_references(cache, items, &stale)?;
    if !stale.is_empty() {
        // Another node has written these meanwhile: they are read, locked and changed again.
        apply_again(session, &mut transitions, &stale, items, &mut answers).await?;
        states.extend(update(session, &mut transitions, writes, items, Some(&stale)).await?);
    }
    for (write, loaded) in states.iter().filter_map(|write| Some((write, transitions.get(&(write.tenant, write.id))?))) {
        writes.written(write, loaded);
    }
    Ok(AppliedTransitions { transitions, answers, states })
}

impl AppliedTransitions {
    /// Charges and releases what the transitions settled.
    pub(super) fn settle(&self, ledger: &mut LedgerBatch) {
        for key in self.states.iter().map(|write| (write.tenant, write.id)) {
            self.transitions.get(&key).into_iter().for_each(|loaded| ledger.settle(key, loaded));
        }
    }

    /// The messages as they were written.
    pub(super) fn rows(states: Vec<StateWrite<'static>>, transitions: &TransitionBatch) -> Vec<((i64, Uuid), CachedRow)> {
        let row = |write: StateWrite<'static>| {
            let key = (write.tenant, write.id);
            let CachedRow { state, address, .. } = &transitions.get(&key)?.row;
            Some((key, CachedRow::after(write, state.clone(), *address, None)))
        };
        states.into_iter().filter_map(row).collect()
    }
}

/// A message to load, and whether an attempt of it is to start.
type Unknown = ((i64, Uuid), bool);

/// Moves the messages of a batch from the cache to `transitions`. Returns those that must be read, and those taken that are to start.
fn take_known(cache: &Cache, items: &[ResolvedTransition<'_>], transitions: &mut TransitionBatch) -> (Vec<Unknown>, Vec<(i64, Uuid)>) {
    let mut keys: BTreeMap<(i64, Uuid), bool> = BTreeMap::new();
    for item in items {
        *keys.entry(TransitionBatch::key(item)).or_default() |= is_start(item);
    }
    let (mut unknown, mut starting) = (Vec::new(), Vec::new());
    for (key, starts) in keys {
        match cache.take(&key).filter(|known| !starts || known.fixed.is_some()) {
            Some(known) => {
                if starts {
                    starting.push(key);
                }
                transitions.insert(key, LoadedMessage { from_cache: true, ..LoadedMessage::new(known, false) });
            }
            None => unknown.push((key, starts)),
        }
    }
    (unknown, starting)
}

/// Fails if a stale message was named by a receipt: the reference may name another message by now, and the cache forgets it.
fn forget_stale_references(cache: &Cache, items: &[ResolvedTransition<'_>], stale: &BTreeSet<(i64, Uuid)>) -> Result<()> {
    let mut is_named = false;
    for item in items.iter().filter(|item| stale.contains(&TransitionBatch::key(item))) {
        if let Some(receipt) = by_reference(item) {
            cache.remove_reference(item.tenant.0, receipt);
            is_named = true;
        }
    }
    if is_named { Err(StoreError::Busy("another node changed what a receipt names".to_owned())) } else { Ok(()) }
}

/// Fails if a receipt came too late for the message that the cache says it names: another node may have given the reference to a newer one.
fn forget_doubtful_references(cache: &Cache, items: &[ResolvedTransition<'_>], answers: &[Transitioned]) -> Result<()> {
    let lost = items.iter().zip(answers).filter(|(_, answer)| matches!(answer, Transitioned::Found { applied: Applied::Lost, .. }));
    let named = lost.filter_map(|(item, _)| Some((item.tenant.0, by_reference(item)?)));
    let cached: Vec<_> = named.filter(|(tenant, receipt)| cache.reference(*tenant, receipt).is_some()).collect();
    cached.iter().for_each(|(tenant, receipt)| cache.remove_reference(*tenant, receipt));
    if cached.is_empty() { Ok(()) } else { Err(StoreError::Busy("another node may have changed what a receipt names".to_owned())) }
}

/// Reads and locks messages that the cache had wrong, and applies their steps again.
async fn apply_again(
    session: &Session,
    transitions: &mut TransitionBatch,
    keys: &BTreeSet<(i64, Uuid)>,
    items: &[ResolvedTransition<'_>],
    answers: &mut [Transitioned],
) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let again: Vec<_> = keys.iter().map(|key| (*key, items.iter().any(|i| TransitionBatch::key(i) == *key && is_start(i)))).collect();
    keys.iter().for_each(|key| transitions.remove(key));
    load::load(session, transitions, &again).await?;
    let starting: Vec<_> = again.iter().filter(|(_, starts)| *starts).map(|(key, _)| *key).collect();
    starts::check(session, transitions, &starting, items).await?;
    for (item, answer) in items.iter().zip(answers).filter(|(item, _)| keys.contains(&TransitionBatch::key(item))) {
        *answer = transitions.apply(item)?;
    }
    Ok(())
}

fn is_start(item: &ResolvedTransition<'_>) -> bool {
    matches!(item.step, Step::Start { .. })
}

/// Writes the changed states of a batch (only these, if given), provided that they are as the batch found them; returns those written.
async fn update(
    session: &Session,
    transitions: &mut TransitionBatch,
    writes: &mut Writes,
    items: &[ResolvedTransition<'_>],
    only: Option<&BTreeSet<(i64, Uuid)>>,
) -> Result<Vec<StateWrite<'static>>> {
    let touched = transitions.touched().into_iter().filter(|(key, _)| only.is_none_or(|only| only.contains(key)));
    let states = touched.map(|(key, loaded)| writes.update(key, loaded)).collect::<Result<Vec<_>>>()?;
    if states.is_empty() {
        return Ok(states);
    }
    let named: HashMap<(i64, Uuid), &RawReceipt> =
        items.iter().filter_map(|item| Some((TransitionBatch::key(item), by_reference(item)?))).collect();
    let receipt = |s: &StateWrite<'_>| named.get(&(s.tenant, s.id)).copied();
    let rows = states::update(session, &states, receipt).await.map_err(failed)?;
    let written: HashSet<(i64, Uuid)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let (written, lost): (Vec<_>, Vec<_>) = states.into_iter().partition(|s| written.contains(&(s.tenant, s.id)));
    lost.iter().for_each(|write| writes.withdraw(write));
    Ok(written)
}
