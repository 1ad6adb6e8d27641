//! The hot statements: one per table and batch, with arrays.

use std::collections::{BTreeMap, HashMap, HashSet};

use nuncio_domain::broadcast::{ContactStatus, Status};
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::Balance;
use nuncio_domain::lifecycle::Step;
use nuncio_domain::message::Message;
use nuncio_domain::{ContactId, MessageId, Micros, TenantId, Timestamp, limits};
use nuncio_store::{Accepted, DeliveryLog, MetricRow, Operation, RawReceipt, Result, StoreError, Transitioned};
use sqlx::{Connection as _, PgConnection, PgPool};
use uuid::Uuid;

use super::lanes::Trouble;
use super::recent::{Known, Recent};
use crate::SqlxResult as _;
use crate::hot::{AcceptOp, Birth, Fold, Item, Loaded, Moves, Prepared, Reference, TransitionOp, by_reference, items, shard, unspool};
use crate::quota::Quotas;
use crate::row::{FixedRow, MessageRow, StateRow, first_sequence, json};
use crate::till::{Till, is_open, sets_aside};

const INSERT_KEYS: &str = "INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id) \
     SELECT * FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bytea[], $5::uuid[]) ON CONFLICT DO NOTHING RETURNING resource_id";

const FIND_REFERENCES: &str = "SELECT r.tenant_id, r.connection_id, r.reference, r.message_id, r.attempt, r.part \
     FROM unnest($1::bigint[], $2::uuid[], $3::text[]) AS asked (tenant_id, connection_id, reference) \
     JOIN provider_refs r ON r.tenant_id = asked.tenant_id AND r.connection_id = asked.connection_id \
     AND r.reference = asked.reference COLLATE \"C\"";
const INSERT_REFERENCES: &str = "INSERT INTO provider_refs (tenant_id, connection_id, reference, message_id, attempt, part) \
     SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::uuid[], $5::smallint[], $6::smallint[]) \
     ON CONFLICT (tenant_id, connection_id, reference) DO UPDATE SET message_id = excluded.message_id, attempt = excluded.attempt, \
     part = excluded.part WHERE provider_refs.message_id < excluded.message_id";
const INSERT_RECEIPTS: &str = "INSERT INTO receipts (tenant_id, message_id, id, connection_id, reference, raw) \
     SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[]) ON CONFLICT DO NOTHING";

const FIND_KEYS: &str = "SELECT k.tenant_id, k.operation, k.key, k.resource_id, k.fingerprint \
     FROM unnest($1::bigint[], $2::smallint[], $3::text[]) AS u (tenant_id, operation, key) \
     JOIN idempotency_keys k ON k.tenant_id = u.tenant_id AND k.operation = u.operation AND k.key = u.key";

const END_KEYS: &str = "UPDATE idempotency_keys k SET purge_after = u.purge_after \
     FROM unnest($1::bigint[], $2::uuid[], $3::text[], $5::bigint[]) AS u (tenant_id, id, key, purge_after) \
     WHERE k.tenant_id = u.tenant_id AND k.operation = ANY($4) AND k.key = u.key AND k.resource_id = u.id";

/// Gives back the keys of messages that were not written after all.
const FREE_KEYS: &str = "DELETE FROM idempotency_keys k USING unnest($1::bigint[], $2::smallint[], $3::text[]) AS u (tenant_id, operation, key) \
     WHERE k.tenant_id = u.tenant_id AND k.operation = u.operation AND k.key = u.key";

const BALANCES: &str = "SELECT b.tenant_id, b.available, b.reserved, b.spent, b.limited FROM unnest($1::bigint[]) AS u (tenant_id) \
     JOIN balances b ON b.tenant_id = u.tenant_id";

const INSERT_TRANSFERS: &str = "INSERT INTO ledger (tenant_id, resource_id, purpose, part, debit, credit, amount, sender_id, recorded_at) \
     SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::smallint[], $7::bigint[], $8::uuid[], $9::bigint[])";

/// Rows that every batch of a world with a quota writes. A world that has no room any more, since another node filled it, is left out.
const COUNT_STORED: &str = "UPDATE storage_quotas q SET stored_bytes = q.stored_bytes + u.bytes \
     FROM unnest($1::bigint[], $2::bigint[]) AS u (tenant_id, bytes) WHERE q.tenant_id = u.tenant_id AND q.stored_bytes + u.bytes <= q.max_bytes";

/// The last statement of a transaction: rows that every batch of a world writes are held as briefly as can be. A world whose balance
/// became too small meanwhile is left out.
const MOVE: &str = "INSERT INTO balances AS b (tenant_id, available, reserved, spent, limited) \
     SELECT u.tenant_id, u.available, u.reserved, u.spent, 0 FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) \
       AS u (tenant_id, available, reserved, spent) \
     ON CONFLICT (tenant_id) DO UPDATE SET available = b.available + excluded.available, reserved = b.reserved + excluded.reserved, \
     spent = b.spent + excluded.spent WHERE b.limited = 0 OR excluded.available >= 0 OR b.available + excluded.available >= 0";

/// A recipient who is not known may be one who was erased: their suppressions stand under a mark.
const RECIPIENTS: &str = "SELECT u.n, w.epoch, q.max_bytes, q.stored_bytes, a.id, a.contact_id, EXISTS (SELECT 1 FROM suppressions s WHERE s.tenant_id = u.tenant_id AND s.kind = u.kind \
     AND s.identifier = u.identifier AND s.sender_id IN ('00000000-0000-0000-0000-000000000000', u.sender_id)) \
     OR (a.id IS NULL AND EXISTS (SELECT 1 FROM suppressions s WHERE s.tenant_id = u.tenant_id AND s.kind = u.kind \
     AND s.identifier = u.mark AND s.sender_id IN ('00000000-0000-0000-0000-000000000000', u.sender_id))) \
     FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::uuid[], $5::text[]) WITH ORDINALITY AS u (tenant_id, kind, identifier, sender_id, mark, n) \
     LEFT JOIN worlds w ON w.tenant_id = u.tenant_id LEFT JOIN storage_quotas q ON q.tenant_id = u.tenant_id \
     LEFT JOIN addresses a ON a.tenant_id = u.tenant_id AND a.kind = u.kind AND a.identifier = u.identifier";

/// Messages with an event for each, and the addresses and contacts of new recipients. An address that another node made meanwhile is
/// a conflict, and the batch is run once more.
const INSERT_MESSAGES: &str = "WITH address AS (INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at) \
       SELECT * FROM unnest($28::bigint[], $29::uuid[], $30::smallint[], $31::text[], $32::uuid[], $33::bigint[])), \
     contact AS (INSERT INTO contacts (tenant_id, id, country, created_at, updated_at) \
       SELECT u.tenant_id, u.id, u.country, u.at, u.at FROM unnest($28::bigint[], $32::uuid[], $34::text[], $33::bigint[]) AS u (tenant_id, id, country, at)), \
     restored AS (UPDATE suppressions s SET identifier = u.identifier \
       FROM unnest($28::bigint[], $30::smallint[], $31::text[], $35::text[]) AS u (tenant_id, kind, identifier, mark) \
       WHERE s.tenant_id = u.tenant_id AND s.kind = u.kind AND s.identifier = u.mark AND NOT EXISTS (SELECT 1 FROM suppressions o \
       WHERE o.tenant_id = s.tenant_id AND o.kind = s.kind AND o.identifier = u.identifier AND o.sender_id = s.sender_id AND o.reason = s.reason)), \
     message AS (INSERT INTO messages (tenant_id, id, shard, direction, message_type, sender_id, address_id, recipient, sent_from, \
       idempotency_key, spooled, request, status, wait, held, due_at, owner, fence, version, expires_at, updated_at, channel, connection_id, provider, detail) \
       SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::uuid[], $7::uuid[], $8::text[], $9::text[], \
       $10::text[], $11::int[], $12::text[], $13::smallint[], $14::smallint[], $15::smallint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], \
       $20::bigint[], $21::bigint[], $22::smallint[], $23::uuid[], $24::text[], $25::text[])), \
     event AS (INSERT INTO events (position, tenant_id, resource_id, sequence, recorded_at, changes) \
       SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT), * FROM unnest($1::bigint[], $2::uuid[], $26::bigint[], $21::bigint[], $27::text[])) \
     SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)";

/// Rows that another node may hold are locked in one order, so that two nodes cannot wait for each other.
const LOAD: &str = "SELECT m.tenant_id, m.id, m.direction, m.message_type, m.sender_id, m.address_id, m.recipient, m.sent_from, m.idempotency_key, m.spooled, \
     CASE WHEN u.starts THEN m.request ELSE '' END AS request, m.status, m.wait, m.held, m.due_at, m.owner, m.fence, m.version, m.expires_at, m.updated_at, \
     m.channel, m.connection_id, m.provider, m.detail, u.starts, \
     (u.starts AND EXISTS (SELECT 1 FROM suppressions s WHERE s.tenant_id = m.tenant_id AND s.identifier = m.recipient \
       AND s.kind = CASE m.channel WHEN 5 THEN 2 WHEN 4 THEN 3 WHEN 6 THEN 4 ELSE 1 END \
       AND s.sender_id IN ('00000000-0000-0000-0000-000000000000', m.sender_id))) AS suppressed \
     FROM unnest($1::bigint[], $2::uuid[], $3::boolean[]) AS u (tenant_id, id, starts) \
     JOIN messages m ON m.tenant_id = u.tenant_id AND m.id = u.id ORDER BY m.tenant_id, m.id FOR UPDATE OF m";

/// Messages, an event for each that changed, the end of the idempotency keys of those that became final, and what is written beside a
/// row. A row that is not as the given transaction left it stays as it is, and so does one whose receipt names another by now. Answers
/// which transaction this was, and what it wrote.
const UPDATE: &str = "WITH updated AS (UPDATE messages m SET status = u.status, wait = u.wait, held = u.held, due_at = u.due_at, owner = u.owner, \
       fence = u.fence, version = u.version, expires_at = u.expires_at, updated_at = u.updated_at, channel = u.channel, \
       connection_id = u.connection_id, provider = u.provider, detail = u.detail \
       FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::bigint[], $7::bigint[], $8::bigint[], \
       $9::bigint[], $10::bigint[], $11::bigint[], $12::smallint[], $13::uuid[], $14::text[], $15::text[], $16::bigint[], $17::text[], \
       $18::text[], $19::bigint[], $20::bigint[], $22::uuid[], $23::smallint[], $24::text[], $25::uuid[], $26::uuid[], $27::text[], $28::text[], \
       $29::boolean[]) \
       AS u (tenant_id, id, status, wait, held, due_at, owner, fence, version, expires_at, updated_at, channel, connection_id, provider, detail, \
       sequence, changes, key, purge_after, written_by, taken_by, attempt, parts, receipt, told_by, reference, raw, named) \
       WHERE m.tenant_id = u.tenant_id AND m.id = u.id AND (u.written_by IS NULL OR CAST(CAST(m.xmin AS TEXT) AS BIGINT) = u.written_by) \
       AND (u.named IS NULL OR u.id = (SELECT r.message_id FROM provider_refs r WHERE r.tenant_id = u.tenant_id \
         AND r.connection_id = u.told_by AND r.reference = u.reference COLLATE \"C\")) \
       RETURNING m.tenant_id, m.id, m.updated_at, u.sequence, u.changes, u.key, u.purge_after, u.taken_by, u.attempt, u.parts, u.receipt, \
       u.told_by, u.reference, u.raw), \
     reference AS (INSERT INTO provider_refs (tenant_id, connection_id, reference, message_id, attempt, part) \
       SELECT u.tenant_id, u.taken_by, p.key, u.id, u.attempt, CAST(p.value AS SMALLINT) FROM updated u, json_each_text(CAST(u.parts AS JSON)) p \
       WHERE u.parts IS NOT NULL ON CONFLICT (tenant_id, connection_id, reference) DO UPDATE SET message_id = excluded.message_id, \
       attempt = excluded.attempt, part = excluded.part WHERE provider_refs.message_id < excluded.message_id), \
     receipt AS (INSERT INTO receipts (tenant_id, message_id, id, connection_id, reference, raw) \
       SELECT tenant_id, id, receipt, told_by, reference, raw FROM updated WHERE receipt IS NOT NULL ON CONFLICT DO NOTHING), \
     event AS (INSERT INTO events (position, tenant_id, resource_id, sequence, recorded_at, changes) \
       SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT), tenant_id, id, sequence, updated_at, changes FROM updated WHERE changes IS NOT NULL), \
     ended AS (UPDATE idempotency_keys k SET purge_after = u.purge_after FROM updated u \
       WHERE k.tenant_id = u.tenant_id AND k.operation = ANY($21) AND k.key = u.key AND k.resource_id = u.id) \
     SELECT CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT), tenant_id, id FROM updated";

const PUT_DELIVERIES: &str = "INSERT INTO deliveries AS d (tenant_id, id, sender_id, event_id, event_type, kind, resource_id, sequence, url, status, tries, \
     due_at, attempts, updated_at) SELECT $1, u.* FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::smallint[], $7::uuid[], $8::bigint[], \
     $9::text[], $10::smallint[], $11::smallint[], $12::bigint[], $13::text[], $14::bigint[]) AS u \
     ON CONFLICT (tenant_id, id) DO UPDATE SET url = excluded.url, status = excluded.status, tries = excluded.tries, due_at = excluded.due_at, \
     attempts = excluded.attempts, updated_at = excluded.updated_at WHERE d.status <> 2 OR excluded.status = 2";

const FENCE: &str = "SELECT fence FROM webhook_cursors WHERE tenant_id = $1 AND fence = $2 FOR UPDATE";

const ADVANCE: &str = "UPDATE webhook_cursors SET position = $2, entry = $3 WHERE tenant_id = $1";
/// Recipients who were not handed over, of broadcasts that are being sent and were not taken by anybody else. Both rows are locked, so that the answer holds until the
/// transaction ends.
const CLAIM_CONTACTS: &str = "SELECT c.id FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $6::bigint[]) AS u (tenant_id, broadcast_id, id, fence) \
     JOIN broadcast_contacts c ON c.tenant_id = u.tenant_id AND c.broadcast_id = u.broadcast_id AND c.id = u.id \
     JOIN broadcasts b ON b.tenant_id = c.tenant_id AND b.id = c.broadcast_id WHERE c.status = $4 AND b.status = $5 AND b.fence = u.fence \
     ORDER BY c.tenant_id, c.broadcast_id, c.id FOR UPDATE OF c FOR SHARE OF b";

/// Of these broadcasts those in some statuses, locked: what is given back to a reservation must not meet the transaction that releases
/// it. Others are not locked.
const WITH_STATUS: &str = "SELECT b.tenant_id, b.id, b.status FROM unnest($1::bigint[], $2::uuid[]) AS u (tenant_id, id) \
     JOIN broadcasts b ON b.tenant_id = u.tenant_id AND b.id = u.id WHERE b.status = ANY($3) ORDER BY b.tenant_id, b.id FOR SHARE OF b";

const MOVE_CONTACTS: &str = "UPDATE broadcast_contacts c SET status = u.status, message_id = u.message_id \
     FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::smallint[], $5::uuid[]) AS u (tenant_id, broadcast_id, id, status, message_id) \
     WHERE c.tenant_id = u.tenant_id AND c.broadcast_id = u.broadcast_id AND c.id = u.id";

const ADD_COUNTS: &str = "INSERT INTO broadcast_counts AS k (tenant_id, broadcast_id, shard, queued, sending, sent, delivered, failed, skipped, awaited, taken, cost, prepaid, held) \
     SELECT u.tenant_id, u.broadcast_id, CAST(pg_backend_pid() % 16 AS SMALLINT), u.queued, u.sending, u.sent, u.delivered, u.failed, u.skipped, u.awaited, u.taken, u.cost, u.prepaid, u.held \
     FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[]) AS u (tenant_id, broadcast_id, queued, sending, sent, delivered, failed, skipped, awaited, taken, cost, prepaid, held) \
     ON CONFLICT (tenant_id, broadcast_id, shard) DO UPDATE SET queued = k.queued + excluded.queued, sending = k.sending + excluded.sending, sent = k.sent + excluded.sent, delivered = k.delivered + excluded.delivered, failed = k.failed + excluded.failed, skipped = k.skipped + excluded.skipped, awaited = k.awaited + excluded.awaited, taken = k.taken + excluded.taken, cost = k.cost + excluded.cost, prepaid = k.prepaid + excluded.prepaid, held = k.held + excluded.held";

const ADD_METRICS: &str = "INSERT INTO channel_metrics AS m (tenant_id, address_id, channel, successes, failures, delivery_ms, timed, last_success_at) \
     SELECT * FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]) \
     ON CONFLICT (tenant_id, address_id, channel) DO UPDATE SET \
     successes = m.successes + excluded.successes, failures = m.failures + excluded.failures, \
     delivery_ms = m.delivery_ms + excluded.delivery_ms, timed = m.timed + excluded.timed, \
     last_success_at = CASE WHEN m.last_success_at > excluded.last_success_at OR excluded.last_success_at IS NULL \
     THEN m.last_success_at ELSE excluded.last_success_at END";

const CHUNKS: &str = "SELECT data FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 ORDER BY chunk";

const WHOLE: &str = "SELECT tenant_id, id, direction, message_type, sender_id, address_id, recipient, sent_from, idempotency_key, spooled, request, status, wait, \
     held, due_at, owner, fence, version, expires_at, updated_at, channel, connection_id, provider, detail FROM messages WHERE tenant_id = $1 AND id = $2";

/// Gathers one column of a batch.
fn column<'a, T, U>(items: &'a [T], value: impl Fn(&'a T) -> U) -> Vec<U> {
    items.iter().map(value).collect()
}

/// Adds to the metrics of channels in a transaction of its own; no row twice.
pub(super) async fn add_metrics(pool: &PgPool, deltas: &[MetricRow]) -> Result<()> {
    sqlx::query(ADD_METRICS)
        .bind(column(deltas, |(tenant, ..)| tenant.0))
        .bind(column(deltas, |(_, address, ..)| address.uuid()))
        .bind(column(deltas, |(_, _, channel, _)| channel.number()))
        .bind(column(deltas, |(.., delta)| delta.successes))
        .bind(column(deltas, |(.., delta)| delta.failures))
        .bind(column(deltas, |(.., delta)| delta.delivery_ms))
        .bind(column(deltas, |(.., delta)| delta.timed))
        .bind(column(deltas, |(.., delta)| delta.last_success_at.map(Timestamp::millis)))
        .execute(pool)
        .await
        .store()?;
    Ok(())
}

/// Writes what became of deliveries; answers whether the reader's fence holds.
pub(super) async fn log_deliveries(pool: &PgPool, log: &DeliveryLog) -> Result<bool> {
    let rows = &log.deliveries;
    let mut tx = pool.begin().await.store()?;
    if !rows.is_empty() {
        let attempts = rows.iter().map(|d| json(&d.attempts)).collect::<Result<Vec<_>>>()?;
        sqlx::query(PUT_DELIVERIES)
            .bind(log.tenant.0)
            .bind(column(rows, |d| d.id.uuid()))
            .bind(column(rows, |d| d.sender.map_or(Uuid::nil(), |s| s.uuid())))
            .bind(column(rows, |d| d.event.uuid()))
            .bind(column(rows, |d| d.event_type.as_str()))
            .bind(column(rows, |d| d.kind.number()))
            .bind(column(rows, |d| d.resource))
            .bind(column(rows, |d| d.sequence))
            .bind(column(rows, |d| d.url.as_str()))
            .bind(column(rows, |d| d.status.number()))
            .bind(column(rows, |d| d.tries))
            .bind(column(rows, |d| d.due_at.map(Timestamp::millis)))
            .bind(attempts)
            .bind(column(rows, |d| d.updated_at.millis()))
            .execute(&mut *tx)
            .await
            .store()?;
    }
    let holds: Option<(i64,)> = sqlx::query_as(FENCE).bind(log.tenant.0).bind(log.fence).fetch_optional(&mut *tx).await.store()?;
    if let (Some(_), Some(read)) = (holds, log.read) {
        sqlx::query(ADVANCE).bind(log.tenant.0).bind(read.commit).bind(read.entry).execute(&mut *tx).await.store()?;
    }
    tx.commit().await.store()?;
    Ok(holds.is_some())
}

/// Writes a batch of new messages. Without idempotency keys one statement writes them, which needs no transaction around it.
pub(super) async fn accept(conn: &mut PgConnection, recent: &Recent, ops: &[AcceptOp]) -> Result<Vec<Accepted>, Trouble> {
    let mut answers: Vec<Option<Accepted>> = Vec::new();
    answers.resize_with(ops.len(), || None);
    let all: Vec<&Prepared> = ops.iter().map(|op| &*op.item).collect();
    let found = recipients(conn, &all).await?;
    for ((answer, found), prepared) in answers.iter_mut().zip(&found).zip(&all) {
        if found.epoch != Some(prepared.item.epoch) {
            *answer = Some(Accepted::Stale);
        }
    }
    let open = |answers: &[Option<Accepted>]| -> Vec<(usize, &Prepared, Found)> {
        let items = ops.iter().zip(&found).enumerate().filter(|(n, _)| answers[*n].is_none());
        items.map(|(n, (op, found))| (n, &*op.item, *found)).collect()
    };
    let mut quotas = Quotas::default();
    for (prepared, found) in all.iter().zip(&found) {
        quotas.know(prepared.item.message.tenant.0, found.quota.map(|q| q.0), found.quota.map(|q| q.1));
    }
    let costs = all.iter().any(|p| sets_aside(&p.item.message) > 0);
    let plain = |p: &&Prepared| p.item.idempotency.is_none() && p.item.message.state.detail.broadcast.is_none();
    let (written, by) = if costs || !quotas.is_empty() || !all.iter().all(plain) {
        let mut tx = conn.begin().await.store()?;
        claim_keys(&mut tx, ops, &mut answers).await?;
        claim_contacts(&mut tx, ops, &mut answers).await?;
        let till = if costs { till(&mut tx, ops).await? } else { Till::default() };
        let till = refuse(&mut tx, ops, &found, till, &mut quotas, &mut answers).await?;
        let open = open(&answers);
        let born = births(&open)?;
        let by = insert(&mut tx, &born, &open).await.store()?;
        let ended = born.iter().map(|b| &b.born).filter(|b| b.state.wait == 0);
        let ended: Vec<_> =
            ended.filter_map(|b| Some((b.fixed.tenant_id, b.fixed.id, b.fixed.idempotency_key.clone()?, b.state.updated_at))).collect();
        end_keys(&mut tx, &ended).await?;
        let mut moves = Moves::default();
        born.iter().for_each(|b| moves.born(&b.born.message));
        write_moves(&mut tx, &moves).await?;
        count_stored(&mut tx, &quotas).await?;
        book(&mut tx, &till).await?;
        tx.commit().await.map_err(Trouble::of_commit)?;
        (open.into_iter().zip(born).collect::<Vec<_>>(), by)
    } else {
        let open = open(&answers);
        let born = births(&open)?;
        let by = insert(conn, &born, &open).await.map_err(Trouble::of_commit)?;
        (open.into_iter().zip(born).collect(), by)
    };
    recent.put(written.iter().map(|(_, birth)| {
        let (message, fixed) = (&birth.born.message, &birth.born.fixed);
        let idempotency_key = fixed.idempotency_key.clone();
        ((fixed.tenant_id, fixed.id), Known { state: message.state.clone(), address: birth.address, idempotency_key, written_by: by })
    }));
    for ((n, ..), born) in written {
        answers[n] = Some(born.into());
    }
    Ok(answers.into_iter().map(|answer| answer.unwrap_or(Accepted::Stale)).collect())
}

/// The balances of the worlds whose new messages may cost something.
async fn till(conn: &mut PgConnection, ops: &[AcceptOp]) -> Result<Till> {
    let mut tenants: Vec<i64> =
        ops.iter().filter(|op| sets_aside(&op.item.item.message) > 0).map(|op| op.item.item.message.tenant.0).collect();
    tenants.sort_unstable();
    tenants.dedup();
    let mut till = Till::default();
    let rows: Vec<(i64, i64, i64, i64, i16)> = sqlx::query_as(BALANCES).bind(tenants).fetch_all(conn).await.store()?;
    for (tenant, available, reserved, spent, limited) in rows {
        let balance = Balance { available: Micros(available), reserved: Micros(reserved), spent: Micros(spent), limited: limited != 0 };
        till.know(TenantId(tenant), balance);
    }
    Ok(till)
}

/// Sets aside what the new messages of a batch may cost, and counts their bytes. One for which there is no money or no room is refused, and
/// its key is free again.
async fn refuse(
    conn: &mut PgConnection,
    ops: &[AcceptOp],
    found: &[Found],
    mut till: Till,
    quotas: &mut Quotas,
    answers: &mut [Option<Accepted>],
) -> Result<Till> {
    let mut refused = HashMap::new();
    for (n, op) in ops.iter().enumerate().filter(|(n, _)| answers[*n].is_none()).collect::<Vec<_>>() {
        let refusal = match quotas.refuse(&op.item) {
            None if !found[n].suppressed => till.reserve(&op.item.item.message).err().map(Accepted::Short),
            refusal => refusal,
        };
        match refusal {
            Some(refusal) => {
                refused.insert(op.item.item.message.id, refusal.clone());
                answers[n] = Some(refusal);
            }
            None => quotas.keep(&op.item),
        }
    }
    if refused.is_empty() {
        return Ok(till);
    }
    // Who lost a key to a message that is refused was not served either.
    for answer in answers.iter_mut() {
        if let Some(Accepted::Duplicate { original, .. }) = answer
            && let Some(refusal) = refused.get(original)
        {
            *answer = Some(refusal.clone());
        }
    }
    let freed: Vec<_> = ops
        .iter()
        .map(|op| &op.item.item)
        .filter(|item| refused.contains_key(&item.message.id))
        .filter_map(|item| Some((item.message.tenant.0, item.idempotency.as_ref()?)))
        .collect();
    if !freed.is_empty() {
        sqlx::query(FREE_KEYS)
            .bind(column(&freed, |(tenant, _)| *tenant))
            .bind(column(&freed, |(_, key)| key.operation.number()))
            .bind(column(&freed, |(_, key)| key.key.as_str()))
            .execute(conn)
            .await
            .store()?;
    }
    Ok(till)
}

/// Writes how many bytes more worlds with a quota keep.
async fn count_stored(conn: &mut PgConnection, quotas: &Quotas) -> Result<()> {
    let added = quotas.added();
    if added.is_empty() {
        return Ok(());
    }
    let counted = sqlx::query(COUNT_STORED)
        .bind(column(&added, |(tenant, _)| *tenant))
        .bind(column(&added, |(_, bytes)| *bytes))
        .execute(conn)
        .await
        .store()?;
    if counted.rows_affected() < added.len() as u64 {
        return Err(StoreError::Busy("another node filled the room that this batch counted on".to_owned()));
    }
    Ok(())
}

/// Writes what a batch moves, last of all.
async fn book(conn: &mut PgConnection, till: &Till) -> Result<()> {
    if till.is_empty() {
        return Ok(());
    }
    let rows = &till.rows;
    sqlx::query(INSERT_TRANSFERS)
        .bind(column(rows, |r| r.tenant))
        .bind(column(rows, |r| r.resource))
        .bind(column(rows, |r| r.purpose.number()))
        .bind(column(rows, |r| r.part))
        .bind(column(rows, |r| r.purpose.accounts().0.number()))
        .bind(column(rows, |r| r.purpose.accounts().1.number()))
        .bind(column(rows, |r| r.amount))
        .bind(column(rows, |r| r.sender))
        .bind(column(rows, |r| r.at))
        .execute(&mut *conn)
        .await
        .store()?;
    let moves: Vec<_> = till.moves.iter().collect();
    let moved = sqlx::query(MOVE)
        .bind(column(&moves, |(tenant, _)| **tenant))
        .bind(column(&moves, |(_, m)| m.available))
        .bind(column(&moves, |(_, m)| m.reserved))
        .bind(column(&moves, |(_, m)| m.spent))
        .execute(conn)
        .await
        .store()?;
    if moved.rows_affected() < moves.len() as u64 {
        return Err(StoreError::Busy("another node spent what this batch counted on".to_owned()));
    }
    Ok(())
}

/// Takes the idempotency keys of a batch, in key order. Who loses is answered with the original.
async fn claim_keys(conn: &mut PgConnection, ops: &[AcceptOp], answers: &mut [Option<Accepted>]) -> Result<()> {
    // Of two items with one key the first takes it: the statement may name each key once only.
    let mut keys: BTreeMap<(i64, i16, &str), &Prepared> = BTreeMap::new();
    let mut guarded = Vec::new();
    for (n, op) in ops.iter().enumerate() {
        if answers[n].is_none()
            && let Some(key) = &op.item.item.idempotency
        {
            let place = (op.item.item.message.tenant.0, key.operation.number(), key.key.as_str());
            keys.entry(place).or_insert(&op.item);
            guarded.push((n, place, key));
        }
    }
    if guarded.is_empty() {
        return Ok(());
    }
    let unique: Vec<_> = keys.iter().collect();
    let won: Vec<(Uuid,)> = sqlx::query_as(INSERT_KEYS)
        .bind(column(&unique, |((tenant, ..), _)| *tenant))
        .bind(column(&unique, |((_, operation, _), _)| *operation))
        .bind(column(&unique, |((.., key), _)| (*key).to_owned()))
        .bind(column(&unique, |(_, p)| p.item.idempotency.as_ref().map_or_else(Vec::new, |k| k.fingerprint.to_vec())))
        .bind(column(&unique, |(_, p)| p.item.message.id.uuid()))
        .fetch_all(&mut *conn)
        .await
        .store()?;
    let won: HashSet<Uuid> = won.into_iter().map(|(id,)| id).collect();
    let lost: Vec<_> = guarded.into_iter().filter(|(n, ..)| !won.contains(&ops[*n].item.item.message.id.uuid())).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let rows: Vec<(i64, i16, String, Uuid, Vec<u8>)> = sqlx::query_as(FIND_KEYS)
        .bind(column(&lost, |(_, (tenant, ..), _)| *tenant))
        .bind(column(&lost, |(_, (_, operation, _), _)| *operation))
        .bind(column(&lost, |(_, (.., key), _)| (*key).to_owned()))
        .fetch_all(conn)
        .await
        .store()?;
    let originals: HashMap<(i64, i16, String), (Uuid, Vec<u8>)> =
        rows.into_iter().map(|(tenant, operation, key, id, print)| ((tenant, operation, key), (id, print))).collect();
    for (n, (tenant, operation, key), mine) in lost {
        if let Some((id, fingerprint)) = originals.get(&(tenant, operation, key.to_owned())) {
            let same_request = fingerprint.as_slice() == mine.fingerprint;
            answers[n] = Some(Accepted::Duplicate { original: MessageId::from_uuid(*id), same_request });
        }
    }
    Ok(())
}

/// Takes the recipients of broadcasts that a batch hands over. Who was handed over before, and who is in a broadcast that is not being
/// sent, is answered so.
async fn claim_contacts(conn: &mut PgConnection, ops: &[AcceptOp], answers: &mut [Option<Accepted>]) -> Result<()> {
    let part = |op: &AcceptOp| op.item.item.message.state.detail.broadcast;
    let parts: Vec<_> = ops.iter().enumerate().filter_map(|(n, op)| Some((n, op.item.item.message.tenant, part(op)?))).collect();
    if parts.is_empty() {
        return Ok(());
    }
    let open: Vec<(Uuid,)> = sqlx::query_as(CLAIM_CONTACTS)
        .bind(column(&parts, |(_, tenant, _)| tenant.0))
        .bind(column(&parts, |(.., part)| part.broadcast.uuid()))
        .bind(column(&parts, |(.., part)| part.contact.uuid()))
        .bind(ContactStatus::Pending.number())
        .bind(Status::Sending.number())
        .bind(column(&parts, |(n, ..)| ops[*n].item.item.broadcast_fence))
        .fetch_all(conn)
        .await
        .store()?;
    // Each is taken out once: the same recipient may come twice in a batch.
    let mut open: HashSet<Uuid> = open.into_iter().map(|(id,)| id).collect();
    for (n, _, part) in parts.into_iter().filter(|(n, ..)| answers[*n].is_none()).collect::<Vec<_>>() {
        if !open.remove(&part.contact.uuid()) {
            answers[n] = Some(Accepted::Closed);
        }
    }
    Ok(())
}

async fn write_moves(conn: &mut PgConnection, moves: &Moves) -> Result<()> {
    if !moves.contacts.is_empty() {
        sqlx::query(MOVE_CONTACTS)
            .bind(column(&moves.contacts, |m| m.tenant))
            .bind(column(&moves.contacts, |m| m.part.broadcast.uuid()))
            .bind(column(&moves.contacts, |m| m.part.contact.uuid()))
            .bind(column(&moves.contacts, |m| m.status.number()))
            .bind(column(&moves.contacts, |m| m.message))
            .execute(&mut *conn)
            .await
            .store()?;
    }
    let counts: Vec<_> = moves.counts.iter().collect();
    if counts.is_empty() {
        return Ok(());
    }
    sqlx::query(ADD_COUNTS)
        .bind(column(&counts, |((tenant, _), _)| *tenant))
        .bind(column(&counts, |((_, broadcast), _)| *broadcast))
        .bind(column(&counts, |(_, c)| c.queued))
        .bind(column(&counts, |(_, c)| c.sending))
        .bind(column(&counts, |(_, c)| c.sent))
        .bind(column(&counts, |(_, c)| c.delivered))
        .bind(column(&counts, |(_, c)| c.failed))
        .bind(column(&counts, |(_, c)| c.skipped))
        .bind(column(&counts, |(_, c)| c.awaited))
        .bind(column(&counts, |(_, c)| c.taken))
        .bind(column(&counts, |(_, c)| c.cost))
        .bind(column(&counts, |(_, c)| c.prepaid))
        .bind(column(&counts, |(_, c)| c.held))
        .execute(conn)
        .await
        .store()?;
    Ok(())
}

/// Finds out which broadcasts let no attempt of the batch start.
async fn ask_broadcasts(conn: &mut PgConnection, fold: &mut Fold, items: &[Item<'_>]) -> Result<()> {
    let keys: Vec<_> = fold.deciding_broadcasts(items).into_iter().collect();
    if keys.is_empty() {
        return Ok(());
    }
    let rows: Vec<(i64, Uuid, i16)> = sqlx::query_as(WITH_STATUS)
        .bind(column(&keys, |key| key.0))
        .bind(column(&keys, |key| key.1))
        .bind([Status::Paused, Status::Cancelled].map(Status::number))
        .fetch_all(conn)
        .await
        .store()?;
    let halted = rows.into_iter().filter_map(|(tenant, id, status)| Some(((tenant, id), Status::from_number(status)?.halt()?)));
    fold.halt(&halted.collect());
    Ok(())
}

/// Sets when keys are forgotten, from the moments at which their messages turned final.
async fn end_keys(conn: &mut PgConnection, keys: &[(i64, Uuid, String, i64)]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    sqlx::query(END_KEYS)
        .bind(column(keys, |(tenant, ..)| *tenant))
        .bind(column(keys, |(_, id, ..)| *id))
        .bind(column(keys, |(_, _, key, _)| key.clone()))
        .bind(Operation::OF_MESSAGES.map(Operation::number))
        .bind(column(keys, |(.., at)| at + limits::IDEMPOTENCY_RETENTION.as_millis() as i64))
        .execute(conn)
        .await
        .store()?;
    Ok(())
}

/// What is known of the recipient of one item.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Of the world; `None` when it is gone.
    epoch: Option<i64>,
    /// How many bytes its world may keep, and keeps.
    quota: Option<(i64, i64)>,
    /// Address and contact.
    known: Option<(Uuid, Uuid)>,
    suppressed: bool,
}

/// The messages as they are inserted: with the address of their recipient, and failed where that one is suppressed.
fn births<'a>(open: &[(usize, &'a Prepared, Found)]) -> Result<Vec<Birth<'a>>> {
    let new = new_recipients(open).into_iter();
    let new: HashMap<_, _> = new.map(|p| (place(p), (p.item.new_address.uuid(), p.item.new_contact.uuid()))).collect();
    open.iter().map(|(_, prepared, found)| prepared.birth(found.suppressed, found.known.unwrap_or_else(|| new[&place(prepared)]))).collect()
}

/// Of each recipient that is not known the first item, in one order everywhere.
fn new_recipients<'a>(open: &[(usize, &'a Prepared, Found)]) -> Vec<&'a Prepared> {
    let mut unique: BTreeMap<_, &Prepared> = BTreeMap::new();
    for (_, prepared, _) in open.iter().filter(|(.., found)| found.known.is_none()) {
        unique.entry(place(prepared)).or_insert(prepared);
    }
    unique.into_values().collect()
}

/// What tells a recipient apart.
fn place(prepared: &Prepared) -> (i64, i16, &str) {
    let recipient = &prepared.item.recipient;
    (prepared.item.message.tenant.0, recipient.kind.number(), &recipient.identifier)
}

async fn recipients(conn: &mut PgConnection, prepared: &[&Prepared]) -> Result<Vec<Found>> {
    type Row = (i64, Option<i64>, Option<i64>, Option<i64>, Option<Uuid>, Option<Uuid>, bool);
    let rows: Vec<Row> = sqlx::query_as(RECIPIENTS)
        .bind(column(prepared, |p| p.item.message.tenant.0))
        .bind(column(prepared, |p| p.item.recipient.kind.number()))
        .bind(column(prepared, |p| p.item.recipient.identifier.as_str()))
        .bind(column(prepared, |p| p.item.message.sender.uuid()))
        .bind(column(prepared, |p| p.item.mark.as_str()))
        .fetch_all(conn)
        .await
        .store()?;
    let mut found = vec![Found::default(); prepared.len()];
    for (n, epoch, max_bytes, stored_bytes, address, contact, suppressed) in rows {
        found[n as usize - 1] = Found { epoch, quota: max_bytes.zip(stored_bytes), known: address.zip(contact), suppressed };
    }
    Ok(found)
}

async fn insert(conn: &mut PgConnection, born: &[Birth<'_>], open: &[(usize, &Prepared, Found)]) -> sqlx::Result<i64> {
    if born.is_empty() {
        return Ok(0);
    }
    let new = new_recipients(open);
    let (by,): (i64,) = sqlx::query_as(INSERT_MESSAGES)
        .bind(column(born, |b| b.born.fixed.tenant_id))
        .bind(column(born, |b| b.born.fixed.id))
        .bind(column(born, |b| shard(b.born.fixed.id)))
        .bind(column(born, |b| b.born.fixed.direction))
        .bind(column(born, |b| b.born.fixed.message_type))
        .bind(column(born, |b| b.born.fixed.sender_id))
        .bind(column(born, |b| b.address))
        .bind(column(born, |b| b.born.fixed.recipient.as_str()))
        .bind(column(born, |b| b.born.fixed.sent_from.as_str()))
        .bind(column(born, |b| b.born.fixed.idempotency_key.as_deref()))
        .bind(column(born, |b| b.born.fixed.spooled))
        .bind(column(born, |b| b.born.fixed.request.as_str()))
        .bind(column(born, |b| b.born.state.status))
        .bind(column(born, |b| b.born.state.wait))
        .bind(column(born, |b| b.born.state.held))
        .bind(column(born, |b| b.born.state.due_at))
        .bind(column(born, |b| b.born.state.owner))
        .bind(column(born, |b| b.born.state.fence))
        .bind(column(born, |b| b.born.state.version))
        .bind(column(born, |b| b.born.state.expires_at))
        .bind(column(born, |b| b.born.state.updated_at))
        .bind(column(born, |b| b.born.state.channel))
        .bind(column(born, |b| b.born.state.connection_id))
        .bind(column(born, |b| b.born.state.provider.as_str()))
        .bind(column(born, |b| b.born.state.detail.as_str()))
        .bind(column(born, |b| b.born.sequence))
        .bind(column(born, |b| b.born.changes.as_str()))
        .bind(column(&new, |p| p.item.message.tenant.0))
        .bind(column(&new, |p| p.item.new_address.uuid()))
        .bind(column(&new, |p| p.item.recipient.kind.number()))
        .bind(column(&new, |p| p.item.recipient.identifier.as_str()))
        .bind(column(&new, |p| p.item.new_contact.uuid()))
        .bind(column(&new, |p| p.item.now.millis()))
        .bind(column(&new, |p| p.item.country.as_str()))
        .bind(column(&new, |p| p.item.mark.as_str()))
        .fetch_one(conn)
        .await?;
    Ok(xmin(by))
}

/// A new message as it was written after all, if it was.
pub(super) async fn written(conn: &mut PgConnection, prepared: &Prepared) -> Result<Option<Accepted>> {
    let item = &prepared.item;
    let Some(message) = whole(conn, item.message.tenant, item.message.id).await? else { return Ok(None) };
    let found = recipients(conn, &[prepared]).await?.pop().and_then(|found| found.known);
    let contact = found.map_or(item.new_contact, |(_, contact)| ContactId::from_uuid(contact));
    Ok(Some(Accepted::New { message: Box::new(message), contact }))
}

/// One message, whole.
pub(super) async fn whole(conn: &mut PgConnection, tenant: TenantId, id: MessageId) -> Result<Option<Message>> {
    let row: Option<MessageRow> = sqlx::query_as(WHOLE).bind(tenant.0).bind(id.uuid()).fetch_optional(&mut *conn).await.store()?;
    let Some(mut row) = row else { return Ok(None) };
    fill(conn, &mut row.fixed).await?;
    row.decode().map(Some)
}

async fn fill(conn: &mut PgConnection, fixed: &mut FixedRow) -> Result<()> {
    if fixed.spooled == 0 {
        return Ok(());
    }
    let chunks: Vec<(Vec<u8>,)> = sqlx::query_as(CHUNKS).bind(fixed.tenant_id).bind(fixed.id).fetch_all(conn).await.store()?;
    unspool(fixed, chunks.into_iter().map(|(data,)| data).collect())
}

#[derive(sqlx::FromRow)]
struct LoadRow {
    #[sqlx(flatten)]
    message: MessageRow,
    starts: bool,
    suppressed: bool,
}

/// The part of a transaction's number that its rows bear.
fn xmin(transaction: i64) -> i64 {
    transaction & 0xffff_ffff
}

/// Applies a batch of steps: reads, locks and writes in a transaction.
pub(super) async fn transition(conn: &mut PgConnection, recent: &Recent, ops: &[TransitionOp]) -> Result<Vec<Transitioned>, Trouble> {
    let items = named_items(conn, ops).await?;
    let mut fold = Fold::default();
    let mut tx = conn.begin().await.store()?;
    let (answers, known) = apply_locked(&mut tx, &mut fold, &items).await?;
    tx.commit().await.map_err(Trouble::of_commit)?;
    recent.put(known.into_iter());
    recent.name(fold.references(&items).iter());
    Ok(answers)
}

/// What a batch says of one message.
#[derive(Debug, Default)]
struct Said {
    /// Anything but facts.
    decides: bool,
    /// Answers of providers with their ids.
    taken: u32,
    /// Receipts that are kept as they came.
    kept: u32,
}

impl Said {
    /// Whether one statement can write it: facts, with at most one of each kind of row beside the message's. They may be applied once
    /// more, should the answer be lost.
    fn fits(&self) -> bool {
        !self.decides && self.taken <= 1 && self.kept <= 1
    }
}

/// What a batch says, by message, in order.
fn said(items: &[Item<'_>]) -> BTreeMap<(i64, Uuid), Said> {
    let mut said: BTreeMap<_, Said> = BTreeMap::new();
    for item in items {
        let of = said.entry(Fold::key(item)).or_default();
        match &item.step {
            Step::Settle { outcome, .. } => of.taken += u32::from(!outcome.references().is_empty()),
            Step::Receipt { .. } => of.kept += u32::from(item.raw.is_some()),
            _ => of.decides = true,
        }
    }
    said
}

/// Rows beside a message's own that one statement writes with it.
#[derive(Debug, Default)]
struct Beside<'a> {
    taken_by: Option<Uuid>,
    attempt: Option<i16>,
    parts: BTreeMap<&'a str, i16>,
    receipt: Option<&'a RawReceipt>,
    /// It is by its reference that the receipt names the message.
    named: Option<bool>,
}

impl Beside<'_> {
    fn parts(&self) -> Result<Option<String>> {
        (!self.parts.is_empty()).then(|| json(&self.parts)).transpose()
    }
}

type Besides<'a> = HashMap<(i64, Uuid), Beside<'a>>;

fn besides<'a>(references: &[Reference<'a>], receipts: &[(i64, Uuid, &'a RawReceipt)], items: &[Item<'_>]) -> Besides<'a> {
    let mut besides = Besides::new();
    for &Reference { tenant, connection, reference, message, attempt, part } in references {
        let beside = besides.entry((tenant, message)).or_default();
        (beside.taken_by, beside.attempt) = (Some(connection), Some(attempt));
        beside.parts.insert(reference, part);
    }
    for (tenant, message, receipt) in receipts {
        besides.entry((*tenant, *message)).or_default().receipt = Some(receipt);
    }
    for item in items.iter().filter(|item| by_reference(item).is_some()) {
        if let Some(beside) = besides.get_mut(&Fold::key(item)) {
            beside.named = Some(true);
        }
    }
    besides
}

/// Writes facts about rows that this node wrote last, by one statement and without reading them. What else the batch holds, and rows that
/// another node wrote meanwhile, get no answer.
pub(super) async fn facts_at_once(
    conn: &mut PgConnection,
    recent: &Recent,
    ops: &[TransitionOp],
) -> Result<Vec<Option<Transitioned>>, Trouble> {
    let items = items(ops, |tenant, receipt| Ok(recent.named(tenant, receipt)))?;
    let mut answers: Vec<Option<Transitioned>> = Vec::new();
    answers.resize_with(ops.len(), || None);
    let mut fold = Fold::default();
    for (key, said) in said(&items) {
        // What may be paid goes the long way, which ends with the balance.
        if let Some(known) = recent.take(&key).filter(|known| said.fits() && !is_open(known.state.detail.money.as_ref())) {
            fold.insert(key, known.into());
        }
    }
    let mut open = Vec::new();
    for (n, item) in items.iter().enumerate() {
        if fold.contains(&Fold::key(item)) {
            open.push((n, fold.apply(item)?));
        }
    }
    let references = fold.references(&items);
    let besides = besides(&references, &fold.receipts(&items), &items);
    let touched = fold.touched();
    let written = write(conn, &touched, &besides, |loaded| Some(loaded.row)).await?;
    for (n, answer) in open {
        if written.keys.contains(&Fold::key(&items[n])) {
            answers[n] = Some(answer);
        }
    }
    recent.put(written.known(&touched).into_iter());
    recent.name(references.iter().filter(|r| written.keys.contains(&(r.tenant, r.message))));
    Ok(answers)
}

async fn apply_locked(
    conn: &mut PgConnection,
    fold: &mut Fold,
    items: &[Item<'_>],
) -> Result<(Vec<Transitioned>, Vec<((i64, Uuid), Known)>)> {
    let mut keys: BTreeMap<(i64, Uuid), bool> = BTreeMap::new();
    for item in items {
        *keys.entry(Fold::key(item)).or_default() |= matches!(item.step, Step::Start { .. });
    }
    let keys: Vec<_> = keys.into_iter().collect();
    let rows: Vec<LoadRow> = sqlx::query_as(LOAD)
        .bind(column(&keys, |((tenant, _), _)| *tenant))
        .bind(column(&keys, |((_, id), _)| *id))
        .bind(column(&keys, |(_, starts)| *starts))
        .fetch_all(&mut *conn)
        .await
        .store()?;
    for LoadRow { message: MessageRow { mut fixed, state }, starts, suppressed } in rows {
        let key = (fixed.tenant_id, fixed.id);
        let idempotency_key = fixed.idempotency_key.clone();
        if starts {
            fill(conn, &mut fixed).await?;
        }
        fold.insert(key, Loaded::new(0, fixed.address_id, state.decode()?, idempotency_key, starts.then_some(fixed), suppressed));
    }
    ask_broadcasts(conn, fold, items).await?;
    let answers = items.iter().map(|item| fold.apply(item)).collect::<Result<Vec<_>>>()?;
    keep_references(conn, &fold.references(items)).await?;
    keep_receipts(conn, &fold.receipts(items)).await?;
    let touched = fold.touched();
    let written = write(conn, &touched, &Besides::new(), |_| None).await.map_err(Trouble::into_store)?;
    let mut till = Till::default();
    touched.iter().for_each(|(key, loaded)| till.settle(*key, loaded));
    let known = written.known(&touched);
    write_moves(conn, &fold.moves()).await?;
    book(conn, &till).await?;
    Ok((answers, known))
}

/// The transitions of a batch; what stands behind the provider's ids in it is read at once.
async fn named_items<'a>(conn: &mut PgConnection, ops: &'a [TransitionOp]) -> Result<Vec<Item<'a>>> {
    let asked: Vec<_> = ops.iter().filter_map(|op| by_reference(&op.item).map(|receipt| (op.item.tenant.0, receipt))).collect();
    let mut known = HashMap::new();
    if !asked.is_empty() {
        let rows: Vec<(i64, Uuid, String, Uuid, i16, i16)> = sqlx::query_as(FIND_REFERENCES)
            .bind(column(&asked, |(tenant, _)| *tenant))
            .bind(column(&asked, |(_, receipt)| receipt.connection.uuid()))
            .bind(column(&asked, |(_, receipt)| receipt.reference.as_str()))
            .fetch_all(conn)
            .await
            .store()?;
        known.extend(
            rows.into_iter()
                .map(|(tenant, connection, reference, id, attempt, part)| ((tenant, connection, reference), (id, attempt, part))),
        );
    }
    items(ops, |tenant, receipt| Ok(known.get(&(tenant, receipt.connection.uuid(), receipt.reference.clone())).copied()))
}

async fn keep_references(conn: &mut PgConnection, references: &[Reference<'_>]) -> Result<()> {
    if references.is_empty() {
        return Ok(());
    }
    sqlx::query(INSERT_REFERENCES)
        .bind(column(references, |r| r.tenant))
        .bind(column(references, |r| r.connection))
        .bind(column(references, |r| r.reference))
        .bind(column(references, |r| r.message))
        .bind(column(references, |r| r.attempt))
        .bind(column(references, |r| r.part))
        .execute(conn)
        .await
        .store()
        .map(drop)
}

async fn keep_receipts(conn: &mut PgConnection, receipts: &[(i64, Uuid, &RawReceipt)]) -> Result<()> {
    if receipts.is_empty() {
        return Ok(());
    }
    sqlx::query(INSERT_RECEIPTS)
        .bind(column(receipts, |(tenant, ..)| *tenant))
        .bind(column(receipts, |(_, message, _)| *message))
        .bind(column(receipts, |(.., receipt)| receipt.id.uuid()))
        .bind(column(receipts, |(.., receipt)| receipt.connection.uuid()))
        .bind(column(receipts, |(.., receipt)| receipt.reference.as_str()))
        .bind(column(receipts, |(.., receipt)| receipt.raw.as_str()))
        .execute(conn)
        .await
        .store()
        .map(drop)
}

/// What an update wrote.
#[derive(Debug, Default)]
struct Written {
    by: i64,
    keys: HashSet<(i64, Uuid)>,
}

impl Written {
    fn known(&self, touched: &[((i64, Uuid), &Loaded)]) -> Vec<((i64, Uuid), Known)> {
        let rows = touched.iter().filter(|(key, _)| self.keys.contains(key));
        rows.map(|(key, loaded)| (*key, Known { written_by: self.by, ..Known::from(*loaded) })).collect()
    }
}

/// Writes rows, each on condition that the transaction which `written_by` names wrote it last, if it names one.
async fn write(
    conn: &mut PgConnection,
    touched: &[((i64, Uuid), &Loaded)],
    besides: &Besides<'_>,
    written_by: impl Fn(&Loaded) -> Option<i64>,
) -> Result<Written, Trouble> {
    let row = |(key, loaded): &((i64, Uuid), &Loaded)| {
        let event = (!loaded.changes.is_empty()).then(|| json(&loaded.changes)).transpose()?;
        Ok((*key, StateRow::encode(&loaded.state)?, first_sequence(loaded.state.version, &loaded.changes), event))
    };
    let rows = touched.iter().map(row).collect::<Result<Vec<_>>>()?;
    if rows.is_empty() {
        return Ok(Written::default());
    }
    let nothing = Beside::default();
    let beside: Vec<&Beside<'_>> = column(&rows, |(key, ..)| besides.get(key).unwrap_or(&nothing));
    let parts = beside.iter().map(|b| b.parts()).collect::<Result<Vec<_>>>()?;
    let ended = |l: &Loaded| if l.ended() { l.idempotency_key.clone() } else { None };
    let purge_after = |l: &Loaded| l.state.updated_at.millis() + limits::IDEMPOTENCY_RETENTION.as_millis() as i64;
    let written: Vec<(i64, i64, Uuid)> = sqlx::query_as(UPDATE)
        .bind(column(&rows, |(key, ..)| key.0))
        .bind(column(&rows, |(key, ..)| key.1))
        .bind(column(&rows, |(_, s, ..)| s.status))
        .bind(column(&rows, |(_, s, ..)| s.wait))
        .bind(column(&rows, |(_, s, ..)| s.held))
        .bind(column(&rows, |(_, s, ..)| s.due_at))
        .bind(column(&rows, |(_, s, ..)| s.owner))
        .bind(column(&rows, |(_, s, ..)| s.fence))
        .bind(column(&rows, |(_, s, ..)| s.version))
        .bind(column(&rows, |(_, s, ..)| s.expires_at))
        .bind(column(&rows, |(_, s, ..)| s.updated_at))
        .bind(column(&rows, |(_, s, ..)| s.channel))
        .bind(column(&rows, |(_, s, ..)| s.connection_id))
        .bind(column(&rows, |(_, s, ..)| s.provider.as_str()))
        .bind(column(&rows, |(_, s, ..)| s.detail.as_str()))
        .bind(column(&rows, |(_, _, sequence, _)| *sequence))
        .bind(column(&rows, |(.., event)| event.as_deref()))
        .bind(column(touched, |(_, l)| ended(l)))
        .bind(column(touched, |(_, l)| purge_after(l)))
        .bind(column(touched, |(_, l)| written_by(l)))
        .bind(Operation::OF_MESSAGES.map(Operation::number))
        .bind(column(&beside, |b| b.taken_by))
        .bind(column(&beside, |b| b.attempt))
        .bind(parts)
        .bind(column(&beside, |b| b.receipt.map(|r| r.id.uuid())))
        .bind(column(&beside, |b| b.receipt.map(|r| r.connection.uuid())))
        .bind(column(&beside, |b| b.receipt.map(|r| r.reference.as_str())))
        .bind(column(&beside, |b| b.receipt.map(|r| r.raw.as_str())))
        .bind(column(&beside, |b| b.named))
        .fetch_all(conn)
        .await
        .map_err(Trouble::of_commit)?;
    let by = written.first().map_or(0, |(by, ..)| xmin(*by));
    Ok(Written { by, keys: written.into_iter().map(|(_, tenant, id)| (tenant, id)).collect() })
}
