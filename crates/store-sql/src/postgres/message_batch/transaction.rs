//! Writes a batch of new messages and transitions in one transaction.

use nuncio_store::{Result, Transitioned};

use super::super::batch_error::BatchError;
use super::super::session::failed;
use super::commit::{Written, commit};
use super::transition::{self, AppliedTransitions};
use super::{DirectWrites, Session, accept, direct, ledger, messages, recipients, references, tenants};
use crate::cache::{Cache, CachedRow};
use crate::ledger_batch::LedgerBatch;
use crate::message_batch::{AcceptOp, AcceptOutcome, Prepared, Reference, StateWrite, TransitionOp, Writes};

/// Writes a batch in one transaction.
pub(in crate::postgres) async fn write(
    session: &Session,
    cache: &Cache,
    direct_writes: &mut DirectWrites,
    accepts: &[AcceptOp],
    transitions: &[TransitionOp],
) -> Result<(Vec<AcceptOutcome>, Vec<Transitioned>), BatchError> {
    let written = match write_directly(session, cache, direct_writes, accepts, transitions).await {
        Ok(None) => try_write(session, cache, accepts, transitions).await,
        Ok(Some(written)) => Ok(written),
        Err(error) => Err(error),
    };
    if written.is_err() && !session.is_closed() {
        let _ = session.run("ROLLBACK").await; // without a transaction PostgreSQL only warns
    }
    let (accepted, transitioned, updates) = written?;
    updates.remember(cache);
    Ok((accepted, transitioned))
}

/// Writes new messages in one round trip, if there is nothing else and the last ones could be; `None` if they cannot.
async fn write_directly(
    session: &Session,
    cache: &Cache,
    direct_writes: &mut DirectWrites,
    accepts: &[AcceptOp],
    transitions: &[TransitionOp],
) -> Result<Option<Written>, BatchError> {
    let all: Vec<&Prepared> = accepts.iter().map(|op| &*op.item).collect();
    if !transitions.is_empty() || !direct::is_possible(&all) || !direct_writes.take_turn() {
        return Ok(None);
    }
    let written = direct::write(session, cache, &all).await?;
    if written.is_none() {
        direct_writes.failed();
    }
    Ok(written)
}

async fn try_write(session: &Session, cache: &Cache, accepts: &[AcceptOp], ops: &[TransitionOp]) -> Result<Written, BatchError> {
    let all: Vec<&Prepared> = accepts.iter().map(|op| &*op.item).collect();
    let items = references::resolve(session, cache, ops).await?;
    let mut writes = Writes::default();
    let (begun, tenants, found, applied) = tokio::join!(
        session.run("BEGIN"),
        tenants::find(session, accepts),
        recipients::find(session, &all),
        transition::apply(session, cache, &items, &mut writes)
    );
    begun.map_err(failed)?;
    let (tenants, found, applied) = (tenants.map_err(failed)?, found.map_err(failed)?, applied?);
    let mut ledger = LedgerBatch::default();
    applied.settle(&mut ledger);
    let admission = accept::admit(session, &all, tenants, &found, &mut ledger).await?;
    let new = recipients::message_inserts(&admission.open)?;
    let states: Vec<StateWrite<'_>> = new.iter().map(|message| writes.insert(&message.encoded)).collect();
    let mut updates = applied.transitions.recipient_updates();
    new.iter().for_each(|message| updates.insert(&message.encoded.message));
    let (references, receipts) = (applied.transitions.references(&items), applied.transitions.receipts(&items));
    let unknown = recipients::new_recipients(&admission.open);
    let rows = async {
        let (addresses, messages, kept, noted) = tokio::join!(
            recipients::insert(session, &unknown),
            messages::insert(session, &new, &states),
            references::insert(session, &references),
            references::insert_receipts(session, &receipts)
        );
        addresses.and(messages).and(kept).and(noted)
    };
    let mut outcome = if ledger.is_empty() && admission.quotas.added().is_empty() {
        // Sent together: if one of them fails, all that follow fail, including the commit.
        let (written, outcome) = tokio::join!(rows, commit(session, cache, writes, &updates));
        written.map_err(BatchError::of_commit)?;
        outcome?
    } else {
        rows.await.map_err(failed)?;
        tenants::add_stored(session, &admission.quotas).await?;
        ledger::write(session, &ledger).await?;
        commit(session, cache, writes, &updates).await?
    };
    let named = |r: &Reference<'_>| (r.tenant, r.connection, r.reference.to_owned(), (r.message, r.attempt, r.part));
    outcome.references = references.iter().map(named).collect();
    let inserted = new.iter().zip(states).map(|(message, write)| ((write.tenant, write.id), CachedRow::inserted(message, write)));
    outcome.messages = inserted.collect();
    let AppliedTransitions { transitions, answers, states } = applied;
    outcome.messages.extend(AppliedTransitions::rows(states, &transitions));
    Ok((admission.outcomes(new), answers, outcome))
}
