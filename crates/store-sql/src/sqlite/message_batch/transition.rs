//! Applies batches of transitions.

use nuncio_store::{Result, Transitioned};
use uuid::Uuid;

use super::super::rusqlite_error as failed;
use super::commit::Batch;
use super::load::load;
use super::messages::{UPDATE_STATE, put_state};
use super::{Statements, broadcasts, ledger, references};
use crate::cache::{Cache, CachedRow};
use crate::ledger_batch::LedgerBatch;
use crate::message_batch::{ResolvedTransition, TransitionBatch, TransitionOp, with_messages};
use crate::row::corrupt;

/// Applies a batch of transitions. The answers must not be given before the commit.
pub(in crate::sqlite) fn transition(
    sql: &mut Statements<'_>,
    batch: &mut Batch,
    cache: &Cache,
    ops: &[TransitionOp],
) -> Result<Vec<Transitioned>> {
    let items = with_messages(ops, |tenant, receipt| match cache.reference(tenant, receipt) {
        Some(named) => Ok(Some(named)),
        None => references::find(sql, tenant, receipt).map_err(failed),
    })?;
    let mut transitions = TransitionBatch::default();
    let answers = apply(sql, cache, &mut transitions, &items)?;
    let new = transitions.references(&items);
    references::insert(sql, &new).map_err(failed)?;
    batch.references.extend(new.iter().map(|r| (r.tenant, r.connection, r.reference.to_owned(), (r.message, r.attempt, r.part))));
    references::insert_receipts(sql, &transitions.receipts(&items)).map_err(failed)?;
    let ledger = update(sql, batch, &mut transitions)?;
    broadcasts::write(sql, &transitions.recipient_updates()).map_err(failed)?;
    ledger::write(sql, &ledger).map_err(failed)?;
    Ok(answers)
}

/// Loads the messages of a batch and applies the steps. Where the cache may have been wrong, loads and applies again.
fn apply(
    sql: &mut Statements<'_>,
    cache: &Cache,
    transitions: &mut TransitionBatch,
    items: &[ResolvedTransition<'_>],
) -> Result<Vec<Transitioned>> {
    for item in items {
        let key = TransitionBatch::key(item);
        if !transitions.contains(&key) {
            insert(sql, cache, transitions, key, items)?;
        }
    }
    let mut answers = items.iter().map(|item| transitions.apply(item)).collect::<Result<Vec<_>>>()?;
    for key in transitions.doubtful(items, &answers) {
        transitions.remove(&key);
        insert(sql, cache, transitions, key, items)?;
        for (item, answer) in items.iter().zip(&mut answers).filter(|(item, _)| TransitionBatch::key(item) == key) {
            *answer = transitions.apply(item)?;
        }
    }
    Ok(answers)
}

/// Adds a message to `transitions`, if it exists.
fn insert(
    sql: &mut Statements<'_>,
    cache: &Cache,
    transitions: &mut TransitionBatch,
    key: (i64, Uuid),
    items: &[ResolvedTransition<'_>],
) -> Result<()> {
    if let Some(loaded) = load(sql, cache, key, items)? {
        transitions.insert(key, loaded);
    }
    Ok(())
}

/// Writes the changed states; returns what they move in the ledger.
fn update(sql: &mut Statements<'_>, batch: &mut Batch, transitions: &mut TransitionBatch) -> Result<LedgerBatch> {
    let mut ledger = LedgerBatch::default();
    for (key, loaded) in transitions.touched() {
        let write = batch.writes.update(key, loaded)?;
        if !put_state(sql, UPDATE_STATE, &write).map_err(failed)? {
            batch.stale = true;
            return Err(corrupt("states", format!("{} is not at revision {}", key.1, loaded.row.revision)));
        }
        batch.writes.written(&write, loaded);
        ledger.settle(key, loaded);
        let CachedRow { state, address, .. } = &loaded.row;
        batch.messages.push((key, CachedRow::after(write, state.clone(), *address, None)));
    }
    Ok(ledger)
}
