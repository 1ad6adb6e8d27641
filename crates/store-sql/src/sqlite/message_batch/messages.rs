//! Rows of messages and of their states.

use rusqlite::params;

use super::commit::Batch;
use super::statements::{INSERT_MESSAGE, INSERT_STATE, Statements};
use crate::cache::CachedRow;
use crate::message_batch::{MessageInsert, StateWrite};

/// Inserts a message and its state.
pub(super) fn insert(sql: &mut Statements<'_>, batch: &mut Batch, new: &MessageInsert<'_>) -> rusqlite::Result<()> {
    let encoded = &new.encoded;
    let fixed = &encoded.fixed;
    sql.get(INSERT_MESSAGE)?.execute(params![
        fixed.tenant_id,
        fixed.id.as_bytes(),
        fixed.direction,
        fixed.message_type,
        fixed.sender_id.as_bytes(),
        new.address.as_bytes(),
        fixed.recipient,
        fixed.sent_from,
        fixed.idempotency_key,
        fixed.spooled,
        fixed.request,
    ])?;
    let write = batch.writes.insert(encoded);
    put_state(sql, INSERT_STATE, &write)?;
    batch.messages.push(((fixed.tenant_id, fixed.id), CachedRow::inserted(new, write)));
    Ok(())
}

/// Inserts or updates a state; returns whether the row was written.
pub(super) fn put_state(sql: &mut Statements<'_>, statement: usize, write: &StateWrite<'_>) -> rusqlite::Result<bool> {
    let StateWrite { tenant, id, row, revision, agenda, history } = write;
    let rows = sql.get(statement)?.execute(params![
        tenant,
        id.as_bytes(),
        row.status,
        row.wait,
        row.held,
        row.due_at,
        row.owner,
        row.fence,
        row.version,
        revision,
        row.expires_at,
        row.updated_at,
        row.channel,
        row.connection_id.as_bytes(),
        agenda,
        row.provider,
        row.detail,
        history,
    ])?;
    Ok(rows == 1)
}
