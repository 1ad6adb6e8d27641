//! Recipients of broadcasts, and the counts of the broadcasts.

use nuncio_domain::broadcast::{ContactStatus, Counts, Halt, Part, Status};
use nuncio_domain::id::Id as _;
use rusqlite::params;
use uuid::Uuid;

use super::statements::{ADD_COUNTS, BROADCAST_STATUS, IS_CONTACT_PENDING, Statements, UPDATE_CONTACT};
use crate::message_batch::{RecipientUpdate, RecipientUpdates};

/// Whether a recipient is pending, and the broadcast is being sent and has this fence.
pub(super) fn is_pending(sql: &mut Statements<'_>, tenant: i64, part: Part, fence: i64) -> rusqlite::Result<bool> {
    let (pending, sending) = (ContactStatus::Pending.number(), Status::Sending.number());
    let key = (part.broadcast.uuid(), part.contact.uuid());
    sql.exists(IS_CONTACT_PENDING, params![tenant, key.0.as_bytes(), key.1.as_bytes(), pending, sending, fence])
}

/// Why a broadcast lets no attempt start, if it does not.
pub(super) fn halt(sql: &mut Statements<'_>, tenant: i64, broadcast: Uuid) -> rusqlite::Result<Option<Halt>> {
    let status = sql.find(BROADCAST_STATUS, params![tenant, broadcast.as_bytes()], |row| row.get(0))?;
    Ok(status.and_then(Status::from_number).and_then(Status::halt))
}

/// Updates recipients and adds to the counts.
pub(super) fn write(sql: &mut Statements<'_>, updates: &RecipientUpdates) -> rusqlite::Result<()> {
    updates.contacts.iter().try_for_each(|update| update_contact(sql, update))?;
    add_counts(sql, updates)
}

pub(super) fn update_contact(sql: &mut Statements<'_>, update: &RecipientUpdate) -> rusqlite::Result<()> {
    let key = (update.part.broadcast.uuid(), update.part.contact.uuid());
    let values = params![update.tenant, key.0.as_bytes(), key.1.as_bytes(), update.status.number(), update.message.map(Uuid::into_bytes)];
    sql.execute(UPDATE_CONTACT, values)?;
    Ok(())
}

pub(super) fn add_counts(sql: &mut Statements<'_>, updates: &RecipientUpdates) -> rusqlite::Result<()> {
    for ((tenant, broadcast), counts) in &updates.counts {
        let Counts { queued, sending, sent, delivered, failed, skipped, awaited, taken, cost, prepaid, held } = counts;
        sql.get(ADD_COUNTS)?.execute(params![
            tenant,
            broadcast.as_bytes(),
            queued,
            sending,
            sent,
            delivered,
            failed,
            skipped,
            awaited,
            taken,
            cost,
            prepaid,
            held
        ])?;
    }
    Ok(())
}
