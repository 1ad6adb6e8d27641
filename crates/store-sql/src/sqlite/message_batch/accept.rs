//! Writes batches of new messages.

use nuncio_domain::TenantId;
use nuncio_store::{Accepted, Result};

use super::super::rusqlite_error as failed;
use super::commit::Batch;
use super::{Statements, broadcasts, keys, ledger, messages, recipients};
use crate::ledger_batch::LedgerBatch;
use crate::message_batch::{AcceptOp, AcceptOutcome, Prepared, RecipientUpdates, tenants};
use crate::quota::Quotas;

const EPOCH_AND_QUOTA: &str = r"
    SELECT w.epoch, q.max_bytes, q.stored_bytes
    FROM worlds w
    LEFT JOIN storage_quotas q ON q.tenant_id = w.tenant_id
    WHERE w.tenant_id = ?1";

const ADD_STORED_BYTES: &str = "UPDATE storage_quotas SET stored_bytes = stored_bytes + ?2 WHERE tenant_id = ?1";

/// Writes a batch of new messages. The answers must not be given before the commit.
pub(in crate::sqlite) fn accept(sql: &mut Statements<'_>, batch: &mut Batch, ops: &[AcceptOp]) -> Result<Vec<AcceptOutcome>> {
    let (epochs, mut quotas) = epochs_and_quotas(sql, ops).map_err(failed)?;
    let mut ledger = ledger::load(sql, ops).map_err(failed)?;
    let mut updates = RecipientUpdates::default();
    let accepted = ops
        .iter()
        .map(|op| {
            let prepared = &op.item;
            let is_current =
                epochs.iter().any(|(tenant, epoch)| *tenant == prepared.item.message.tenant && *epoch == Some(prepared.item.epoch));
            if !is_current {
                return Ok(AcceptOutcome::Refused(Accepted::Stale));
            }
            accept_one(sql, batch, prepared, &mut ledger, &mut quotas, &mut updates).map_err(failed)?
        })
        .collect::<Result<Vec<_>>>()?;
    broadcasts::write(sql, &updates).map_err(failed)?;
    for (tenant, bytes) in quotas.added() {
        sql.execute(ADD_STORED_BYTES, [tenant, bytes]).map_err(failed)?;
    }
    ledger::write(sql, &ledger).map_err(failed)?;
    Ok(accepted)
}

/// Each tenant of a batch with its epoch, `None` if the tenant is gone.
type Epochs = Vec<(TenantId, Option<i64>)>;

/// Reads the epochs and storage quotas of the tenants of a batch.
fn epochs_and_quotas(sql: &mut Statements<'_>, ops: &[AcceptOp]) -> rusqlite::Result<(Epochs, Quotas)> {
    let mut epochs = Vec::new();
    let mut quotas = Quotas::default();
    for tenant in tenants(ops) {
        let found = sql.find(EPOCH_AND_QUOTA, [tenant.0], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?)))?;
        epochs.push((tenant, found.map(|(epoch, ..)| epoch)));
        found.iter().for_each(|(_, max_bytes, stored_bytes)| quotas.know(tenant.0, *max_bytes, *stored_bytes));
    }
    Ok((epochs, quotas))
}

fn accept_one(
    sql: &mut Statements<'_>,
    batch: &mut Batch,
    prepared: &Prepared,
    ledger: &mut LedgerBatch,
    quotas: &mut Quotas,
    updates: &mut RecipientUpdates,
) -> rusqlite::Result<Result<AcceptOutcome>> {
    let item = &prepared.item;
    let message = &item.message;
    if let Some(membership) = message.state.detail.broadcast
        && !broadcasts::claim(sql, message, membership, item.broadcast_fence)?
    {
        return Ok(Ok(AcceptOutcome::Refused(Accepted::Closed)));
    }
    if let Some(key) = &item.idempotency
        && let Some(original) = keys::claim(sql, prepared, key)?
    {
        updates.release(message);
        return Ok(Ok(AcceptOutcome::Refused(original)));
    }
    let found = recipients::find(sql, prepared)?;
    let refusal = match quotas.refuse(prepared) {
        None if !found.suppressed => ledger.reserve(message).err().map(Accepted::Short),
        refusal => refusal,
    };
    if let Some(refusal) = refusal {
        if let Some(key) = &item.idempotency {
            keys::release(sql, message.tenant, key)?;
        }
        updates.release(message);
        return Ok(Ok(AcceptOutcome::Refused(refusal)));
    }
    quotas.keep(prepared);
    let known = match found.known {
        Some(known) => known,
        None => recipients::insert(sql, prepared, found.marked)?,
    };
    let new = match prepared.to_insert(found.suppressed, known) {
        Ok(new) => new,
        Err(error) => return Ok(Err(error)),
    };
    messages::insert(sql, batch, &new)?;
    updates.insert(&new.encoded.message);
    Ok(Ok(new.into()))
}
