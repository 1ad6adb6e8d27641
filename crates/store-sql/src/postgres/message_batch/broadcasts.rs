//! Recipients of broadcasts, and the counts of the broadcasts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use nuncio_domain::broadcast::{Halt, Status};
use nuncio_domain::id::Id as _;
use nuncio_store::{Accepted, Result};
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::batch_error::BatchError;
use super::super::session::{Params, failed};
use super::{PgResult, Session, column, for_each};
use crate::message_batch::{Prepared, RecipientUpdate, RecipientUpdates};

/// Gives pending recipients their messages, if their broadcasts are being sent and no other node has taken them over. The broadcasts are
/// locked by [`WITH_STATUS`] before, in a statement of its own: one statement would not see what was written while it waited for the lock.
pub(super) const CLAIM: &str = r"
    UPDATE broadcast_contacts c
    SET message_id = u.message_id
    FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::bigint[]) AS u (broadcast_id, id, message_id, fence)
    JOIN broadcasts b ON b.tenant_id = $1 AND b.id = u.broadcast_id
    WHERE c.tenant_id = $1
      AND c.broadcast_id = u.broadcast_id
      AND c.id = u.id
      AND c.message_id = '00000000-0000-0000-0000-000000000000'
      AND c.outcome = 0
      AND b.status = $6
      AND b.fence = u.fence
    RETURNING c.id";

/// Of these broadcasts those with one of these statuses, locked: a refund to a reservation must not race with the transaction that
/// releases the reservation. Others are not locked. They are looked up one by one: planned on tables that were empty, a join reads all.
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
    SET message_id = u.message_id, outcome = u.outcome
    FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::smallint[])
      AS u (tenant_id, broadcast_id, id, message_id, outcome)
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
    let open = all.iter().enumerate().filter(|(n, _)| answers[*n].is_none());
    let memberships: Vec<_> = open.filter_map(|(n, p)| Some((n, p.item.message.state.detail.broadcast?))).collect();
    if memberships.is_empty() {
        return Ok(());
    }
    // Each once: the same recipient may come twice in a batch. In one order, in which every node locks them.
    let mut asked: BTreeMap<i64, BTreeMap<(Uuid, Uuid), usize>> = BTreeMap::new();
    for (n, membership) in &memberships {
        let recipients = asked.entry(all[*n].item.message.tenant.0).or_default();
        recipients.entry((membership.broadcast.uuid(), membership.contact.uuid())).or_insert(*n);
    }
    let broadcasts = asked.iter().map(|(tenant, recipients)| {
        let ids: BTreeSet<Uuid> = recipients.keys().map(|(broadcast, _)| *broadcast).collect();
        (*tenant, ids.into_iter().collect::<Vec<_>>())
    });
    let locked = with_status(session, broadcasts.collect(), &[Status::Sending]);
    let claim = &session.statements.claim_contacts;
    let taken = for_each(asked.clone(), |tenant, recipients| async move {
        let (keys, items): (Vec<_>, Vec<_>) = recipients.into_iter().unzip();
        let params: &Params<'_> = &[
            &tenant,
            &column(&keys, |(broadcast, _)| *broadcast),
            &column(&keys, |(_, contact)| *contact),
            &column(&items, |n| all[*n].item.message.id.uuid()),
            &column(&items, |n| all[*n].item.broadcast_fence),
            &Status::Sending.number(),
        ];
        session.query(claim, params).await
    });
    let (locked, taken) = tokio::join!(locked, taken);
    locked?;
    let taken: HashSet<Uuid> = taken?.iter().map(|row| row.get(0)).collect();
    let won: BTreeSet<usize> = asked.values().flatten().filter(|((_, contact), _)| taken.contains(contact)).map(|(_, n)| *n).collect();
    for (n, _) in memberships {
        if !won.contains(&n) {
            answers[n] = Some(Accepted::Closed);
        }
    }
    Ok(())
}

/// Makes the recipients pending again whose messages are refused after they were claimed.
pub(super) async fn release<'a>(session: &Session, refused: impl Iterator<Item = &'a Prepared>) -> Result<()> {
    let mut updates = RecipientUpdates::default();
    refused.for_each(|prepared| updates.release(&prepared.item.message));
    write(session, &updates).await.map(drop).map_err(failed)
}

/// Locks those of these broadcasts, by tenant, that have one of these statuses.
async fn with_status(session: &Session, asked: BTreeMap<i64, Vec<Uuid>>, statuses: &[Status]) -> Result<Vec<Row>> {
    let statuses = &statuses.iter().map(|status| status.number()).collect::<Vec<_>>();
    let statement = &session.statements.with_status;
    for_each(asked, |tenant, ids| async move { session.query(statement, &[&tenant, &ids, statuses]).await }).await
}

/// Of these broadcasts, by tenant, those that let no attempt start.
pub(super) async fn halted(session: &Session, asked: BTreeMap<i64, Vec<Uuid>>) -> Result<HashMap<(i64, Uuid), Halt>> {
    let rows = with_status(session, asked, &[Status::Paused, Status::Cancelled]).await?;
    let halt = |row: &Row| Some(((row.get(0), row.get(1)), Status::from_number(row.get(2))?.halt()?));
    Ok(rows.iter().filter_map(halt).collect())
}

/// Updates the recipients of broadcasts and adds to the counts.
pub(super) async fn write(session: &Session, updates: &RecipientUpdates) -> PgResult<u64> {
    let contacts = &updates.contacts;
    let statuses: &Params<'_> = &[
        &column(contacts, |c| c.tenant),
        &column(contacts, |c| c.membership.broadcast.uuid()),
        &column(contacts, |c| c.membership.contact.uuid()),
        &column(contacts, RecipientUpdate::message_id),
        &column(contacts, RecipientUpdate::outcome),
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
