//! Applies batches of transitions.

use nuncio_store::{Result, Transitioned};
use uuid::Uuid;

use super::super::rusqlite_error as failed;
use super::commit::Batch;
use super::load::load;
use super::messages::put_state;
use super::statements::{Statements, UPDATE_STATE};
use super::{broadcasts, ledger, references};
use crate::known::{Known, Memory};
use crate::ledger_batch::Till;
use crate::message_batch::{Fold, Item, TransitionOp, items};
use crate::row::corrupt;

/// Applies a batch of transitions. The answers must not be given before the commit.
pub(in crate::sqlite) fn transition(
    sql: &mut Statements<'_>,
    batch: &mut Batch,
    memory: &Memory,
    ops: &[TransitionOp],
) -> Result<Vec<Transitioned>> {
    let items = items(ops, |tenant, receipt| match memory.named(tenant, receipt) {
        Some(named) => Ok(Some(named)),
        None => references::find(sql, tenant, receipt).map_err(failed),
    })?;
    let mut fold = Fold::default();
    let answers = apply(sql, memory, &mut fold, &items)?;
    let new = fold.references(&items);
    references::insert(sql, &new).map_err(failed)?;
    batch.references.extend(new.iter().map(|r| (r.tenant, r.connection, r.reference.to_owned(), (r.message, r.attempt, r.part))));
    references::insert_receipts(sql, &fold.receipts(&items)).map_err(failed)?;
    let ledger = update(sql, batch, &mut fold)?;
    broadcasts::write(sql, &fold.moves()).map_err(failed)?;
    ledger::write(sql, &ledger).map_err(failed)?;
    Ok(answers)
}

/// Loads the messages of a batch and applies the steps. Where the cache may have been wrong, loads and applies again.
fn apply(sql: &mut Statements<'_>, memory: &Memory, fold: &mut Fold, items: &[Item<'_>]) -> Result<Vec<Transitioned>> {
    for item in items {
        let key = Fold::key(item);
        if !fold.contains(&key) {
            insert(sql, memory, fold, key, items)?;
        }
    }
    let mut answers = items.iter().map(|item| fold.apply(item)).collect::<Result<Vec<_>>>()?;
    for key in fold.doubtful(items, &answers) {
        fold.remove(&key);
        insert(sql, memory, fold, key, items)?;
        for (item, answer) in items.iter().zip(&mut answers).filter(|(item, _)| Fold::key(item) == key) {
            *answer = fold.apply(item)?;
        }
    }
    Ok(answers)
}

/// Adds a message to `fold`, if it exists.
fn insert(sql: &mut Statements<'_>, memory: &Memory, fold: &mut Fold, key: (i64, Uuid), items: &[Item<'_>]) -> Result<()> {
    if let Some(loaded) = load(sql, memory, key, items)? {
        fold.insert(key, loaded);
    }
    Ok(())
}

/// Writes the changed states; returns what they move in the ledger.
fn update(sql: &mut Statements<'_>, batch: &mut Batch, fold: &mut Fold) -> Result<Till> {
    let mut ledger = Till::default();
    for (key, loaded) in fold.touched() {
        let write = batch.writes.update(key, loaded)?;
        if !put_state(sql, UPDATE_STATE, &write).map_err(failed)? {
            batch.stale = true;
            return Err(corrupt("states", format!("{} is not at revision {}", key.1, loaded.known.revision)));
        }
        batch.writes.written(&write, loaded);
        ledger.settle(key, loaded);
        let Known { state, address, .. } = &loaded.known;
        batch.known.push((key, Known::after(write, state.clone(), *address, None)));
    }
    Ok(ledger)
}
