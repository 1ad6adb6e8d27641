//! Rows of messages and of their states.

use rusqlite::params;

use super::Statements;
use super::commit::Batch;
use crate::cache::CachedRow;
use crate::message_batch::{MessageInsert, StateWrite};

const INSERT_MESSAGE: &str = r"
    INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id, recipient,
        sent_from, idempotency_key, spooled, request)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

const INSERT_STATE: &str = r"
    INSERT INTO states (tenant_id, id, status, wait, held, due_at, owner, fence, version, revision,
        expires_at, updated_at, channel, connection_id, agenda, provider, detail, history)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";

pub(super) const UPDATE_STATE: &str = r"
    UPDATE states
    SET status = ?3, wait = ?4, held = ?5, due_at = ?6, owner = ?7, fence = ?8, version = ?9,
        revision = ?10, expires_at = ?11, updated_at = ?12, channel = ?13, connection_id = ?14,
        agenda = ?15, provider = ?16, detail = ?17, history = ?18
    WHERE tenant_id = ?1 AND id = ?2 AND revision = ?10 - 1";

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
pub(super) fn put_state(sql: &mut Statements<'_>, statement: &'static str, write: &StateWrite<'_>) -> rusqlite::Result<bool> {
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
