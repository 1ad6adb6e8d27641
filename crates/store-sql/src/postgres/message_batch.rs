//! Batches of messages: new ones, and steps of known ones.
//!
//! New messages take two round trips: one that reads what is known of their recipients, and one that writes everything and commits. Steps
//! of messages that memory knows take two as well: one that updates their states, and one that writes the rest and commits. What must be
//! looked at in between (keys, money, quotas, messages that memory does not know) takes one more each. Rows that several nodes may write are locked in one order everywhere: idempotency keys, recipients of broadcasts, addresses,
//! messages, states, ledger, balances, heads of logs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures::future::join_all;
use nuncio_domain::broadcast::{ContactStatus, Part, Status};
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::Balance;
use nuncio_domain::lifecycle::Step;
use nuncio_domain::message::Message;
use nuncio_domain::{ContactId, MessageId, Micros, TenantId, limits};
use nuncio_store::{Accepted, RawReceipt, Result, StoreError, Transitioned};
use tokio_postgres::Row;
use uuid::Uuid;

use super::session::{self, failed, statements};
use super::writers::Trouble;
use crate::agenda::AgendaRow;
use crate::event_log::LogRow;
use crate::known::{Known, Memory};
use crate::ledger_batch::{Till, sets_aside};
use crate::message_batch::{
    AcceptOp, Birth, Flag, Fold, Item, Loaded, Moves, Named, Prepared, Reference, StateWrite, TransitionOp, Verdict, Writes,
    asks_broadcast, by_reference, items, unspool,
};
use crate::quota::Quotas;
use crate::row::{FixedRow, StateRow};

const INSERT_KEYS: &str = r"
    INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at)
    SELECT *
    FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bytea[], $5::uuid[], $6::bigint[])
    ON CONFLICT DO NOTHING
    RETURNING resource_id";
const FIND_KEYS: &str = r"
    SELECT k.tenant_id, k.operation, k.key, k.resource_id, k.fingerprint
    FROM unnest($1::bigint[], $2::smallint[], $3::text[]) AS u (tenant_id, operation, key)
    JOIN idempotency_keys k ON k.tenant_id = u.tenant_id AND k.operation = u.operation AND k.key = u.key";
/// Gives back the keys of messages that were not written after all.
const FREE_KEYS: &str = r"
    DELETE FROM idempotency_keys k
    USING unnest($1::bigint[], $2::smallint[], $3::text[]) AS u (tenant_id, operation, key)
    WHERE k.tenant_id = u.tenant_id
      AND k.operation = u.operation
      AND k.key = u.key";
const FIND_REFERENCES: &str = r#"
    SELECT r.tenant_id, r.connection_id, r.reference, r.message_id, r.attempt, r.part
    FROM unnest($1::bigint[], $2::uuid[], $3::text[]) AS asked (tenant_id, connection_id, reference)
    JOIN provider_refs r ON r.tenant_id = asked.tenant_id AND r.connection_id = asked.connection_id
        AND r.reference = asked.reference COLLATE "C""#;
const INSERT_REFERENCES: &str = r"
    INSERT INTO provider_refs (tenant_id, connection_id, reference, message_id, attempt, part)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::uuid[], $5::smallint[], $6::smallint[])
    ON CONFLICT (tenant_id, connection_id, reference) DO UPDATE SET
        message_id = excluded.message_id,
        attempt = excluded.attempt,
        part = excluded.part
    WHERE provider_refs.message_id < excluded.message_id";
const INSERT_RECEIPTS: &str = r"
    INSERT INTO receipts (tenant_id, message_id, id, connection_id, reference, raw)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[])
    ON CONFLICT DO NOTHING";
const BALANCES: &str = r"
    SELECT b.tenant_id, b.available, b.reserved, b.spent, b.limited
    FROM unnest($1::bigint[]) AS u (tenant_id)
    JOIN balances b ON b.tenant_id = u.tenant_id";
const INSERT_TRANSFERS: &str = r"
    INSERT INTO ledger (tenant_id, resource_id, purpose, part, debit, credit, amount, sender_id,
        recorded_at)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::smallint[],
        $7::bigint[], $8::uuid[], $9::bigint[])";
/// A tenant that has no room any more, since another node filled it, is left out.
const COUNT_STORED: &str = r"
    UPDATE storage_quotas q
    SET stored_bytes = q.stored_bytes + u.bytes
    FROM unnest($1::bigint[], $2::bigint[]) AS u (tenant_id, bytes)
    WHERE q.tenant_id = u.tenant_id
      AND q.stored_bytes + u.bytes <= q.max_bytes";
/// A tenant whose balance became too small meanwhile is left out.
const MOVE: &str = r"
    INSERT INTO balances AS b (tenant_id, available, reserved, spent, limited)
    SELECT u.tenant_id, u.available, u.reserved, u.spent, 0
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
      AS u (tenant_id, available, reserved, spent)
    ON CONFLICT (tenant_id) DO UPDATE SET
        available = b.available + excluded.available,
        reserved = b.reserved + excluded.reserved,
        spent = b.spent + excluded.spent
    WHERE b.limited = 0
      OR excluded.available >= 0
      OR b.available + excluded.available >= 0";
/// A recipient who is not known may be one who was erased: their suppressions stand under a mark.
const RECIPIENTS: &str = r"
    SELECT u.n, w.epoch, q.max_bytes, q.stored_bytes, a.id, a.contact_id,
        EXISTS (
            SELECT 1
            FROM suppressions s
            WHERE s.tenant_id = u.tenant_id
              AND s.kind = u.kind
              AND s.identifier = u.identifier
              AND s.sender_id IN ('00000000-0000-0000-0000-000000000000', u.sender_id)
        ),
        a.id IS NULL AND EXISTS (
            SELECT 1
            FROM suppressions s
            WHERE s.tenant_id = u.tenant_id AND s.kind = u.kind AND s.identifier = u.mark
        ),
        a.id IS NULL AND EXISTS (
            SELECT 1
            FROM suppressions s
            WHERE s.tenant_id = u.tenant_id
              AND s.kind = u.kind
              AND s.identifier = u.mark
              AND s.sender_id IN ('00000000-0000-0000-0000-000000000000', u.sender_id)
        )
    FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::uuid[], $5::text[]) WITH ORDINALITY
      AS u (tenant_id, kind, identifier, sender_id, mark, n)
    LEFT JOIN worlds w ON w.tenant_id = u.tenant_id
    LEFT JOIN storage_quotas q ON q.tenant_id = u.tenant_id
    LEFT JOIN addresses a ON a.tenant_id = u.tenant_id AND a.kind = u.kind AND a.identifier = u.identifier";
/// An address that another node made meanwhile is a conflict, and the batch is run once more.
const INSERT_ADDRESSES: &str = r"
    INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::text[], $5::uuid[], $6::bigint[])";
const INSERT_CONTACTS: &str = r"
    INSERT INTO contacts (tenant_id, id, country, created_at, updated_at)
    SELECT u.tenant_id, u.id, u.country, u.at, u.at
    FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::bigint[])
      AS u (tenant_id, id, country, at)";
/// What an erased person had opted out of holds again when they are known again.
const RESTORE_SUPPRESSIONS: &str = r"
    UPDATE suppressions s
    SET identifier = u.identifier
    FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[])
      AS u (tenant_id, kind, identifier, mark)
    WHERE s.tenant_id = u.tenant_id
      AND s.kind = u.kind
      AND s.identifier = u.mark
      AND NOT EXISTS (
          SELECT 1
          FROM suppressions o
          WHERE o.tenant_id = s.tenant_id
            AND o.kind = s.kind
            AND o.identifier = u.identifier
            AND o.sender_id = s.sender_id
            AND o.reason = s.reason
      )";
const INSERT_MESSAGES: &str = r"
    INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id, recipient,
        sent_from, idempotency_key, spooled, request)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::uuid[], $6::uuid[],
        $7::text[], $8::text[], $9::text[], $10::int[], $11::text[])";
const INSERT_STATES: &str = r"
    INSERT INTO states (tenant_id, id, status, wait, held, due_at, owner, fence, version, revision,
        expires_at, updated_at, channel, connection_id, agenda, provider, detail, history)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::bigint[],
        $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
        $13::smallint[], $14::uuid[], $15::bigint[], $16::text[], $17::text[], $18::bytea[])";
/// A state that another node wrote meanwhile stays as it is, and so does one whose receipt names another message by now.
const UPDATE_STATES: &str = r#"
    UPDATE states s
    SET status = u.status, wait = u.wait, held = u.held, due_at = u.due_at, owner = u.owner,
        fence = u.fence, version = u.version, revision = u.revision, expires_at = u.expires_at,
        updated_at = u.updated_at, channel = u.channel, connection_id = u.connection_id, agenda = u.agenda,
        provider = u.provider, detail = u.detail, history = u.history
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::bigint[],
        $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
        $13::smallint[], $14::uuid[], $15::bigint[], $16::text[], $17::text[], $18::bytea[], $19::uuid[],
        $20::text[])
      AS u (tenant_id, id, status, wait, held, due_at, owner, fence, version, revision, expires_at,
        updated_at, channel, connection_id, agenda, provider, detail, history, named_by, reference)
    WHERE s.tenant_id = u.tenant_id
      AND s.id = u.id
      AND s.revision = u.revision - 1
      AND (u.named_by IS NULL OR u.id = (
          SELECT r.message_id
          FROM provider_refs r
          WHERE r.tenant_id = u.tenant_id
            AND r.connection_id = u.named_by
            AND r.reference = u.reference COLLATE "C"
      ))
    RETURNING s.tenant_id, s.id"#;
/// Rows that another node may hold are locked in one order, so that two nodes cannot wait for each other. Rows are locked for one tenant at
/// a time, here and below: a cluster locks no others.
const LOAD: &str = r"
    SELECT s.tenant_id, s.id, s.status, s.wait, s.held, s.due_at, s.owner, s.fence, s.version, s.expires_at,
        s.updated_at, s.channel, s.connection_id, s.provider, s.detail, s.revision, s.agenda, s.history,
        m.address_id, s.id = ANY($3), m.direction, m.message_type, m.sender_id, m.recipient, m.sent_from,
        m.idempotency_key, m.spooled,
        CASE WHEN s.id = ANY($3) THEN m.request ELSE '' END AS request
    FROM states s
    JOIN messages m ON m.tenant_id = s.tenant_id AND m.id = s.id
    WHERE s.tenant_id = $1 AND s.id = ANY($2)
    ORDER BY s.id
    FOR UPDATE OF s";
/// Of messages that are about to be sent, those whose recipient is suppressed.
const SUPPRESSED: &str = r"
    SELECT u.tenant_id, u.id
    FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::smallint[], $5::uuid[])
      AS u (tenant_id, id, recipient, channel, sender_id)
    WHERE EXISTS (
        SELECT 1
        FROM suppressions s
        WHERE s.tenant_id = u.tenant_id
          AND s.identifier = u.recipient
          AND s.kind = CASE u.channel WHEN 5 THEN 2 WHEN 4 THEN 3 WHEN 6 THEN 4 ELSE 1 END
          AND s.sender_id IN ('00000000-0000-0000-0000-000000000000', u.sender_id)
    )";
const INSERT_FLAGS: &str = r"
    INSERT INTO flagged (tenant_id, kind, id)
    SELECT *
    FROM unnest($1::bigint[], $2::smallint[], $3::uuid[])
    ON CONFLICT DO NOTHING";
const DELETE_FLAGS: &str = r"
    DELETE FROM flagged f
    USING unnest($1::bigint[], $2::smallint[], $3::uuid[]) AS u (tenant_id, kind, id)
    WHERE f.tenant_id = u.tenant_id AND f.kind = u.kind AND f.id = u.id";
const INSERT_AGENDA: &str = r"
    INSERT INTO agenda (tenant_id, id, shard, owner, due_at, connection_id, expires_at, ids)
    SELECT *
    FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::uuid[],
        $7::bigint[], $8::bytea[])";
const DELETE_AGENDA: &str = r"
    DELETE FROM agenda a
    USING unnest($1::bigint[], $2::bigint[]) AS u (tenant_id, id)
    WHERE a.tenant_id = u.tenant_id AND a.id = u.id";
/// Takes the next position in the log of each tenant. Other nodes wait here for the end of the transaction, so that positions have no gap
/// and are in the order of commits.
const RAISE_HEADS: &str = r"
    INSERT INTO log_heads AS h (tenant_id, position)
    SELECT u.tenant_id, 1
    FROM unnest($1::bigint[]) AS u (tenant_id)
    ON CONFLICT (tenant_id) DO UPDATE SET position = h.position + 1";
const INSERT_LOG: &str = r"
    INSERT INTO log (tenant_id, position, batch, recorded_at, entries)
    SELECT u.tenant_id, h.position, u.batch, u.recorded_at, u.entries
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])
      AS u (tenant_id, batch, recorded_at, entries)
    JOIN log_heads h ON h.tenant_id = u.tenant_id";
/// Recipients who were not handed over, of broadcasts that are being sent and were not taken by another node. Both rows are locked, so
/// that the answer holds until the transaction ends.
const CLAIM_CONTACTS: &str = r"
    SELECT c.id
    FROM unnest($2::uuid[], $3::uuid[], $4::bigint[]) AS u (broadcast_id, id, fence)
    JOIN broadcast_contacts c ON c.tenant_id = $1 AND c.broadcast_id = u.broadcast_id AND c.id = u.id
    JOIN broadcasts b ON b.tenant_id = c.tenant_id AND b.id = c.broadcast_id
    WHERE c.status = $5 AND b.status = $6 AND b.fence = u.fence
    ORDER BY c.broadcast_id, c.id
    FOR UPDATE OF c
    FOR SHARE OF b";
/// Of these broadcasts those in some statuses, locked: what is given back to a reservation must not meet the transaction that releases
/// it. Others are not locked.
const WITH_STATUS: &str = r"
    SELECT b.tenant_id, b.id, b.status
    FROM broadcasts b
    WHERE b.tenant_id = $1 AND b.id = ANY($2) AND b.status = ANY($3)
    ORDER BY b.id
    FOR SHARE OF b";
const MOVE_CONTACTS: &str = r"
    UPDATE broadcast_contacts c
    SET status = u.status, message_id = u.message_id
    FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::smallint[], $5::uuid[])
      AS u (tenant_id, broadcast_id, id, status, message_id)
    WHERE c.tenant_id = u.tenant_id
      AND c.broadcast_id = u.broadcast_id
      AND c.id = u.id";
const ADD_COUNTS: &str = r"
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
const CHUNKS: &str = "SELECT data FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 ORDER BY chunk";
const WHOLE: &str = r"
    SELECT m.tenant_id, m.id, s.status, s.wait, s.held, s.due_at, s.owner, s.fence, s.version, s.expires_at,
        s.updated_at, s.channel, s.connection_id, s.provider, s.detail, s.revision, s.agenda, s.history,
        m.address_id, true AS starts, m.direction, m.message_type, m.sender_id, m.recipient, m.sent_from,
        m.idempotency_key, m.spooled, m.request
    FROM messages m
    JOIN states s ON s.tenant_id = m.tenant_id AND s.id = m.id
    WHERE m.tenant_id = $1 AND m.id = $2";

statements! {
    insert_keys = INSERT_KEYS;
    find_keys = FIND_KEYS;
    free_keys = FREE_KEYS;
    find_references = FIND_REFERENCES;
    insert_references = INSERT_REFERENCES;
    insert_receipts = INSERT_RECEIPTS;
    balances = BALANCES;
    insert_transfers = INSERT_TRANSFERS;
    count_stored = COUNT_STORED;
    move_balances = MOVE;
    recipients = RECIPIENTS;
    insert_addresses = INSERT_ADDRESSES;
    insert_contacts = INSERT_CONTACTS;
    restore_suppressions = RESTORE_SUPPRESSIONS;
    insert_messages = INSERT_MESSAGES;
    insert_states = INSERT_STATES;
    update_states = UPDATE_STATES;
    load = LOAD;
    suppressed = SUPPRESSED;
    insert_flags = INSERT_FLAGS;
    delete_flags = DELETE_FLAGS;
    insert_agenda = INSERT_AGENDA;
    delete_agenda = DELETE_AGENDA;
    raise_heads = RAISE_HEADS;
    insert_log = INSERT_LOG;
    claim_contacts = CLAIM_CONTACTS;
    with_status = WITH_STATUS;
    move_contacts = MOVE_CONTACTS;
    add_counts = ADD_COUNTS;
    chunks = CHUNKS;
    whole = WHOLE;
}

/// A connection with the statements of this file.
pub(super) type Session = session::Session<Statements>;
type PgResult<T> = std::result::Result<T, tokio_postgres::Error>;

/// Opens a connection.
pub(super) async fn open(url: &str) -> Result<Session> {
    let (client, task) = session::connect(url).await?;
    let statements = Statements::prepare(&client).await.map_err(failed)?;
    Ok(Session::new((client, task), statements))
}

/// Gathers one column of a batch.
pub(super) fn column<'a, T, U>(items: &'a [T], value: impl Fn(&'a T) -> U) -> Vec<U> {
    items.iter().map(value).collect()
}

/// What a committed batch leaves in memory.
#[derive(Debug, Default)]
struct Outcome {
    known: Vec<((i64, Uuid), Known)>,
    references: Vec<(i64, Uuid, String, Named)>,
    rows: Vec<AgendaRow>,
    leaving: BTreeMap<(i64, i64), usize>,
}

impl Outcome {
    fn remember(self, memory: &Memory) {
        memory.agenda.committed(&self.leaving, &self.rows);
        memory.put(self.known.into_iter());
        memory.name(self.references.into_iter());
    }
}

/// Writes a batch of new messages.
pub(super) async fn accept(session: &Session, memory: &Memory, ops: &[AcceptOp]) -> Result<Vec<Verdict>, Trouble> {
    let accepted = try_accept(session, memory, ops).await;
    roll_back_unless(session, &accepted).await;
    let (answers, outcome) = accepted?;
    outcome.remember(memory);
    Ok(answers)
}

/// Ends the transaction of a batch that failed before its commit.
async fn roll_back_unless<T>(session: &Session, done: &Result<T, Trouble>) {
    if done.is_err() && !session.is_closed() {
        let _ = session.run("ROLLBACK").await; // a warning, if there is none
    }
}

async fn try_accept(session: &Session, memory: &Memory, ops: &[AcceptOp]) -> Result<(Vec<Verdict>, Outcome), Trouble> {
    let all: Vec<&Prepared> = ops.iter().map(|op| &*op.item).collect();
    let mut answers: Vec<Option<Accepted>> = Vec::new();
    answers.resize_with(ops.len(), || None);
    let (begun, found) = tokio::join!(session.run("BEGIN"), recipients(session, &all));
    begun.map_err(failed)?;
    let found = found.map_err(failed)?;
    for ((answer, found), prepared) in answers.iter_mut().zip(&found).zip(&all) {
        if found.epoch != Some(prepared.item.epoch) {
            *answer = Some(Accepted::Stale);
        }
    }
    claim_keys(session, &all, &mut answers).await?;
    claim_contacts(session, &all, &mut answers).await?;
    let mut quotas = Quotas::default();
    for (prepared, found) in all.iter().zip(&found) {
        quotas.know(prepared.item.message.tenant.0, found.quota.map(|q| q.0), found.quota.map(|q| q.1));
    }
    let till = till(session, &all).await?;
    let till = refuse(session, &all, &found, till, &mut quotas, &mut answers).await?;
    let open: Vec<(usize, &Prepared, Found)> = all
        .iter()
        .zip(&found)
        .enumerate()
        .filter(|(n, _)| answers[*n].is_none())
        .map(|(n, (prepared, found))| (n, *prepared, *found))
        .collect();
    let born = births(&open)?;
    let mut writes = Writes::default();
    let states: Vec<StateWrite<'_>> = born.iter().map(|birth| writes.born(&birth.born)).collect();
    let mut moves = Moves::default();
    born.iter().for_each(|birth| moves.born(&birth.born.message));
    let new = new_recipients(&open);
    let written = async { tokio::join!(insert_recipients(session, &new), insert(session, &born, &states)) };
    let mut outcome = if till.is_empty() && quotas.added().is_empty() {
        // Sent together: what one of them fails with, all that follow fail with, the commit too.
        let ((addresses, messages), outcome) = tokio::join!(written, finish(session, memory, writes, &moves));
        addresses.and(messages).map_err(Trouble::of_commit)?;
        outcome?
    } else {
        let (addresses, messages) = written.await;
        addresses.and(messages).map_err(failed)?;
        count_stored(session, &quotas).await?;
        book(session, &till).await?;
        finish(session, memory, writes, &moves).await?
    };
    outcome.known = born.iter().zip(states).map(|(birth, write)| ((write.tenant, write.id), Known::born(birth, write))).collect();
    let mut born = born.into_iter();
    let verdict = |answer: Option<Accepted>| answer.map(Verdict::Refused).or_else(|| born.next().map(Verdict::from));
    Ok((answers.into_iter().filter_map(verdict).collect(), outcome))
}

/// Writes what a batch adds up to, and commits.
async fn finish(session: &Session, memory: &Memory, writes: Writes, moves: &Moves) -> Result<Outcome, Trouble> {
    let Writes { log, agenda, leaving, flags, flags_gone, .. } = writes;
    let (rows, log) = (agenda.into_rows(), log.into_rows());
    let emptied = memory.agenda.emptied(&leaving);
    let s = &session.statements;
    let (tenants, ids) = (column(&emptied, |key| key.0), column(&emptied, |key| key.1));
    let done = tokio::join!(
        write_moves(session, moves),
        put_flags(session, &s.insert_flags, &flags),
        put_flags(session, &s.delete_flags, &flags_gone),
        insert_agenda(session, &rows),
        async { session.execute(!emptied.is_empty(), &s.delete_agenda, &[&tenants, &ids]).await },
        insert_log(session, &log),
        session.run("COMMIT"),
    );
    let (moved, set, gone, added, deleted, logged, committed) = done;
    // A server that answers a statement with an error rolls the rest back; only a lost answer leaves doubt.
    for written in [moved, set, gone, added, deleted, logged] {
        written.map_err(Trouble::of_commit)?;
    }
    committed.map_err(Trouble::of_commit)?;
    Ok(Outcome { rows, leaving, ..Outcome::default() })
}

async fn put_flags(session: &Session, statement: &tokio_postgres::Statement, flags: &[Flag]) -> PgResult<u64> {
    let (tenants, kinds, ids) = (column(flags, |f| f.tenant), column(flags, |f| f.kind), column(flags, |f| f.id));
    session.execute(!flags.is_empty(), statement, &[&tenants, &kinds, &ids]).await
}

async fn insert_agenda(session: &Session, rows: &[AgendaRow]) -> PgResult<u64> {
    let (tenants, ids, shards) = (column(rows, |r| r.tenant), column(rows, |r| r.id), column(rows, AgendaRow::shard));
    let (owners, due, connections) = (column(rows, |r| r.owner), column(rows, |r| r.due_at), column(rows, |r| r.connection));
    let (expires, members) = (column(rows, |r| r.expires_at), column(rows, AgendaRow::ids));
    let values: &session::Params<'_> = &[&tenants, &ids, &shards, &owners, &due, &connections, &expires, &members];
    session.execute(!rows.is_empty(), &session.statements.insert_agenda, values).await
}

async fn insert_log(session: &Session, rows: &[LogRow]) -> PgResult<u64> {
    let (tenants, batches) = (column(rows, |r| r.tenant), column(rows, |r| r.batch));
    let (times, texts) = (column(rows, |r| r.recorded_at), column(rows, LogRow::text));
    let s = &session.statements;
    let (raised, written) = tokio::join!(async { session.execute(!rows.is_empty(), &s.raise_heads, &[&tenants]).await }, async {
        session.execute(!rows.is_empty(), &s.insert_log, &[&tenants, &batches, &times, &texts]).await
    });
    raised.and(written)
}

/// The balances of the tenants whose new messages may cost something.
async fn till(session: &Session, all: &[&Prepared]) -> Result<Till, Trouble> {
    let tenants: BTreeSet<i64> = all.iter().filter(|p| sets_aside(&p.item.message) > 0).map(|p| p.item.message.tenant.0).collect();
    let mut till = Till::default();
    if tenants.is_empty() {
        return Ok(till);
    }
    let tenants: Vec<i64> = tenants.into_iter().collect();
    for row in session.query(&session.statements.balances, &[&tenants]).await.map_err(failed)? {
        let (available, reserved, spent) = (Micros(row.get(1)), Micros(row.get(2)), Micros(row.get(3)));
        till.know(TenantId(row.get(0)), Balance { available, reserved, spent, limited: row.get::<_, i16>(4) != 0 });
    }
    Ok(till)
}

/// Reserves what the new messages of a batch may cost, and counts their bytes. One for which there is no money or no room is refused, and
/// its key is free again.
async fn refuse(
    session: &Session,
    all: &[&Prepared],
    found: &[Found],
    mut till: Till,
    quotas: &mut Quotas,
    answers: &mut [Option<Accepted>],
) -> Result<Till, Trouble> {
    let mut refused = HashMap::new();
    for (n, prepared) in all.iter().enumerate().filter(|(n, _)| answers[*n].is_none()).collect::<Vec<_>>() {
        let refusal = match quotas.refuse(prepared) {
            None if !found[n].suppressed => till.reserve(&prepared.item.message).err().map(Accepted::Short),
            refusal => refusal,
        };
        match refusal {
            Some(refusal) => {
                refused.insert(prepared.item.message.id, refusal.clone());
                answers[n] = Some(refusal);
            }
            None => quotas.keep(prepared),
        }
    }
    if refused.is_empty() {
        return Ok(till);
    }
    // A message that lost its key to one that is refused was not served either.
    for answer in answers.iter_mut() {
        if let Some(Accepted::Duplicate { original, .. }) = answer
            && let Some(refusal) = refused.get(original)
        {
            *answer = Some(refusal.clone());
        }
    }
    let freed: Vec<_> = all
        .iter()
        .map(|prepared| &prepared.item)
        .filter(|item| refused.contains_key(&item.message.id))
        .filter_map(|item| Some((item.message.tenant.0, item.idempotency.as_ref()?)))
        .collect();
    let (tenants, operations) = (column(&freed, |f| f.0), column(&freed, |f| f.1.operation.number()));
    let keys = column(&freed, |f| f.1.key.as_str());
    session.execute(!freed.is_empty(), &session.statements.free_keys, &[&tenants, &operations, &keys]).await.map_err(failed)?;
    Ok(till)
}

/// Writes how many bytes more tenants with a quota keep.
async fn count_stored(session: &Session, quotas: &Quotas) -> Result<()> {
    let added = quotas.added();
    let (tenants, bytes) = (column(&added, |(tenant, _)| *tenant), column(&added, |(_, bytes)| *bytes));
    let counted = session.execute(!added.is_empty(), &session.statements.count_stored, &[&tenants, &bytes]).await.map_err(failed)?;
    if counted < added.len() as u64 {
        return Err(StoreError::Busy("another node filled the room that this batch counted on".to_owned()));
    }
    Ok(())
}

/// Writes what a batch moves.
async fn book(session: &Session, till: &Till) -> Result<()> {
    if till.is_empty() {
        return Ok(());
    }
    let rows = &till.rows;
    let (tenants, resources, purposes) = (column(rows, |r| r.tenant), column(rows, |r| r.resource), column(rows, |r| r.purpose.number()));
    let (parts, amounts, senders) = (column(rows, |r| r.part), column(rows, |r| r.amount), column(rows, |r| r.sender));
    let (debits, credits) = (column(rows, |r| r.purpose.accounts().0.number()), column(rows, |r| r.purpose.accounts().1.number()));
    let times = column(rows, |r| r.at);
    let moves: Vec<_> = till.moves.iter().collect();
    let (moving, available) = (column(&moves, |(tenant, _)| **tenant), column(&moves, |(_, m)| m.available));
    let (reserved, spent) = (column(&moves, |(_, m)| m.reserved), column(&moves, |(_, m)| m.spent));
    let s = &session.statements;
    let (transferred, moved) = tokio::join!(
        async {
            session
                .execute(
                    true,
                    &s.insert_transfers,
                    &[&tenants, &resources, &purposes, &parts, &debits, &credits, &amounts, &senders, &times],
                )
                .await
        },
        async { session.execute(true, &s.move_balances, &[&moving, &available, &reserved, &spent]).await }
    );
    transferred.map_err(failed)?;
    if moved.map_err(failed)? < moves.len() as u64 {
        return Err(StoreError::Busy("another node spent what this batch counted on".to_owned()));
    }
    Ok(())
}

/// Takes the idempotency keys of a batch, in key order. A message whose key was used is answered with the original.
async fn claim_keys(session: &Session, all: &[&Prepared], answers: &mut [Option<Accepted>]) -> Result<(), Trouble> {
    // Of two items with one key the first takes it: the statement may name each key once only.
    let mut keys: BTreeMap<(i64, i16, &str), &Prepared> = BTreeMap::new();
    let mut guarded = Vec::new();
    for (n, prepared) in all.iter().enumerate() {
        if answers[n].is_none()
            && let Some(key) = &prepared.item.idempotency
        {
            let place = (prepared.item.message.tenant.0, key.operation.number(), key.key.as_str());
            keys.entry(place).or_insert(prepared);
            guarded.push((n, place, key));
        }
    }
    if guarded.is_empty() {
        return Ok(());
    }
    let unique: Vec<_> = keys.iter().collect();
    let (tenants, operations) = (column(&unique, |((tenant, ..), _)| *tenant), column(&unique, |((_, operation, _), _)| *operation));
    let texts = column(&unique, |((.., key), _)| *key);
    let prints = column(&unique, |(_, p)| p.item.idempotency.as_ref().map_or_else(Vec::new, |k| k.fingerprint.to_vec()));
    let ids = column(&unique, |(_, p)| p.item.message.id.uuid());
    let check = column(&unique, |(_, p)| p.item.now.plus(limits::IDEMPOTENCY_RETENTION).millis());
    let s = &session.statements;
    let won = session.query(&s.insert_keys, &[&tenants, &operations, &texts, &prints, &ids, &check]).await.map_err(failed)?;
    let won: HashSet<Uuid> = won.iter().map(|row| row.get(0)).collect();
    let lost: Vec<_> = guarded.into_iter().filter(|(n, ..)| !won.contains(&all[*n].item.message.id.uuid())).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let (tenants, operations) = (column(&lost, |(_, (tenant, ..), _)| *tenant), column(&lost, |(_, (_, operation, _), _)| *operation));
    let texts = column(&lost, |(_, (.., key), _)| *key);
    let rows = session.query(&s.find_keys, &[&tenants, &operations, &texts]).await.map_err(failed)?;
    let originals: HashMap<(i64, i16, String), (Uuid, Vec<u8>)> =
        rows.iter().map(|row| ((row.get(0), row.get(1), row.get(2)), (row.get(3), row.get(4)))).collect();
    for (n, (tenant, operation, key), mine) in lost {
        if let Some((id, fingerprint)) = originals.get(&(tenant, operation, key.to_owned())) {
            let same_request = fingerprint.as_slice() == mine.fingerprint;
            answers[n] = Some(Accepted::Duplicate { original: MessageId::from_uuid(*id), same_request });
        }
    }
    Ok(())
}

/// Takes the recipients of broadcasts that a batch hands over. A recipient who was handed over before, and one of a broadcast that is not
/// being sent, is answered so.
async fn claim_contacts(session: &Session, all: &[&Prepared], answers: &mut [Option<Accepted>]) -> Result<(), Trouble> {
    let part = |p: &Prepared| p.item.message.state.detail.broadcast;
    let parts: Vec<_> = all.iter().enumerate().filter_map(|(n, p)| Some((n, p.item.message.tenant, part(p)?))).collect();
    if parts.is_empty() {
        return Ok(());
    }
    let mut asked: BTreeMap<i64, Vec<(Part, i64)>> = BTreeMap::new();
    for (n, tenant, part) in &parts {
        asked.entry(tenant.0).or_default().push((*part, all[*n].item.broadcast_fence));
    }
    let (pending, sending) = (ContactStatus::Pending.number(), Status::Sending.number());
    let claim = &session.statements.claim_contacts;
    let open = for_each(asked, |tenant, parts| async move {
        let (broadcasts, contacts) = (column(&parts, |(part, _)| part.broadcast.uuid()), column(&parts, |(part, _)| part.contact.uuid()));
        let fences = column(&parts, |(_, fence)| *fence);
        session.query(claim, &[&tenant, &broadcasts, &contacts, &fences, &pending, &sending]).await
    })
    .await?;
    // Each is taken out once: the same recipient may come twice in a batch.
    let mut open: HashSet<Uuid> = open.iter().map(|row| row.get(0)).collect();
    for (n, _, part) in parts {
        if answers[n].is_none() && !open.remove(&part.contact.uuid()) {
            answers[n] = Some(Accepted::Closed);
        }
    }
    Ok(())
}

async fn write_moves(session: &Session, moves: &Moves) -> PgResult<u64> {
    let m = &moves.contacts;
    let (tenants, broadcasts) = (column(m, |m| m.tenant), column(m, |m| m.part.broadcast.uuid()));
    let (contacts, statuses, messages) = (column(m, |m| m.part.contact.uuid()), column(m, |m| m.status.number()), column(m, |m| m.message));
    let counts: Vec<_> = moves.counts.iter().collect();
    let (of, counted) = (column(&counts, |((tenant, _), _)| *tenant), column(&counts, |((_, broadcast), _)| *broadcast));
    let (queued, sending, sent) =
        (column(&counts, |(_, c)| c.queued), column(&counts, |(_, c)| c.sending), column(&counts, |(_, c)| c.sent));
    let (delivered, failed) = (column(&counts, |(_, c)| c.delivered), column(&counts, |(_, c)| c.failed));
    let (skipped, awaited, taken) =
        (column(&counts, |(_, c)| c.skipped), column(&counts, |(_, c)| c.awaited), column(&counts, |(_, c)| c.taken));
    let (cost, prepaid, held) = (column(&counts, |(_, c)| c.cost), column(&counts, |(_, c)| c.prepaid), column(&counts, |(_, c)| c.held));
    let s = &session.statements;
    let sums: &session::Params<'_> =
        &[&of, &counted, &queued, &sending, &sent, &delivered, &failed, &skipped, &awaited, &taken, &cost, &prepaid, &held];
    let (moved, added) = tokio::join!(
        async { session.execute(!m.is_empty(), &s.move_contacts, &[&tenants, &broadcasts, &contacts, &statuses, &messages]).await },
        async { session.execute(!counts.is_empty(), &s.add_counts, sums).await }
    );
    moved.and(added)
}

/// What is known of the recipient of one item.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// Of the tenant; `None` when it is gone.
    epoch: Option<i64>,
    /// How many bytes its tenant may keep, and keeps.
    quota: Option<(i64, i64)>,
    /// Address and contact.
    known: Option<(Uuid, Uuid)>,
    /// Suppressions of it stand under its mark, since it was erased.
    marked: bool,
    suppressed: bool,
}

/// The messages as they are inserted: with the address of their recipient, and failed where that one is suppressed.
fn births<'a>(open: &[(usize, &'a Prepared, Found)]) -> Result<Vec<Birth<'a>>> {
    let new = new_recipients(open).into_iter();
    let new: HashMap<_, _> = new.map(|(p, _)| (place(p), (p.item.new_address.uuid(), p.item.new_contact.uuid()))).collect();
    open.iter().map(|(_, prepared, found)| prepared.birth(found.suppressed, found.known.unwrap_or_else(|| new[&place(prepared)]))).collect()
}

/// Of each recipient that is not known the first item, in one order everywhere.
fn new_recipients<'a>(open: &[(usize, &'a Prepared, Found)]) -> Vec<(&'a Prepared, Found)> {
    let mut unique: BTreeMap<_, (&Prepared, Found)> = BTreeMap::new();
    for (_, prepared, found) in open.iter().filter(|(.., found)| found.known.is_none()) {
        unique.entry(place(prepared)).or_insert((prepared, *found));
    }
    unique.into_values().collect()
}

/// What tells a recipient apart.
fn place(prepared: &Prepared) -> (i64, i16, &str) {
    let recipient = &prepared.item.recipient;
    (prepared.item.message.tenant.0, recipient.kind.number(), &recipient.identifier)
}

async fn recipients(session: &Session, prepared: &[&Prepared]) -> PgResult<Vec<Found>> {
    let (tenants, kinds) = (column(prepared, |p| p.item.message.tenant.0), column(prepared, |p| p.item.recipient.kind.number()));
    let identifiers = column(prepared, |p| p.item.recipient.identifier.as_str());
    let (senders, marks) = (column(prepared, |p| p.item.message.sender.uuid()), column(prepared, |p| p.item.mark.as_str()));
    let rows = session.query(&session.statements.recipients, &[&tenants, &kinds, &identifiers, &senders, &marks]).await?;
    let mut found = vec![Found::default(); prepared.len()];
    for row in rows {
        let (max_bytes, stored_bytes): (Option<i64>, Option<i64>) = (row.get(2), row.get(3));
        let (address, contact): (Option<Uuid>, Option<Uuid>) = (row.get(4), row.get(5));
        found[row.get::<_, i64>(0) as usize - 1] = Found {
            epoch: row.get(1),
            quota: max_bytes.zip(stored_bytes),
            known: address.zip(contact),
            marked: row.get(7),
            suppressed: row.get(6) || row.get(8),
        };
    }
    Ok(found)
}

async fn insert_recipients(session: &Session, new: &[(&Prepared, Found)]) -> PgResult<()> {
    let marked: Vec<&Prepared> = new.iter().filter(|(_, found)| found.marked).map(|(prepared, _)| *prepared).collect();
    let new = column(new, |(prepared, _)| *prepared);
    let (tenants, addresses) = (column(&new, |p| p.item.message.tenant.0), column(&new, |p| p.item.new_address.uuid()));
    let (kinds, identifiers) = (column(&new, |p| p.item.recipient.kind.number()), column(&new, |p| p.item.recipient.identifier.as_str()));
    let (contacts, times) = (column(&new, |p| p.item.new_contact.uuid()), column(&new, |p| p.item.now.millis()));
    let countries = column(&new, |p| p.item.country.as_str());
    let (s, any) = (&session.statements, !new.is_empty());
    let (first, second, third) = tokio::join!(
        async { session.execute(any, &s.insert_addresses, &[&tenants, &addresses, &kinds, &identifiers, &contacts, &times]).await },
        async { session.execute(any, &s.insert_contacts, &[&tenants, &contacts, &countries, &times]).await },
        restore_suppressions(session, &marked)
    );
    first.and(second).and(third).map(drop)
}

async fn restore_suppressions(session: &Session, marked: &[&Prepared]) -> PgResult<u64> {
    let (tenants, kinds) = (column(marked, |p| p.item.message.tenant.0), column(marked, |p| p.item.recipient.kind.number()));
    let (identifiers, marks) = (column(marked, |p| p.item.recipient.identifier.as_str()), column(marked, |p| p.item.mark.as_str()));
    let values: &session::Params<'_> = &[&tenants, &kinds, &identifiers, &marks];
    session.execute(!marked.is_empty(), &session.statements.restore_suppressions, values).await
}

async fn insert(session: &Session, born: &[Birth<'_>], states: &[StateWrite<'_>]) -> PgResult<()> {
    let (tenants, ids) = (column(born, |b| b.born.fixed.tenant_id), column(born, |b| b.born.fixed.id));
    let (directions, types) = (column(born, |b| b.born.fixed.direction), column(born, |b| b.born.fixed.message_type));
    let (senders, addresses) = (column(born, |b| b.born.fixed.sender_id), column(born, |b| b.address));
    let (recipients, origins) = (column(born, |b| b.born.fixed.recipient.as_str()), column(born, |b| b.born.fixed.sent_from.as_str()));
    let (keys, spooled) = (column(born, |b| b.born.fixed.idempotency_key.as_deref()), column(born, |b| b.born.fixed.spooled));
    let requests = column(born, |b| b.born.fixed.request.as_str());
    let values: &session::Params<'_> =
        &[&tenants, &ids, &directions, &types, &senders, &addresses, &recipients, &origins, &keys, &spooled, &requests];
    let columns = StateColumns::new(states);
    let s = &session.statements;
    let (messages, rows) = tokio::join!(async { session.execute(!born.is_empty(), &s.insert_messages, values).await }, async {
        session.execute(!born.is_empty(), &s.insert_states, &columns.params()).await
    });
    messages.and(rows).map(drop)
}

/// The columns of states.
struct StateColumns<'a> {
    keys: (Vec<i64>, Vec<Uuid>),
    small: [Vec<i16>; 4],
    waits: [Vec<Option<i64>>; 3],
    numbers: [Vec<i64>; 5],
    connections: Vec<Uuid>,
    texts: [Vec<&'a str>; 2],
    histories: Vec<&'a [u8]>,
}

impl<'a> StateColumns<'a> {
    fn new(states: &'a [StateWrite<'_>]) -> Self {
        let small = |value: fn(&StateRow) -> i16| column(states, |s| value(&s.row));
        let number = |value: fn(&StateRow) -> i64| column(states, |s| value(&s.row));
        Self {
            keys: (column(states, |s| s.tenant), column(states, |s| s.id)),
            small: [small(|r| r.status), small(|r| r.wait), small(|r| r.held), small(|r| r.channel)],
            waits: [column(states, |s| s.row.due_at), column(states, |s| s.row.owner), column(states, |s| s.agenda)],
            numbers: [
                number(|r| r.fence),
                number(|r| r.version),
                column(states, |s| s.revision),
                number(|r| r.expires_at),
                number(|r| r.updated_at),
            ],
            connections: column(states, |s| s.row.connection_id),
            texts: [column(states, |s| s.row.provider.as_str()), column(states, |s| s.row.detail.as_str())],
            histories: column(states, |s| s.history.as_slice()),
        }
    }

    fn params(&self) -> [&(dyn tokio_postgres::types::ToSql + Sync); 18] {
        let [status, wait, held, channel] = &self.small;
        let [fence, version, revision, expires_at, updated_at] = &self.numbers;
        let [due_at, owner, agenda] = &self.waits;
        let [provider, detail] = &self.texts;
        [
            &self.keys.0,
            &self.keys.1,
            status,
            wait,
            held,
            due_at,
            owner,
            fence,
            version,
            revision,
            expires_at,
            updated_at,
            channel,
            &self.connections,
            agenda,
            provider,
            detail,
            &self.histories,
        ]
    }
}

/// A new message as it was written after all, if it was.
pub(super) async fn written(session: &Session, prepared: &Prepared) -> Result<Option<Accepted>> {
    let item = &prepared.item;
    let Some(message) = whole(session, item.message.tenant, item.message.id).await? else { return Ok(None) };
    let found = recipients(session, &[prepared]).await.map_err(failed)?.pop().and_then(|found| found.known);
    let contact = found.map_or(item.new_contact, |(_, contact)| ContactId::from_uuid(contact));
    Ok(Some(Accepted::New { message: Box::new(message), contact }))
}

/// One message, whole.
pub(super) async fn whole(session: &Session, tenant: TenantId, id: MessageId) -> Result<Option<Message>> {
    let rows = session.query(&session.statements.whole, &[&tenant.0, &id.uuid()]).await.map_err(failed)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let state = state_of(row).decode()?;
    fixed_of(session, row).await?.decode(state).map(Some)
}

/// The state in a row of [`LOAD`] or [`WHOLE`].
fn state_of(row: &Row) -> StateRow {
    StateRow {
        status: row.get(2),
        wait: row.get(3),
        held: row.get(4),
        due_at: row.get(5),
        owner: row.get(6),
        fence: row.get(7),
        version: row.get(8),
        expires_at: row.get(9),
        updated_at: row.get(10),
        channel: row.get(11),
        connection_id: row.get(12),
        provider: row.get(13),
        detail: row.get(14),
    }
}

/// The part that never changes, with the chunks of a large request.
async fn fixed_of(session: &Session, row: &Row) -> Result<FixedRow> {
    let mut fixed = FixedRow {
        tenant_id: row.get(0),
        id: row.get(1),
        direction: row.get(20),
        message_type: row.get(21),
        sender_id: row.get(22),
        address_id: row.get(18),
        recipient: row.get(23),
        sent_from: row.get(24),
        idempotency_key: row.get(25),
        spooled: row.get(26),
        request: row.get(27),
    };
    if fixed.spooled > 0 {
        let chunks = session.query(&session.statements.chunks, &[&fixed.tenant_id, &fixed.id]).await.map_err(failed)?;
        unspool(&mut fixed, chunks.iter().map(|row| row.get(0)).collect())?;
    }
    Ok(fixed)
}

/// Applies a batch of steps.
pub(super) async fn transition(session: &Session, memory: &Memory, ops: &[TransitionOp]) -> Result<Vec<Transitioned>, Trouble> {
    let changed = try_transition(session, memory, ops).await;
    roll_back_unless(session, &changed).await;
    let (answers, outcome) = changed?;
    outcome.remember(memory);
    Ok(answers)
}

async fn try_transition(session: &Session, memory: &Memory, ops: &[TransitionOp]) -> Result<(Vec<Transitioned>, Outcome), Trouble> {
    let items = named_items(session, memory, ops).await?;
    let mut keys: BTreeMap<(i64, Uuid), bool> = BTreeMap::new();
    for item in &items {
        *keys.entry(Fold::key(item)).or_default() |= matches!(item.step, Step::Start { .. });
    }
    let mut fold = Fold::default();
    let (mut unknown, mut starting) = (Vec::new(), Vec::new());
    for (key, starts) in keys {
        match memory.take(&key).filter(|known| !starts || known.fixed.is_some()) {
            Some(known) => {
                if starts {
                    starting.push(key);
                }
                fold.insert(key, Loaded { remembered: true, ..Loaded::new(known, false) });
            }
            None => unknown.push((key, starts)),
        }
    }
    let mut begun = false;
    begin_with(session, &mut begun, !unknown.is_empty(), load(session, &mut fold, &unknown)).await?;
    starting.extend(unknown.iter().filter(|(_, starts)| *starts).map(|(key, _)| *key));
    let asks = items.iter().any(|item| asks_broadcast(&item.step));
    begin_with(session, &mut begun, asks, check_starts(session, &mut fold, &starting, &items)).await?;
    let mut writes = Writes::default();
    let mut answers = items.iter().map(|item| fold.apply(item)).collect::<Result<Vec<_>>>()?;
    let doubtful = fold.doubtful(&items, &answers);
    begin_with(session, &mut begun, !doubtful.is_empty(), apply_again(session, &mut fold, &doubtful, &items, &mut answers)).await?;
    let mut states = begin_with(session, &mut begun, true, update(session, &mut fold, &mut writes, &items, None)).await?;
    let stale: BTreeSet<(i64, Uuid)> =
        fold.touched().into_iter().map(|(key, _)| key).filter(|key| !states.iter().any(|s| (s.tenant, s.id) == *key)).collect();
    let named: Vec<&Item<'_>> = items.iter().filter(|item| stale.contains(&Fold::key(item)) && by_reference(item).is_some()).collect();
    if !named.is_empty() {
        named.iter().for_each(|item| by_reference(item).into_iter().for_each(|receipt| memory.unname(item.tenant.0, receipt)));
        return Err(StoreError::Busy("another node changed what a receipt names".to_owned()).into());
    }
    if !stale.is_empty() {
        // Another node wrote these since: they are read, locked and changed once more.
        apply_again(session, &mut fold, &stale, &items, &mut answers).await?;
        states.extend(update(session, &mut fold, &mut writes, &items, Some(&stale)).await?);
    }
    let mut till = Till::default();
    let mut known = Vec::with_capacity(states.len());
    for write in states {
        let key = (write.tenant, write.id);
        let Some(loaded) = fold.get(&key) else { continue };
        writes.written(&write, loaded);
        till.settle(key, loaded);
        let Known { state, address, .. } = &loaded.known;
        known.push((key, Known::after(write, state.clone(), *address, None)));
    }
    let (references, receipts, moves) = (fold.references(&items), fold.receipts(&items), fold.moves());
    book(session, &till).await?;
    let (kept, noted, outcome) =
        tokio::join!(keep_references(session, &references), keep_receipts(session, &receipts), finish(session, memory, writes, &moves));
    kept.and(noted).map_err(Trouble::of_commit)?;
    let mut outcome = outcome?;
    outcome.known = known;
    let named = |r: &Reference<'_>| (r.tenant, r.connection, r.reference.to_owned(), (r.message, r.attempt, r.part));
    outcome.references = references.iter().map(named).collect();
    Ok((answers, outcome))
}

/// Runs the first part of a transaction together with its begin; runs what comes later alone, and nothing that is not wanted.
async fn begin_with<T: Default>(session: &Session, begun: &mut bool, wanted: bool, part: impl Future<Output = Result<T>>) -> Result<T> {
    match (wanted, std::mem::replace(begun, *begun || wanted)) {
        (false, _) => Ok(T::default()),
        (true, true) => part.await,
        (true, false) => {
            let (began, done) = tokio::join!(session.run("BEGIN"), part);
            began.map_err(failed)?;
            done
        }
    }
}

/// Reads and locks messages of which memory was wrong, and takes their steps once more.
async fn apply_again(
    session: &Session,
    fold: &mut Fold,
    keys: &BTreeSet<(i64, Uuid)>,
    items: &[Item<'_>],
    answers: &mut [Transitioned],
) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let again: Vec<_> = keys.iter().map(|key| (*key, items.iter().any(|i| Fold::key(i) == *key && is_start(i)))).collect();
    keys.iter().for_each(|key| fold.remove(key));
    load(session, fold, &again).await?;
    let starting: Vec<_> = again.iter().filter(|(_, starts)| *starts).map(|(key, _)| *key).collect();
    check_starts(session, fold, &starting, items).await?;
    for (item, answer) in items.iter().zip(answers).filter(|(item, _)| keys.contains(&Fold::key(item))) {
        *answer = fold.apply(item)?;
    }
    Ok(())
}

fn is_start(item: &Item<'_>) -> bool {
    matches!(item.step, Step::Start { .. })
}

/// Runs a query for each tenant, in their order, and all at once.
async fn for_each<A, Q: Future<Output = PgResult<Vec<Row>>>>(asked: BTreeMap<i64, A>, query: impl Fn(i64, A) -> Q) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for answer in join_all(asked.into_iter().map(|(tenant, values)| query(tenant, values))).await {
        rows.extend(answer.map_err(failed)?);
    }
    Ok(rows)
}

/// Reads and locks messages.
async fn load(session: &Session, fold: &mut Fold, keys: &[((i64, Uuid), bool)]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut asked: BTreeMap<i64, (Vec<Uuid>, Vec<Uuid>)> = BTreeMap::new();
    for ((tenant, id), starts) in keys {
        let (ids, starting) = asked.entry(*tenant).or_default();
        ids.push(*id);
        starting.extend(starts.then_some(*id));
    }
    let load = &session.statements.load;
    for row in for_each(asked, |tenant, (ids, starting)| async move { session.query(load, &[&tenant, &ids, &starting]).await }).await? {
        let state = state_of(&row).decode()?;
        let fixed = if row.get(19) { Some(Arc::new(fixed_of(session, &row).await?.decode(state.clone())?)) } else { None };
        let known = Known { state, address: row.get(18), revision: row.get(15), agenda: row.get(16), history: row.get(17), fixed };
        fold.insert((row.get(0), row.get(1)), Loaded::new(known, false));
    }
    Ok(())
}

/// Finds out which of the messages that may start are to a suppressed recipient, and which broadcasts let no attempt of the batch start.
async fn check_starts(session: &Session, fold: &mut Fold, keys: &[(i64, Uuid)], items: &[Item<'_>]) -> Result<()> {
    let asked: Vec<_> = keys
        .iter()
        .filter_map(|key| {
            let known = &fold.get(key)?.known;
            let message = known.fixed.as_ref()?;
            Some((*key, message.to.clone(), known.state.route.channel.number(), message.sender.uuid()))
        })
        .collect();
    let (tenants, ids) = (column(&asked, |a| a.0.0), column(&asked, |a| a.0.1));
    let (recipients, channels, senders) = (column(&asked, |a| a.1.as_str()), column(&asked, |a| a.2), column(&asked, |a| a.3));
    let mut broadcasts: BTreeMap<i64, Vec<Uuid>> = BTreeMap::new();
    fold.deciding_broadcasts(items).into_iter().for_each(|(tenant, broadcast)| broadcasts.entry(tenant).or_default().push(broadcast));
    let halting = &[Status::Paused, Status::Cancelled].map(Status::number).to_vec();
    let s = &session.statements;
    let (suppressed, halted) = tokio::join!(
        async { session.query_if(!asked.is_empty(), &s.suppressed, &[&tenants, &ids, &recipients, &channels, &senders]).await },
        for_each(broadcasts, |tenant, which| async move { session.query(&s.with_status, &[&tenant, &which, halting]).await })
    );
    for row in suppressed.map_err(failed)? {
        fold.suppress(&(row.get(0), row.get(1)));
    }
    let halted = halted?;
    let halts = |row: &Row| Some(((row.get(0), row.get(1)), Status::from_number(row.get(2))?.halt()?));
    fold.halt(&halted.iter().filter_map(halts).collect());
    Ok(())
}

/// Writes the states that a batch changed (of these messages, if given) on condition that they are as the batch found them; returns those
/// that were written.
async fn update(
    session: &Session,
    fold: &mut Fold,
    writes: &mut Writes,
    items: &[Item<'_>],
    only: Option<&BTreeSet<(i64, Uuid)>>,
) -> Result<Vec<StateWrite<'static>>> {
    let touched = fold.touched().into_iter().filter(|(key, _)| only.is_none_or(|only| only.contains(key)));
    let states = touched.map(|(key, loaded)| writes.update(key, loaded)).collect::<Result<Vec<_>>>()?;
    if states.is_empty() {
        return Ok(states);
    }
    let mut named: HashMap<(i64, Uuid), &RawReceipt> = HashMap::new();
    for item in items {
        if let Some(receipt) = by_reference(item) {
            named.insert(Fold::key(item), receipt);
        }
    }
    let receipts = column(&states, |s| named.get(&(s.tenant, s.id)).copied());
    let (connections, references) =
        (column(&receipts, |r| r.map(|r| r.connection.uuid())), column(&receipts, |r| r.map(|r| r.reference.as_str())));
    let rows = {
        let columns = StateColumns::new(&states);
        let mut params = columns.params().to_vec();
        params.push(&connections);
        params.push(&references);
        session.query(&session.statements.update_states, &params).await.map_err(failed)?
    };
    let written: HashSet<(i64, Uuid)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let (written, lost): (Vec<_>, Vec<_>) = states.into_iter().partition(|s| written.contains(&(s.tenant, s.id)));
    lost.iter().for_each(|write| writes.withdraw(write));
    Ok(written)
}

/// The transitions of a batch; the messages that receipts name are read at once, as far as memory does not know them.
async fn named_items<'a>(session: &Session, memory: &Memory, ops: &'a [TransitionOp]) -> Result<Vec<Item<'a>>> {
    let asked: Vec<_> = ops
        .iter()
        .filter_map(|op| Some((op.item.tenant.0, by_reference(&op.item)?)))
        .filter(|(tenant, receipt)| memory.named(*tenant, receipt).is_none())
        .collect();
    let mut known: HashMap<(i64, Uuid, String), Named> = HashMap::new();
    if !asked.is_empty() {
        let (tenants, connections) = (column(&asked, |(tenant, _)| *tenant), column(&asked, |(_, receipt)| receipt.connection.uuid()));
        let references = column(&asked, |(_, receipt)| receipt.reference.as_str());
        let rows = session.query(&session.statements.find_references, &[&tenants, &connections, &references]).await.map_err(failed)?;
        known.extend(rows.iter().map(|row| ((row.get(0), row.get(1), row.get(2)), (row.get(3), row.get(4), row.get(5)))));
    }
    let find = |tenant, receipt: &RawReceipt| {
        memory.named(tenant, receipt).or_else(|| known.get(&(tenant, receipt.connection.uuid(), receipt.reference.clone())).copied())
    };
    items(ops, |tenant, receipt| Ok(find(tenant, receipt)))
}

async fn keep_references(session: &Session, references: &[Reference<'_>]) -> PgResult<u64> {
    let (tenants, connections) = (column(references, |r| r.tenant), column(references, |r| r.connection));
    let (texts, messages) = (column(references, |r| r.reference), column(references, |r| r.message));
    let (attempts, parts) = (column(references, |r| r.attempt), column(references, |r| r.part));
    let values: &session::Params<'_> = &[&tenants, &connections, &texts, &messages, &attempts, &parts];
    session.execute(!references.is_empty(), &session.statements.insert_references, values).await
}

async fn keep_receipts(session: &Session, receipts: &[(i64, Uuid, &RawReceipt)]) -> PgResult<u64> {
    let (tenants, messages) = (column(receipts, |(tenant, ..)| *tenant), column(receipts, |(_, message, _)| *message));
    let (ids, connections) = (column(receipts, |(.., r)| r.id.uuid()), column(receipts, |(.., r)| r.connection.uuid()));
    let (references, texts) = (column(receipts, |(.., r)| r.reference.as_str()), column(receipts, |(.., r)| r.raw.as_str()));
    let values: &session::Params<'_> = &[&tenants, &messages, &ids, &connections, &references, &texts];
    session.execute(!receipts.is_empty(), &session.statements.insert_receipts, values).await
}
