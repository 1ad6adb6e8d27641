//! Idempotency keys of new messages.

use nuncio_domain::id::Id as _;
use nuncio_domain::{MessageId, TenantId, limits};
use nuncio_store::{Accepted, Idempotency};
use rusqlite::params;

use super::{Statements, uuid};
use crate::message_batch::Prepared;

const INSERT_KEY: &str = r"
    INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO NOTHING";

const FIND_KEY: &str = r"
    SELECT resource_id, fingerprint
    FROM idempotency_keys
    WHERE tenant_id = ?1 AND operation = ?2 AND key = ?3";

const DELETE_KEY: &str = "DELETE FROM idempotency_keys WHERE tenant_id = ?1 AND operation = ?2 AND key = ?3";

/// Claims the idempotency key of a message, or returns the message that holds it.
pub(super) fn claim(sql: &mut Statements<'_>, prepared: &Prepared, key: &Idempotency) -> rusqlite::Result<Option<Accepted>> {
    let message = &prepared.item.message;
    let inserted = sql.get(INSERT_KEY)?.execute(params![
        message.tenant.0,
        key.operation.number(),
        key.key,
        key.fingerprint,
        message.id.uuid().as_bytes(),
        prepared.item.now.plus(limits::IDEMPOTENCY_RETENTION).millis()
    ])?;
    if inserted == 1 {
        return Ok(None);
    }
    sql.get(FIND_KEY)?
        .query_row(params![message.tenant.0, key.operation.number(), key.key], |row| {
            let original = MessageId::from_uuid(uuid(row.get(0)?));
            let fingerprint: Vec<u8> = row.get(1)?;
            Ok(Accepted::Duplicate { original, same_request: fingerprint == key.fingerprint })
        })
        .map(Some)
}

/// Releases the key of a refused message.
pub(super) fn release(sql: &mut Statements<'_>, tenant: TenantId, key: &Idempotency) -> rusqlite::Result<()> {
    sql.execute(DELETE_KEY, params![tenant.0, key.operation.number(), key.key])?;
    Ok(())
}
