//! Recipients of broadcasts, and the counts of the broadcasts.

use std::collections::{BTreeMap, HashMap, HashSet};

use nuncio_domain::broadcast::{ContactStatus, Halt, Part, Status};
use nuncio_domain::id::Id as _;
use nuncio_store::{Accepted, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::session::Params;
use super::super::writers::BatchError;
use super::{PgResult, Session, column, for_each};
use crate::message_batch::{Prepared, RecipientUpdates};

/// Pending recipients of broadcasts that are being sent and that no other node has taken over. Locks both rows, so that the answer holds
/// until the transaction ends. A row of the parameters after the other, and by its key: planned on tables that were empty, a join reads
/// every pending recipient, and an index on the status every one that ever was pending.
pub(super) const CLAIM: &str = r"
    SELECT a.id
    FROM unnest($2::uuid[], $3::uuid[], $4::bigint[]) AS u (broadcast_id, id, fence)
    CROSS JOIN LATERAL (
      SELECT c.id
      FROM broadcast_contacts c
      WHERE c.tenant_id = $1 AND c.broadcast_id = u.broadcast_id AND c.id = u.id
        AND c.status IS NOT DISTINCT FROM $5
      FOR UPDATE
    ) AS a
    JOIN broadcasts b ON b.tenant_id = $1 AND b.id = u.broadcast_id
    WHERE b.status = $6 AND b.fence = u.fence
    FOR SHARE OF b";

/// Of these broadcasts those with one of these statuses, locked: a refund to a reservation must not race with the transaction that
/// releases the reservation. Others are not locked. They are looked up one by one, as in [`CLAIM`].
pub(super) const WITH_STATUS: &str = r"
    SELECT a.tenant_id, a.id, a.status
    FROM unnest($2::uuid[]) AS u (id)
    CROSS JOIN LATERAL (
      SELECT b.tenant_id, b.id, b.status
      FROM broadcasts b
      WHERE b.tenant_id = $1 AND b.id = u.id AND b.status = ANY($3)
      FOR SHARE
    ) AS a";

pub(super) const UPDATE: &str = r"
    UPDATE broadcast_contacts c
    SET status = u.status, message_id = u.message_id
    FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::smallint[], $5::uuid[])
      AS u (tenant_id, broadcast_id, id, status, message_id)
    WHERE c.tenant_id = u.tenant_id
      AND c.broadcast_id = u.broadcast_id
      AND c.id = u.id";

pub(super) const ADD_COUNTS: &str = r"
    INSERT INTO broadcast_counts AS k (tenant_id, broadcast_id, shard, queued, sending, sent, delivered,
        failed, skipped, awaited, taken, cost, prepaid, held)
    SELECT u.tenant_id, u.broadcast_id, CAST(pg_backend_pid() % 16 AS SMALLINT), u.queued, u.sending,
        u.sent, u.delivered, u.failed, u.skipped, u.awaited, u.taken, u.cost, u.prepaid, u.held
    FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
        $13::bigint[])
      AS u (tenant_id, broadcast_id, queued, sending, sent, delivered, failed, skipped, awaited, taken,
        cost, prepaid, held)
    ON CONFLICT (tenant_id, broadcast_id, shard) DO UPDATE SET
        queued = k.queued + excluded.queued,
        sending = k.sending + excluded.sending,
        sent = k.sent + excluded.sent,
        delivered = k.delivered + excluded.delivered,
        failed = k.failed + excluded.failed,
        skipped = k.skipped + excluded.skipped,
        awaited = k.awaited + excluded.awaited,
        taken = k.taken + excluded.taken,
        cost = k.cost + excluded.cost,
        prepaid = k.prepaid + excluded.prepaid,
        held = k.held + excluded.held";

/// Claims the broadcast recipients of a batch. An item is answered with [`Accepted::Closed`] if its recipient is not pending, or its
/// broadcast is not being sent.
pub(super) async fn claim(session: &Session, all: &[&Prepared], answers: &mut [Option<Accepted>]) -> Result<(), BatchError> {
    let part = |p: &Prepared| p.item.message.state.detail.broadcast;
    let parts: Vec<_> = all.iter().enumerate().filter_map(|(n, p)| Some((n, p.item.message.tenant, part(p)?))).collect();
    if parts.is_empty() {
        return Ok(());
    }
    let mut asked: BTreeMap<i64, Vec<(Part, i64)>> = BTreeMap::new();
    for (n, tenant, part) in &parts {
        asked.entry(tenant.0).or_default().push((*part, all[*n].item.broadcast_fence));
    }
    // Locked in one order by everybody.
    asked.values_mut().for_each(|parts| parts.sort_unstable_by_key(|(part, _)| (part.broadcast, part.contact)));
    let (pending, sending) = (ContactStatus::Pending.number(), Status::Sending.number());
    let claim = &session.statements.claim_contacts;
    let open = for_each(asked, |tenant, parts| async move {
        let broadcasts = column(&parts, |(part, _)| part.broadcast.uuid());
        let contacts = column(&parts, |(part, _)| part.contact.uuid());
        let fences = column(&parts, |(_, fence)| *fence);
        session.query(claim, &[&tenant, &broadcasts, &contacts, &fences, &pending, &sending]).await
    })
    .await?;
    // Each is removed once: the same recipient may come twice in a batch.
    let mut open: HashSet<Uuid> = open.iter().map(|row| row.get(0)).collect();
    for (n, _, part) in parts {
        if answers[n].is_none() && !open.remove(&part.contact.uuid()) {
            answers[n] = Some(Accepted::Closed);
        }
    }
    Ok(())
}

/// Of these broadcasts, by tenant, those that let no attempt start.
pub(super) async fn halted(session: &Session, asked: BTreeMap<i64, Vec<Uuid>>) -> Result<HashMap<(i64, Uuid), Halt>> {
    let halting = &[Status::Paused, Status::Cancelled].map(Status::number).to_vec();
    let statement = &session.statements.with_status;
    let rows = for_each(asked, |tenant, ids| async move { session.query(statement, &[&tenant, &ids, halting]).await }).await?;
    let halt = |row: &Row| Some(((row.get(0), row.get(1)), Status::from_number(row.get(2))?.halt()?));
    Ok(rows.iter().filter_map(halt).collect())
}

/// Updates the recipients of broadcasts and adds to the counts.
pub(super) async fn write(session: &Session, updates: &RecipientUpdates) -> PgResult<u64> {
    let contacts = &updates.contacts;
    let statuses: &Params<'_> = &[
        &column(contacts, |c| c.tenant),
        &column(contacts, |c| c.part.broadcast.uuid()),
        &column(contacts, |c| c.part.contact.uuid()),
        &column(contacts, |c| c.status.number()),
        &column(contacts, |c| c.message),
    ];
    let counts: Vec<_> = updates.counts.iter().collect();
    let sums: &Params<'_> = &[
        &column(&counts, |((tenant, _), _)| *tenant),
        &column(&counts, |((_, broadcast), _)| *broadcast),
        &column(&counts, |(_, c)| c.queued),
        &column(&counts, |(_, c)| c.sending),
        &column(&counts, |(_, c)| c.sent),
        &column(&counts, |(_, c)| c.delivered),
        &column(&counts, |(_, c)| c.failed),
        &column(&counts, |(_, c)| c.skipped),
        &column(&counts, |(_, c)| c.awaited),
        &column(&counts, |(_, c)| c.taken),
        &column(&counts, |(_, c)| c.cost),
        &column(&counts, |(_, c)| c.prepaid),
        &column(&counts, |(_, c)| c.held),
    ];
    let s = &session.statements;
    let (updated, added) = tokio::join!(
        session.execute(!contacts.is_empty(), &s.update_contacts, statuses),
        session.execute(!counts.is_empty(), &s.add_counts, sums)
    );
    updated.and(added)
}
