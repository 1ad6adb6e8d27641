//! Recipients of broadcasts, and the counts of the broadcasts.

use nuncio_domain::broadcast::{Counts, Halt, Status};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Membership, Message};
use rusqlite::params;
use uuid::Uuid;

use super::statements::{ADD_COUNTS, BROADCAST_STATUS, CLAIM_CONTACT, Statements, UPDATE_CONTACT};
use crate::message_batch::{RecipientUpdate, RecipientUpdates};

/// Gives a recipient its message; `false` if it is not pending, or the broadcast is not being sent or has another fence.
pub(super) fn claim(sql: &mut Statements<'_>, message: &Message, membership: Membership, fence: i64) -> rusqlite::Result<bool> {
    let key = (message.tenant.0, membership.broadcast.uuid(), membership.contact.uuid());
    let (id, sending) = (message.id.uuid(), Status::Sending.number());
    let values = params![key.0, key.1.as_bytes(), key.2.as_bytes(), id.as_bytes(), sending, fence];
    Ok(sql.execute(CLAIM_CONTACT, values)? == 1)
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

fn update_contact(sql: &mut Statements<'_>, update: &RecipientUpdate) -> rusqlite::Result<()> {
    let key = (update.membership.broadcast.uuid(), update.membership.contact.uuid());
    let message = update.message_id();
    sql.execute(UPDATE_CONTACT, params![update.tenant, key.0.as_bytes(), key.1.as_bytes(), message.as_bytes(), update.outcome()])?;
    Ok(())
}

fn add_counts(sql: &mut Statements<'_>, updates: &RecipientUpdates) -> rusqlite::Result<()> {
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
