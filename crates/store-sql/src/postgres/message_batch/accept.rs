//! Decides which new messages of a batch are written.

use std::collections::HashMap;

use nuncio_domain::ContactId;
use nuncio_domain::id::Id as _;
use nuncio_store::{Accepted, Result};

use super::super::batch_error::BatchError;
use super::super::session::failed;
use super::recipients::{self, Found};
use super::tenants::Tenants;
use super::{Session, broadcasts, keys, ledger, load};
use crate::ledger_batch::LedgerBatch;
use crate::message_batch::{AcceptOutcome, MessageInsert, Prepared};
use crate::quota::Quotas;

/// New messages of a batch: each is refused, or open to be inserted.
#[derive(Debug, Default)]
pub(super) struct Admission<'a> {
    refused: Vec<Option<Accepted>>,
    pub(super) open: Vec<(&'a Prepared, Found)>,
    pub(super) quotas: Quotas,
}

impl<'a> Admission<'a> {
    /// The outcome of each message, in the order of the batch. `inserted` are the open ones.
    pub(super) fn outcomes(self, inserted: Vec<MessageInsert<'a>>) -> Vec<AcceptOutcome> {
        let mut inserted = inserted.into_iter();
        let outcome = |refused: Option<Accepted>| refused.map(AcceptOutcome::Refused).or_else(|| inserted.next().map(AcceptOutcome::from));
        self.refused.into_iter().filter_map(outcome).collect()
    }
}

/// Decides which messages of a batch are inserted, from what the database knows of their recipients. Claims their idempotency keys and
/// recipients of broadcasts, and reserves what they may cost in `ledger`.
pub(super) async fn admit<'a>(
    session: &Session,
    all: &[&'a Prepared],
    tenants: Tenants,
    found: &[Found],
    ledger: &mut LedgerBatch,
) -> Result<Admission<'a>, BatchError> {
    let mut refused: Vec<Option<Accepted>> = Vec::new();
    refused.resize_with(all.len(), || None);
    for (refused, prepared) in refused.iter_mut().zip(all) {
        if tenants.epochs.get(&prepared.item.message.tenant.0) != Some(&prepared.item.epoch) {
            *refused = Some(Accepted::Stale);
        }
    }
    keys::claim(session, all, &mut refused).await?;
    broadcasts::claim(session, all, &mut refused).await?;
    let mut quotas = tenants.quotas;
    ledger::load(session, all, ledger).await?;
    refuse(session, all, found, ledger, &mut quotas, &mut refused).await?;
    let open = all.iter().zip(found).zip(&refused).filter(|(_, refused)| refused.is_none());
    let open = open.map(|((prepared, found), _)| (*prepared, *found)).collect();
    Ok(Admission { refused, open, quotas })
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
