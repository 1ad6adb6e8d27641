//! Message ids of providers, and receipts as providers sent them.

use nuncio_domain::id::Id as _;
use nuncio_store::RawReceipt;
use rusqlite::params;
use uuid::Uuid;

use super::{Statements, uuid};
use crate::message_batch::{Reference, ReferencedPart};

const FIND_REFERENCE: &str = r"
    SELECT message_id, attempt, part
    FROM provider_refs
    WHERE tenant_id = ?1 AND connection_id = ?2 AND reference = ?3";

const INSERT_REFERENCE: &str = r"
    INSERT INTO provider_refs (tenant_id, connection_id, reference, message_id, attempt, part)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT DO UPDATE SET message_id = excluded.message_id, attempt = excluded.attempt,
        part = excluded.part
    WHERE provider_refs.message_id < excluded.message_id";

const INSERT_RECEIPT: &str = r"
    INSERT OR IGNORE INTO receipts (tenant_id, id, message_id, connection_id, reference, raw)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// The message that a receipt names.
pub(super) fn find(sql: &mut Statements<'_>, tenant: i64, receipt: &RawReceipt) -> rusqlite::Result<Option<ReferencedPart>> {
    let connection = receipt.connection.uuid();
    let key = params![tenant, connection.as_bytes(), receipt.reference];
    sql.find(FIND_REFERENCE, key, |row| Ok((uuid(row.get(0)?), row.get(1)?, row.get(2)?)))
}

pub(super) fn insert(sql: &mut Statements<'_>, references: &[Reference<'_>]) -> rusqlite::Result<()> {
    for Reference { tenant, connection, reference, message, attempt, part } in references {
        sql.execute(INSERT_REFERENCE, params![tenant, connection.as_bytes(), reference, message.as_bytes(), attempt, part])?;
    }
    Ok(())
}

/// Inserts receipts, each with its tenant and message.
pub(super) fn insert_receipts(sql: &mut Statements<'_>, receipts: &[(i64, Uuid, &RawReceipt)]) -> rusqlite::Result<()> {
    for (tenant, message, receipt) in receipts {
        let (id, connection) = (receipt.id.uuid(), receipt.connection.uuid());
        let values = params![tenant, id.as_bytes(), message.as_bytes(), connection.as_bytes(), receipt.reference, receipt.raw];
        sql.execute(INSERT_RECEIPT, values)?;
    }
    Ok(())
}
