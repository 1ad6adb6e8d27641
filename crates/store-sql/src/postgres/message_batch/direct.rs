//! Writes a batch of new messages in one round trip.
//!
//! Nothing is read first. The transaction is sent whole, with a statement that fails unless the database is as usual: recipients without
//! suppressions, configuration unchanged, idempotency keys free. When it fails nothing was written, and the batch is written the other
//! way, which reads and decides.

use std::collections::BTreeSet;

use nuncio_store::Result;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::super::batch_error::BatchError;
use super::commit::{Written, commit};
use super::{PgResult, Session, keys, messages, recipients};
use crate::cache::{Cache, CachedRow};
use crate::ledger_batch::reserved_amount;
use crate::message_batch::{AcceptOutcome, MessageInsert, Prepared, RecipientUpdates, StateWrite, Writes};

/// The address and contact of each recipient. Fails if one has a suppression, or had one when it was erased; if the configuration is
/// another than the message was planned with; and if a quota counts it. Without `OFFSET 0` PostgreSQL would read whole tables into hash
/// tables.
pub(super) const CHECK: &str = r"
    SELECT u.ordinality, a.id, a.contact_id,
        1 / CASE
            WHEN a.id IS NULL THEN 0
            WHEN EXISTS (
                SELECT 1
                FROM suppressions s
                WHERE s.tenant_id = u.tenant_id AND s.kind = u.kind AND s.identifier = u.folded
                OFFSET 0
            ) THEN 0
            WHEN EXISTS (
                SELECT 1
                FROM suppressions s
                WHERE s.tenant_id = u.tenant_id AND s.kind = u.kind AND s.identifier = u.mark
                OFFSET 0
            ) THEN 0
            WHEN EXISTS (
                SELECT 1
                FROM storage_quotas q
                WHERE q.tenant_id = u.tenant_id
                OFFSET 0
            ) THEN 0
            WHEN EXISTS (
                SELECT 1
                FROM worlds w
                WHERE w.tenant_id = u.tenant_id AND w.epoch = u.epoch
                OFFSET 0
            ) THEN 1
            ELSE 0
        END
    FROM unnest($1::recipient_row[]) WITH ORDINALITY u
    LEFT JOIN addresses a ON a.tenant_id = u.tenant_id AND a.kind = u.kind AND a.identifier = u.identifier";

/// Whether a batch of new messages can be written in one round trip: no message belongs to a broadcast, costs anything, or has the
/// idempotency key of another.
pub(super) fn is_possible(all: &[&Prepared]) -> bool {
    let claims = || all.iter().filter_map(|prepared| keys::claim_of(prepared));
    let distinct: BTreeSet<_> = claims().map(|(key, ..)| key).collect();
    distinct.len() == claims().count() && !all.iter().any(|p| p.is_bulk() || reserved_amount(&p.item.message) > 0)
}

/// How many batches are written the other way after one that could not be written directly, which cost a round trip.
const PAUSE: u32 = 100;

/// Whether the next batch is written directly.
#[derive(Debug, Default)]
pub(in crate::postgres) struct DirectWrites {
    pause: u32,
}

impl DirectWrites {
    pub(super) fn take_turn(&mut self) -> bool {
        let allowed = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        allowed
    }

    pub(super) fn failed(&mut self) {
        self.pause = PAUSE;
    }
}

/// Writes new messages; `None` if the database is not as usual. Nothing was written then.
pub(super) async fn write(session: &Session, cache: &Cache, all: &[&Prepared]) -> Result<Option<Written>, BatchError> {
    let mut writes = Writes::default();
    let states: Vec<StateWrite<'_>> = all.iter().map(|prepared| writes.insert(&prepared.encoded)).collect();
    let updates = RecipientUpdates::default();
    let (begun, keyed, addressed, found, inserted, committed) = tokio::join!(
        session.run("BEGIN"),
        keys::insert_free(session, all),
        recipients::insert_unknown(session, all),
        check(session, all),
        messages::insert_found(session, all, &states),
        commit(session, cache, writes, &updates)
    );
    // The first that failed is the cause; PostgreSQL fails all after it, and the commit rolls back.
    let found = match begun.and(keyed).and(addressed).and(found) {
        Ok(found) => inserted.map(|()| found),
        Err(error) => Err(error),
    };
    let found = match found {
        Ok(found) => found,
        Err(error) if is_unusual(&error) => return Ok(None),
        Err(error) => return Err(BatchError::of_commit(error)),
    };
    let mut outcome = committed?;
    let new = all.iter().zip(found).map(|(prepared, (address, contact))| prepared.to_insert(false, (address, contact)));
    let new: Vec<MessageInsert<'_>> = new.collect::<Result<_>>()?;
    outcome.messages =
        new.iter().zip(states).map(|(message, write)| ((write.tenant, write.id), CachedRow::inserted(message, write))).collect();
    Ok(Some((new.into_iter().map(AcceptOutcome::from).collect(), Vec::new(), outcome)))
}

/// Whether a statement failed because of what is in the database: a check divided by 0, a key or an address is taken, a recipient was
/// erased meanwhile.
fn is_unusual(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    [SqlState::DIVISION_BY_ZERO, SqlState::UNIQUE_VIOLATION, SqlState::NOT_NULL_VIOLATION].iter().any(|unusual| code == Some(unusual))
}

/// Runs [`CHECK`]; returns address and contact of the recipient of each message.
async fn check(session: &Session, all: &[&Prepared]) -> PgResult<Vec<(Uuid, Uuid)>> {
    let rows = session.query(&session.statements.check_usual, &[&recipients::records(all)]).await?;
    let mut found = vec![(Uuid::nil(), Uuid::nil()); all.len()];
    for row in rows {
        found[row.get::<_, i64>(0) as usize - 1] = (row.get(1), row.get(2));
    }
    Ok(found)
}
