//! Addresses, contacts and suppressions of the recipients of new messages.

use nuncio_domain::address::folded;
use nuncio_domain::id::Id as _;
use nuncio_domain::{AddressKind, SenderId};
use rusqlite::params;
use uuid::Uuid;

use super::{Statements, uuid};
use crate::message_batch::Prepared;

const FIND_ADDRESS: &str = "SELECT id, contact_id FROM addresses WHERE tenant_id = ?1 AND kind = ?2 AND identifier = ?3";
const INSERT_CONTACT: &str = r"
    INSERT INTO contacts (tenant_id, id, country, created_at, updated_at)
    VALUES (?1, ?2, ?3, ?4, ?4)";

const INSERT_ADDRESS: &str = r"
    INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Restores the opt-outs of an erased person who is known again.
const RESTORE_SUPPRESSIONS: &str = r"
    UPDATE OR IGNORE suppressions
    SET identifier = ?3
    WHERE tenant_id = ?1 AND kind = ?2 AND identifier = ?4";

// The `+` keeps the senders out of the index look-up: a list there would go into a temporary table, at ten times the cost.
const IS_SUPPRESSED: &str = r"
    SELECT 1
    FROM suppressions
    WHERE tenant_id = ?1
      AND kind = ?2
      AND identifier = ?3
      AND (+sender_id = zeroblob(16) OR +sender_id = ?4)
    LIMIT 1";

const IS_MARKED: &str = "SELECT 1 FROM suppressions WHERE tenant_id = ?1 AND kind = ?2 AND identifier = ?3 LIMIT 1";

/// What the database knows of a recipient.
pub(super) struct Found {
    /// Address and contact.
    pub(super) known: Option<(Uuid, Uuid)>,
    /// The recipient was erased and has suppressions under its mark.
    pub(super) marked: bool,
    pub(super) suppressed: bool,
}

pub(super) fn find(sql: &mut Statements<'_>, prepared: &Prepared) -> rusqlite::Result<Found> {
    let (item, message) = (&prepared.item, &prepared.item.message);
    let known = find_address(sql, prepared)?;
    // Only an unknown recipient can have suppressions under a mark, or one whose address was erased in another case.
    let marked = (known.is_none() || item.recipient.kind == AddressKind::Email) && is_marked(sql, prepared)?;
    let mut is_suppressed = |identifier: &str| is_suppressed(sql, message.tenant.0, item.recipient.kind, identifier, message.sender);
    let suppressed = is_suppressed(&item.recipient.identifier)? || marked && is_suppressed(&item.mark)?;
    Ok(Found { known, marked, suppressed })
}

fn find_address(sql: &mut Statements<'_>, prepared: &Prepared) -> rusqlite::Result<Option<(Uuid, Uuid)>> {
    let recipient = &prepared.item.recipient;
    let key = params![prepared.item.message.tenant.0, recipient.kind.number(), recipient.identifier];
    sql.find(FIND_ADDRESS, key, |row| Ok((uuid(row.get(0)?), uuid(row.get(1)?))))
}

fn is_marked(sql: &mut Statements<'_>, prepared: &Prepared) -> rusqlite::Result<bool> {
    let item = &prepared.item;
    sql.exists(IS_MARKED, params![item.message.tenant.0, item.recipient.kind.number(), item.mark])
}

/// Whether the recipient is suppressed, for this sender or for all.
pub(super) fn is_suppressed(
    sql: &mut Statements<'_>,
    tenant: i64,
    kind: AddressKind,
    identifier: &str,
    sender: SenderId,
) -> rusqlite::Result<bool> {
    sql.exists(IS_SUPPRESSED, params![tenant, kind.number(), &*folded(kind, identifier), sender.uuid().as_bytes()])
}

/// Inserts the address and contact of a new recipient, who has opt-outs to restore if `marked`.
pub(super) fn insert(sql: &mut Statements<'_>, prepared: &Prepared, marked: bool) -> rusqlite::Result<(Uuid, Uuid)> {
    let (item, tenant) = (&prepared.item, prepared.item.message.tenant.0);
    let (kind, identifier) = (item.recipient.kind.number(), &item.recipient.identifier);
    let (address, contact) = (item.new_address.uuid(), item.new_contact.uuid());
    sql.execute(INSERT_CONTACT, params![tenant, contact.as_bytes(), item.country, item.now.millis()])?;
    sql.execute(INSERT_ADDRESS, params![tenant, address.as_bytes(), kind, identifier, contact.as_bytes(), item.now.millis()])?;
    if marked {
        sql.execute(RESTORE_SUPPRESSIONS, params![tenant, kind, &*item.recipient.folded(), item.mark])?;
    }
    Ok((address, contact))
}
