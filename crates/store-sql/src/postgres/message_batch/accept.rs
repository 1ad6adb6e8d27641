//! Writes batches of new messages.

use std::collections::HashMap;

use nuncio_domain::ContactId;
use nuncio_domain::id::Id as _;
use nuncio_store::{Accepted, Result};

use super::super::session::failed;
use super::super::writers::BatchError;
use super::commit::{CacheUpdates, commit, roll_back_unless};
use super::recipients::{self, Found};
use super::{Session, broadcasts, keys, ledger, load, messages, quotas};
use crate::cache::{Cache, CachedRow};
use crate::ledger_batch::LedgerBatch;
use crate::message_batch::{AcceptOp, AcceptOutcome, Prepared, RecipientUpdates, StateWrite, Writes};
use crate::quota::Quotas;

/// Writes a batch of new messages.
pub(in crate::postgres) async fn accept(session: &Session, cache: &Cache, ops: &[AcceptOp]) -> Result<Vec<AcceptOutcome>, BatchError> {
    let accepted = try_accept(session, cache, ops).await;
    roll_back_unless(session, &accepted).await;
    let (answers, outcome) = accepted?;
    outcome.remember(cache);
    Ok(answers)
}

async fn try_accept(session: &Session, cache: &Cache, ops: &[AcceptOp]) -> Result<(Vec<AcceptOutcome>, CacheUpdates), BatchError> {
    let all: Vec<&Prepared> = ops.iter().map(|op| &*op.item).collect();
    let mut answers: Vec<Option<Accepted>> = Vec::new();
    answers.resize_with(ops.len(), || None);
    let (begun, found) = tokio::join!(session.run("BEGIN"), recipients::find(session, &all));
    begun.map_err(failed)?;
    let found = found.map_err(failed)?;
    for ((answer, found), prepared) in answers.iter_mut().zip(&found).zip(&all) {
        if found.epoch != Some(prepared.item.epoch) {
            *answer = Some(Accepted::Stale);
        }
    }
    keys::claim(session, &all, &mut answers).await?;
    broadcasts::claim(session, &all, &mut answers).await?;
    let mut quotas = Quotas::default();
    for (prepared, found) in all.iter().zip(&found) {
        quotas.know(prepared.item.message.tenant.0, found.quota.map(|q| q.0), found.quota.map(|q| q.1));
    }
    let mut ledger = ledger::load(session, &all).await?;
    refuse(session, &all, &found, &mut ledger, &mut quotas, &mut answers).await?;
    let open: Vec<(usize, &Prepared, Found)> = all
        .iter()
        .zip(&found)
        .enumerate()
        .filter(|(n, _)| answers[*n].is_none())
        .map(|(n, (prepared, found))| (n, *prepared, *found))
        .collect();
    let new = recipients::message_inserts(&open)?;
    let mut writes = Writes::default();
    let states: Vec<StateWrite<'_>> = new.iter().map(|message| writes.insert(&message.encoded)).collect();
    let mut updates = RecipientUpdates::default();
    new.iter().for_each(|message| updates.insert(&message.encoded.message));
    let unknown = recipients::new_recipients(&open);
    let written = async { tokio::join!(recipients::insert(session, &unknown), messages::insert(session, &new, &states)) };
    let mut outcome = if ledger.is_empty() && quotas.added().is_empty() {
        // Sent together: if one of them fails, all that follow fail, including the commit.
        let ((addresses, messages), outcome) = tokio::join!(written, commit(session, cache, writes, &updates));
        addresses.and(messages).map_err(BatchError::of_commit)?;
        outcome?
    } else {
        let (addresses, messages) = written.await;
        addresses.and(messages).map_err(failed)?;
        quotas::add(session, &quotas).await?;
        ledger::write(session, &ledger).await?;
        commit(session, cache, writes, &updates).await?
    };
    outcome.messages =
        new.iter().zip(states).map(|(message, write)| ((write.tenant, write.id), CachedRow::inserted(message, write))).collect();
    let mut new = new.into_iter();
    let verdict = |answer: Option<Accepted>| answer.map(AcceptOutcome::Refused).or_else(|| new.next().map(AcceptOutcome::from));
    Ok((answers.into_iter().filter_map(verdict).collect(), outcome))
}

/// Reserves the cost of the new messages and counts their bytes. Refuses a message that exceeds the balance or the quota, and releases its
/// idempotency key.
async fn refuse(
    session: &Session,
    all: &[&Prepared],
    found: &[Found],
    ledger: &mut LedgerBatch,
    quotas: &mut Quotas,
    answers: &mut [Option<Accepted>],
) -> Result<(), BatchError> {
    let mut refused = HashMap::new();
    for (n, prepared) in all.iter().enumerate().filter(|(n, _)| answers[*n].is_none()).collect::<Vec<_>>() {
        let refusal = match quotas.refuse(prepared) {
            None if !found[n].suppressed => ledger.reserve(&prepared.item.message).err().map(Accepted::Short),
            refusal => refusal,
        };
        match refusal {
            Some(refusal) => {
                refused.insert(prepared.item.message.id, refusal.clone());
                answers[n] = Some(refusal);
            }
            None => quotas.keep(prepared),
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    // A message that lost its key to a refused one is refused too.
    for answer in answers.iter_mut() {
        if let Some(Accepted::Duplicate { original, .. }) = answer
            && let Some(refusal) = refused.get(original)
        {
            *answer = Some(refusal.clone());
        }
    }
    let refused = all.iter().copied().filter(|prepared| refused.contains_key(&prepared.item.message.id));
    broadcasts::release(session, refused.clone()).await?;
    Ok(keys::release(session, refused).await?)
}

/// After a lost commit: the answer to a new message, if it was written after all.
pub(in crate::postgres) async fn find_accepted(session: &Session, prepared: &Prepared) -> Result<Option<Accepted>> {
    let item = &prepared.item;
    let Some(message) = load::load_message(session, item.message.tenant, item.message.id).await? else { return Ok(None) };
    let found = recipients::find(session, &[prepared]).await.map_err(failed)?.pop().and_then(|found| found.known);
    let contact = found.map_or(item.new_contact, |(_, contact)| ContactId::from_uuid(contact));
    Ok(Some(Accepted::New { message: Box::new(message), contact }))
}
