//! Recipients of broadcasts, and the counts of the broadcasts.

use nuncio_domain::broadcast::{Counts, Halt, Status};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Membership, Message};
use rusqlite::params;
use uuid::Uuid;

use super::Statements;
use crate::message_batch::{RecipientUpdate, RecipientUpdates};

const CLAIM_CONTACT: &str = r"
    UPDATE broadcast_contacts
    SET message_id = ?4
    WHERE tenant_id = ?1
      AND broadcast_id = ?2
      AND id = ?3
      AND message_id = zeroblob(16)
      AND outcome = 0
      AND EXISTS (
          SELECT 1
          FROM broadcasts b
          WHERE b.tenant_id = ?1 AND b.id = ?2 AND b.status = ?5 AND b.fence = ?6
      )";

const BROADCAST_STATUS: &str = "SELECT status FROM broadcasts WHERE tenant_id = ?1 AND id = ?2";
const UPDATE_CONTACT: &str = r"
    UPDATE broadcast_contacts
    SET message_id = ?4, outcome = ?5
    WHERE tenant_id = ?1 AND broadcast_id = ?2 AND id = ?3";

const ADD_COUNTS: &str = r"
    INSERT INTO broadcast_counts (tenant_id, broadcast_id, shard, queued, sending, sent, delivered,
        failed, skipped, awaited, taken, cost, prepaid, held)
    VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT (tenant_id, broadcast_id, shard) DO UPDATE SET
        queued = queued + excluded.queued,
        sending = sending + excluded.sending,
        sent = sent + excluded.sent,
        delivered = delivered + excluded.delivered,
        failed = failed + excluded.failed,
        skipped = skipped + excluded.skipped,
        awaited = awaited + excluded.awaited,
        taken = taken + excluded.taken,
        cost = cost + excluded.cost,
        prepaid = prepaid + excluded.prepaid,
        held = held + excluded.held";

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
