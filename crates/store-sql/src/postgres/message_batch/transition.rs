//! Applies batches of transitions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::Step;
use nuncio_store::{RawReceipt, Result, StoreError, Transitioned};
use uuid::Uuid;

use super::super::session::failed;
use super::super::writers::BatchError;
use super::commit::{CacheUpdates, commit, roll_back_unless};
use super::states::StateColumns;
use super::{Session, column, ledger, load, receipts, references, starts};
use crate::cache::{Cache, CachedRow};
use crate::ledger_batch::LedgerBatch;
use crate::message_batch::{
    LoadedMessage, Reference, ResolvedTransition, StateWrite, TransitionBatch, TransitionOp, Writes, asks_broadcast, by_reference,
};

/// Applies a batch of transitions.
pub(in crate::postgres) async fn transition(
    session: &Session,
    cache: &Cache,
    ops: &[TransitionOp],
) -> Result<Vec<Transitioned>, BatchError> {
    let changed = try_transition(session, cache, ops).await;
    roll_back_unless(session, &changed).await;
    let (answers, outcome) = changed?;
    outcome.remember(cache);
    Ok(answers)
}

async fn try_transition(session: &Session, cache: &Cache, ops: &[TransitionOp]) -> Result<(Vec<Transitioned>, CacheUpdates), BatchError> {
    let items = references::resolve(session, cache, ops).await?;
    let mut transitions = TransitionBatch::default();
    let (unknown, mut starting) = take_known(cache, &items, &mut transitions);
    let mut begun = false;
    begin_with(session, &mut begun, !unknown.is_empty(), load::load(session, &mut transitions, &unknown)).await?;
    starting.extend(unknown.iter().filter(|(_, starts)| *starts).map(|(key, _)| *key));
    let asks = items.iter().any(|item| asks_broadcast(&item.step));
    begin_with(session, &mut begun, asks, starts::check(session, &mut transitions, &starting, &items)).await?;
    let mut writes = Writes::default();
    let mut answers = items.iter().map(|item| transitions.apply(item)).collect::<Result<Vec<_>>>()?;
    let doubtful = transitions.doubtful(&items, &answers);
    begin_with(session, &mut begun, !doubtful.is_empty(), apply_again(session, &mut transitions, &doubtful, &items, &mut answers)).await?;
    let mut states = begin_with(session, &mut begun, true, update(session, &mut transitions, &mut writes, &items, None)).await?;
    let stale: BTreeSet<(i64, Uuid)> =
        transitions.touched().into_iter().map(|(key, _)| key).filter(|key| !states.iter().any(|s| (s.tenant, s.id) == *key)).collect();
    forget_stale_references(cache, &items, &stale)?;
    if !stale.is_empty() {
        // Another node has written these meanwhile: they are read, locked and changed again.
        apply_again(session, &mut transitions, &stale, &items, &mut answers).await?;
        states.extend(update(session, &mut transitions, &mut writes, &items, Some(&stale)).await?);
    }
    let mut ledger = LedgerBatch::default();
    let mut messages = Vec::with_capacity(states.len());
    for write in states {
        let key = (write.tenant, write.id);
        let Some(loaded) = transitions.get(&key) else { continue };
        writes.written(&write, loaded);
        ledger.settle(key, loaded);
        let CachedRow { state, address, .. } = &loaded.row;
        messages.push((key, CachedRow::after(write, state.clone(), *address, None)));
    }
    let (new_references, receipts, updates) =
        (transitions.references(&items), transitions.receipts(&items), transitions.recipient_updates());
    ledger::write(session, &ledger).await?;
    let (kept, noted, outcome) = tokio::join!(
        references::insert(session, &new_references),
        receipts::insert(session, &receipts),
        commit(session, cache, writes, &updates)
    );
    kept.and(noted).map_err(BatchError::of_commit)?;
    let mut outcome = outcome?;
    outcome.messages = messages;
    let named = |r: &Reference<'_>| (r.tenant, r.connection, r.reference.to_owned(), (r.message, r.attempt, r.part));
    outcome.references = new_references.iter().map(named).collect();
    Ok((answers, outcome))
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

/// Runs a part of a transaction if it is wanted; sends `BEGIN` together with the first part that runs.
async fn begin_with<T: Default>(session: &Session, begun: &mut bool, wanted: bool, part: impl Future<Output = Result<T>>) -> Result<T> {
    match (wanted, std::mem::replace(begun, *begun || wanted)) {
        (false, _) => Ok(T::default()),
        (true, true) => part.await,
        (true, false) => {
            let (began, done) = tokio::join!(session.run("BEGIN"), part);
            began.map_err(failed)?;
            done
        }
    }
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
    let receipts = column(&states, |s| named.get(&(s.tenant, s.id)).copied());
    let connections = column(&receipts, |r| r.map(|r| r.connection.uuid()));
    let references = column(&receipts, |r| r.map(|r| r.reference.as_str()));
    let rows = {
        let columns = StateColumns::new(&states);
        let mut params = columns.params().to_vec();
        params.push(&connections);
        params.push(&references);
        session.query(&session.statements.update_states, &params).await.map_err(failed)?
    };
    let written: HashSet<(i64, Uuid)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let (written, lost): (Vec<_>, Vec<_>) = states.into_iter().partition(|s| written.contains(&(s.tenant, s.id)));
    lost.iter().for_each(|write| writes.withdraw(write));
    Ok(written)
}
