//! Writes batches of new messages.

use std::collections::HashMap;

use nuncio_domain::ContactId;
use nuncio_domain::id::Id as _;
use nuncio_store::{Accepted, Result};

use super::super::session::failed;
use super::super::writers::Trouble;
use super::commit::{Outcome, commit, roll_back_unless};
use super::recipients::{self, Found};
use super::{Session, broadcasts, keys, ledger, load, messages, quotas};
use crate::known::{Known, Memory};
use crate::ledger_batch::Till;
use crate::message_batch::{AcceptOp, Moves, Prepared, StateWrite, Verdict, Writes};
use crate::quota::Quotas;

/// Writes a batch of new messages.
pub(in crate::postgres) async fn accept(session: &Session, memory: &Memory, ops: &[AcceptOp]) -> Result<Vec<Verdict>, Trouble> {
    let accepted = try_accept(session, memory, ops).await;
    roll_back_unless(session, &accepted).await;
    let (answers, outcome) = accepted?;
    outcome.remember(memory);
    Ok(answers)
}

async fn try_accept(session: &Session, memory: &Memory, ops: &[AcceptOp]) -> Result<(Vec<Verdict>, Outcome), Trouble> {
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
    let states: Vec<StateWrite<'_>> = new.iter().map(|message| writes.born(&message.born)).collect();
    let mut moves = Moves::default();
    new.iter().for_each(|message| moves.born(&message.born.message));
    let unknown = recipients::new_recipients(&open);
    let written = async { tokio::join!(recipients::insert(session, &unknown), messages::insert(session, &new, &states)) };
    let mut outcome = if ledger.is_empty() && quotas.added().is_empty() {
        // Sent together: if one of them fails, all that follow fail, including the commit.
        let ((addresses, messages), outcome) = tokio::join!(written, commit(session, memory, writes, &moves));
        addresses.and(messages).map_err(Trouble::of_commit)?;
        outcome?
    } else {
        let (addresses, messages) = written.await;
        addresses.and(messages).map_err(failed)?;
        quotas::add(session, &quotas).await?;
        ledger::write(session, &ledger).await?;
        commit(session, memory, writes, &moves).await?
    };
    outcome.known = new.iter().zip(states).map(|(message, write)| ((write.tenant, write.id), Known::born(message, write))).collect();
    let mut new = new.into_iter();
    let verdict = |answer: Option<Accepted>| answer.map(Verdict::Refused).or_else(|| new.next().map(Verdict::from));
    Ok((answers.into_iter().filter_map(verdict).collect(), outcome))
}

/// Reserves the cost of the new messages and counts their bytes. Refuses a message that exceeds the balance or the quota, and releases its
/// idempotency key.
async fn refuse(
    session: &Session,
    all: &[&Prepared],
    found: &[Found],
    ledger: &mut Till,
    quotas: &mut Quotas,
    answers: &mut [Option<Accepted>],
) -> Result<(), Trouble> {
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
    let refused: Vec<&Prepared> = all.iter().copied().filter(|prepared| refused.contains_key(&prepared.item.message.id)).collect();
    Ok(keys::release(session, &refused).await?)
}

/// After a lost commit: the answer to a new message, if it was written after all.
pub(in crate::postgres) async fn find_accepted(session: &Session, prepared: &Prepared) -> Result<Option<Accepted>> {
    let item = &prepared.item;
    let Some(message) = load::load_message(session, item.message.tenant, item.message.id).await? else { return Ok(None) };
    let found = recipients::find(session, &[prepared]).await.map_err(failed)?.pop().and_then(|found| found.known);
    let contact = found.map_or(item.new_contact, |(_, contact)| ContactId::from_uuid(contact));
    Ok(Some(Accepted::New { message: Box::new(message), contact }))
}
