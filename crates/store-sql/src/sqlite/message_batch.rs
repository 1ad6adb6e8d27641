//! The statements of message batches: prepared once, run in a loop.

use std::sync::Arc;

use nuncio_domain::broadcast::{ContactStatus, Counts, Part, Status};
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::Balance;
use nuncio_domain::lifecycle::Step;
use nuncio_domain::{MessageId, Micros, TenantId, Timestamp, limits};
use nuncio_store::{Accepted, DeliveryLog, Idempotency, MetricRow, RawReceipt, Result, Transitioned};
use rusqlite::{Connection, OptionalExtension as _, Statement, params};
use uuid::Uuid;

use super::rusqlite_error as failed;
use crate::agenda::{AgendaKey, AgendaRow};
use crate::known::{Known, Memory};
use crate::ledger_batch::{Till, sets_aside};
use crate::message_batch::{
    AcceptOp, Birth, Fold, Item, Loaded, Move, Moves, Named, Prepared, Reference, StateWrite, TransitionOp, Verdict, Writes,
    asks_broadcast, items, tenants, unspool,
};
use crate::quota::Quotas;
use crate::row::{FixedRow, StateRow, json};

/// Gives each statement a number.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        #[expect(clippy::upper_case_acronyms, non_camel_case_types, reason = "it only counts the names of constants")]
        enum Number { $($name,)+ }
        $($(#[$doc])* const $name: usize = Number::$name as usize;)+
        const TEXTS: &[&str] = &[$($sql,)+];
    };
}

statements! {
    EPOCH = r"
        SELECT w.epoch, q.max_bytes, q.stored_bytes
        FROM worlds w
        LEFT JOIN storage_quotas q ON q.tenant_id = w.tenant_id
        WHERE w.tenant_id = ?1";
    COUNT_STORED = "UPDATE storage_quotas SET stored_bytes = stored_bytes + ?2 WHERE tenant_id = ?1";
    INSERT_KEY = r"
        INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT DO NOTHING";
    FIND_KEY = r"
        SELECT resource_id, fingerprint
        FROM idempotency_keys
        WHERE tenant_id = ?1 AND operation = ?2 AND key = ?3";
    FREE_KEY = "DELETE FROM idempotency_keys WHERE tenant_id = ?1 AND operation = ?2 AND key = ?3";
    FIND_ADDRESS = "SELECT id, contact_id FROM addresses WHERE tenant_id = ?1 AND kind = ?2 AND identifier = ?3";
    INSERT_CONTACT = r"
        INSERT INTO contacts (tenant_id, id, country, created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?4)";
    INSERT_ADDRESS = r"
        INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    /// What an erased person had opted out of holds again when they are known again.
    RESTORE = r"
        UPDATE OR IGNORE suppressions
        SET identifier = ?3
        WHERE tenant_id = ?1 AND kind = ?2 AND identifier = ?4";
    // The `+` keeps the senders out of the index look-up: as a list there they would be put into a temporary table, at ten times the cost.
    SUPPRESSED = r"
        SELECT 1
        FROM suppressions
        WHERE tenant_id = ?1
          AND kind = ?2
          AND identifier = ?3
          AND (+sender_id = ?4 OR +sender_id = ?5)
        LIMIT 1";
    IS_MARKED = "SELECT 1 FROM suppressions WHERE tenant_id = ?1 AND kind = ?2 AND identifier = ?3 LIMIT 1";
    INSERT_MESSAGE = r"
        INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id, recipient,
            sent_from, idempotency_key, spooled, request)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    INSERT_STATE = r"
        INSERT INTO states (tenant_id, id, status, wait, held, due_at, owner, fence, version, revision,
            expires_at, updated_at, channel, connection_id, agenda, provider, detail, history)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    UPDATE_STATE = r"
        UPDATE states
        SET status = ?3, wait = ?4, held = ?5, due_at = ?6, owner = ?7, fence = ?8, version = ?9,
            revision = ?10, expires_at = ?11, updated_at = ?12, channel = ?13, connection_id = ?14,
            agenda = ?15, provider = ?16, detail = ?17, history = ?18
        WHERE tenant_id = ?1 AND id = ?2 AND revision = ?10 - 1";
    LOAD = r"
        SELECT s.status, s.wait, s.held, s.due_at, s.owner, s.fence, s.version, s.expires_at, s.updated_at,
            s.channel, s.connection_id, s.provider, s.detail, s.revision, s.agenda, s.history, m.address_id
        FROM states s
        JOIN messages m ON m.tenant_id = s.tenant_id AND m.id = s.id
        WHERE s.tenant_id = ?1 AND s.id = ?2";
    LOAD_FIXED = r"
        SELECT direction, message_type, sender_id, address_id, recipient, sent_from, idempotency_key,
            spooled, request
        FROM messages
        WHERE tenant_id = ?1 AND id = ?2";
    IS_SUPPRESSED = r"
        SELECT 1
        FROM suppressions
        WHERE tenant_id = ?1
          AND identifier = ?2
          AND kind = CASE ?3 WHEN 5 THEN 2 WHEN 4 THEN 3 WHEN 6 THEN 4 ELSE 1 END
          AND (+sender_id = zeroblob(16) OR +sender_id = ?4)
        LIMIT 1";
    // Two statements: RETURNING would open a temporary table each time.
    RAISE_HEAD = r"
        INSERT INTO log_heads (tenant_id, position)
        VALUES (?1, 1)
        ON CONFLICT (tenant_id) DO UPDATE SET position = position + 1";
    HEAD = "SELECT position FROM log_heads WHERE tenant_id = ?1";
    INSERT_LOG = "INSERT INTO log (tenant_id, position, batch, recorded_at, entries) VALUES (?1, ?2, ?3, ?4, ?5)";
    INSERT_AGENDA = r"
        INSERT INTO agenda (tenant_id, id, shard, owner, due_at, connection_id, expires_at, ids)
        VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7)";
    DELETE_AGENDA = "DELETE FROM agenda WHERE tenant_id = ?1 AND id = ?2";
    INSERT_FLAG = "INSERT INTO flagged (tenant_id, kind, id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    DELETE_FLAG = "DELETE FROM flagged WHERE tenant_id = ?1 AND kind = ?2 AND id = ?3";
    FIND_REFERENCE = r"
        SELECT message_id, attempt, part
        FROM provider_refs
        WHERE tenant_id = ?1 AND connection_id = ?2 AND reference = ?3";
    INSERT_REFERENCE = r"
        INSERT INTO provider_refs (tenant_id, connection_id, reference, message_id, attempt, part)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT DO UPDATE SET message_id = excluded.message_id, attempt = excluded.attempt,
            part = excluded.part
        WHERE provider_refs.message_id < excluded.message_id";
    INSERT_RECEIPT = r"
        INSERT OR IGNORE INTO receipts (tenant_id, id, message_id, connection_id, reference, raw)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    CHUNKS = "SELECT data FROM spool_chunks WHERE tenant_id = ?1 AND message_id = ?2 ORDER BY chunk";
    OPEN_CONTACT = r"
        SELECT 1
        FROM broadcast_contacts c
        JOIN broadcasts b ON b.tenant_id = c.tenant_id AND b.id = c.broadcast_id
        WHERE c.tenant_id = ?1
          AND c.broadcast_id = ?2
          AND c.id = ?3
          AND c.status = ?4
          AND b.status = ?5
          AND b.fence = ?6";
    STATUS = "SELECT status FROM broadcasts WHERE tenant_id = ?1 AND id = ?2";
    MOVE_CONTACT = r"
        UPDATE broadcast_contacts
        SET status = ?4, message_id = ?5
        WHERE tenant_id = ?1 AND broadcast_id = ?2 AND id = ?3";
    ADD_COUNTS = r"
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
    PUT_DELIVERY = r"
        INSERT INTO deliveries (tenant_id, id, sender_id, event_id, event_type, kind, resource_id, sequence,
            url, status, tries, due_at, attempts, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
        ON CONFLICT (tenant_id, id) DO UPDATE SET
            url = excluded.url,
            status = excluded.status,
            tries = excluded.tries,
            due_at = excluded.due_at,
            attempts = excluded.attempts,
            updated_at = excluded.updated_at
        WHERE deliveries.status <> 2 OR excluded.status = 2";
    FENCE = "SELECT 1 FROM webhook_cursors WHERE tenant_id = ?1 AND fence = ?2";
    ADVANCE = "UPDATE webhook_cursors SET position = ?2, entry = ?3 WHERE tenant_id = ?1";
    BALANCE = "SELECT available, reserved, spent, limited FROM balances WHERE tenant_id = ?1";
    INSERT_TRANSFER = r"
        INSERT INTO ledger (tenant_id, resource_id, purpose, part, debit, credit, amount, sender_id,
            recorded_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    MOVE = r"
        INSERT INTO balances (tenant_id, available, reserved, spent, limited)
        VALUES (?1, ?2, ?3, ?4, 0)
        ON CONFLICT (tenant_id) DO UPDATE SET
            available = available + excluded.available,
            reserved = reserved + excluded.reserved,
            spent = spent + excluded.spent";
    ADD_METRICS = r"
        INSERT INTO channel_metrics (tenant_id, address_id, channel, successes, failures, delivery_ms,
            timed, last_success_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (tenant_id, address_id, channel) DO UPDATE SET
            successes = successes + excluded.successes,
            failures = failures + excluded.failures,
            delivery_ms = delivery_ms + excluded.delivery_ms,
            timed = timed + excluded.timed,
            last_success_at = CASE
                WHEN last_success_at > excluded.last_success_at OR excluded.last_success_at IS NULL
                THEN last_success_at
                ELSE excluded.last_success_at
            END";
}

/// The statements of the writer. Each is prepared when it is first needed, and kept.
pub(super) struct Statements<'c> {
    conn: &'c Connection,
    prepared: Vec<Option<Statement<'c>>>,
}

impl<'c> Statements<'c> {
    pub(super) fn new(conn: &'c Connection) -> Self {
        Self { conn, prepared: TEXTS.iter().map(|_| None).collect() }
    }

    fn get(&mut self, number: usize) -> rusqlite::Result<&mut Statement<'c>> {
        let place = &mut self.prepared[number];
        if place.is_none() {
            *place = Some(self.conn.prepare(TEXTS[number])?);
        }
        place.as_mut().ok_or(rusqlite::Error::InvalidQuery)
    }
}

/// Adds to the metrics of channels; no row twice.
pub(super) fn add_metrics(sql: &mut Statements<'_>, deltas: &[MetricRow]) -> Result<()> {
    let add = sql.get(ADD_METRICS).map_err(failed)?;
    for (tenant, address, channel, delta) in deltas {
        add.execute(params![
            tenant.0,
            address.uuid().as_bytes(),
            channel.number(),
            delta.successes,
            delta.failures,
            delta.delivery_ms,
            delta.timed,
            delta.last_success_at.map(Timestamp::millis)
        ])
        .map_err(failed)?;
    }
    Ok(())
}

/// Writes what became of deliveries; answers whether the reader's fence holds.
pub(super) fn log_deliveries(sql: &mut Statements<'_>, log: &DeliveryLog) -> Result<bool> {
    let put = sql.get(PUT_DELIVERY).map_err(failed)?;
    for delivery in &log.deliveries {
        put.execute(params![
            log.tenant.0,
            delivery.id.uuid().as_bytes(),
            delivery.sender.map_or(Uuid::nil(), |s| s.uuid()).as_bytes(),
            delivery.event.uuid().as_bytes(),
            delivery.event_type.as_str(),
            delivery.kind.number(),
            delivery.resource.as_bytes(),
            delivery.sequence,
            delivery.url,
            delivery.status.number(),
            delivery.tries,
            delivery.due_at.map(Timestamp::millis),
            json(&delivery.attempts)?,
            delivery.updated_at.millis(),
        ])
        .map_err(failed)?;
    }
    let holds = sql.get(FENCE).map_err(failed)?;
    let holds = holds.exists(params![log.tenant.0, log.fence]).map_err(failed)?;
    if let (true, Some(read)) = (holds, log.read) {
        sql.get(ADVANCE).and_then(|s| s.execute(params![log.tenant.0, read.commit, read.entry])).map_err(failed)?;
    }
    Ok(holds)
}

/// What one transaction writes, and what is remembered of it after the commit.
#[derive(Debug, Default)]
pub(super) struct Batch {
    writes: Writes,
    known: Vec<((i64, Uuid), Known)>,
    references: Vec<(i64, Uuid, String, Named)>,
    rows: Vec<AgendaRow>,
    /// A state was changed around this process, so that what memory says of it is wrong.
    pub(super) stale: bool,
}

impl Batch {
    /// Writes what the batch adds up to, as the last thing before the commit.
    pub(super) fn finish(&mut self, sql: &mut Statements<'_>, memory: &Memory) -> Result<()> {
        let writes = std::mem::take(&mut self.writes);
        self.rows = writes.agenda.into_rows();
        self.write_agenda(sql, &memory.agenda.emptied(&writes.leaving)).map_err(failed)?;
        for flag in &writes.flags {
            let values = params![flag.tenant, flag.kind, flag.id.as_bytes()];
            sql.get(INSERT_FLAG).and_then(|statement| statement.execute(values)).map_err(failed)?;
        }
        for flag in &writes.flags_gone {
            let values = params![flag.tenant, flag.kind, flag.id.as_bytes()];
            sql.get(DELETE_FLAG).and_then(|statement| statement.execute(values)).map_err(failed)?;
        }
        for row in writes.log.into_rows() {
            sql.get(RAISE_HEAD).and_then(|statement| statement.execute([row.tenant])).map_err(failed)?;
            let position: i64 =
                sql.get(HEAD).and_then(|statement| statement.query_row([row.tenant], |found| found.get(0))).map_err(failed)?;
            let values = params![row.tenant, position, row.batch, row.recorded_at, row.text()];
            sql.get(INSERT_LOG).and_then(|statement| statement.execute(values)).map_err(failed)?;
        }
        self.writes.leaving = writes.leaving;
        Ok(())
    }

    fn write_agenda(&self, sql: &mut Statements<'_>, emptied: &[AgendaKey]) -> rusqlite::Result<()> {
        for row in &self.rows {
            sql.get(INSERT_AGENDA)?.execute(params![
                row.tenant,
                row.id,
                row.owner,
                row.due_at,
                row.connection.map(Uuid::into_bytes),
                row.expires_at,
                row.ids()
            ])?;
        }
        for (tenant, id) in emptied {
            sql.get(DELETE_AGENDA)?.execute(params![tenant, id])?;
        }
        Ok(())
    }

    /// Remembers what is on disk now.
    pub(super) fn committed(self, memory: &Memory) {
        memory.agenda.committed(&self.writes.leaving, &self.rows);
        memory.put(self.known.into_iter());
        memory.name(self.references.into_iter());
    }
}

/// Writes a batch of new messages. The answers must not be given before the commit.
pub(super) fn accept(sql: &mut Statements<'_>, batch: &mut Batch, ops: &[AcceptOp]) -> Result<Vec<Verdict>> {
    let mut epochs = Vec::new();
    let mut quotas = Quotas::default();
    for tenant in tenants(ops) {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?));
        let found = sql.get(EPOCH).and_then(|s| s.query_row([tenant.0], read).optional()).map_err(failed)?;
        epochs.push((tenant, found.map(|(epoch, ..)| epoch)));
        found.iter().for_each(|(_, max_bytes, stored_bytes)| quotas.know(tenant.0, *max_bytes, *stored_bytes));
    }
    let mut till = till(sql, ops).map_err(failed)?;
    let mut moves = Moves::default();
    let accepted = ops
        .iter()
        .map(|op| {
            let prepared = &op.item;
            let known = epochs.iter().any(|(tenant, epoch)| *tenant == prepared.item.message.tenant && *epoch == Some(prepared.item.epoch));
            if !known {
                return Ok(Verdict::Refused(Accepted::Stale));
            }
            accept_one(sql, batch, prepared, &mut till, &mut quotas, &mut moves).map_err(failed)?
        })
        .collect::<Result<Vec<_>>>()?;
    add_counts(sql, &moves).map_err(failed)?;
    for (tenant, bytes) in quotas.added() {
        sql.get(COUNT_STORED).and_then(|s| s.execute([tenant, bytes])).map_err(failed)?;
    }
    book(sql, &till).map_err(failed)?;
    Ok(accepted)
}

/// The balances of the worlds whose new messages may cost something.
fn till(sql: &mut Statements<'_>, ops: &[AcceptOp]) -> rusqlite::Result<Till> {
    let mut till = Till::default();
    let mut tenants: Vec<i64> =
        ops.iter().filter(|op| sets_aside(&op.item.item.message) > 0).map(|op| op.item.item.message.tenant.0).collect();
    tenants.sort_unstable();
    tenants.dedup();
    for tenant in tenants {
        let balance = sql
            .get(BALANCE)?
            .query_row([tenant], |row| {
                let (available, reserved, spent) = (Micros(row.get(0)?), Micros(row.get(1)?), Micros(row.get(2)?));
                Ok(Balance { available, reserved, spent, limited: row.get::<_, i64>(3)? != 0 })
            })
            .optional()?;
        till.know(TenantId(tenant), balance.unwrap_or_default());
    }
    Ok(till)
}

/// Writes what a batch moves.
fn book(sql: &mut Statements<'_>, till: &Till) -> rusqlite::Result<()> {
    for row in &till.rows {
        let (debit, credit) = row.purpose.accounts();
        sql.get(INSERT_TRANSFER)?.execute(params![
            row.tenant,
            row.resource.as_bytes(),
            row.purpose.number(),
            row.part,
            debit.number(),
            credit.number(),
            row.amount,
            row.sender.map(Uuid::into_bytes),
            row.at
        ])?;
    }
    for (tenant, moves) in &till.moves {
        sql.get(MOVE)?.execute(params![tenant, moves.available, moves.reserved, moves.spent])?;
    }
    Ok(())
}

fn accept_one(
    sql: &mut Statements<'_>,
    batch: &mut Batch,
    prepared: &Prepared,
    till: &mut Till,
    quotas: &mut Quotas,
    moves: &mut Moves,
) -> rusqlite::Result<Result<Verdict>> {
    let item = &prepared.item;
    if let Some(part) = item.message.state.detail.broadcast
        && !is_open(sql, item.message.tenant.0, part, item.broadcast_fence)?
    {
        return Ok(Ok(Verdict::Refused(Accepted::Closed)));
    }
    if let Some(key) = &item.idempotency
        && let Some(original) = claim_key(sql, prepared, key)?
    {
        return Ok(Ok(Verdict::Refused(original)));
    }
    let message = &item.message;
    let known = find_address(sql, prepared)?;
    // Suppressions of somebody who was erased stand under a mark; who is known has none.
    let marked = known.is_none() && is_marked(sql, prepared)?;
    let suppressed = is_suppressed(sql, prepared, &item.recipient.identifier)? || marked && is_suppressed(sql, prepared, &item.mark)?;
    let refusal = match quotas.refuse(prepared) {
        None if !suppressed => till.reserve(message).err().map(Accepted::Short),
        refusal => refusal,
    };
    if let Some(refusal) = refusal {
        if let Some(key) = &item.idempotency {
            sql.get(FREE_KEY)?.execute(params![message.tenant.0, key.operation.number(), key.key])?;
        }
        return Ok(Ok(Verdict::Refused(refusal)));
    }
    quotas.keep(prepared);
    let known = match known {
        Some(known) => known,
        None => make_address(sql, prepared, marked)?,
    };
    let birth = match prepared.birth(suppressed, known) {
        Ok(birth) => birth,
        Err(error) => return Ok(Err(error)),
    };
    insert(sql, batch, &birth)?;
    if message.state.detail.broadcast.is_some() {
        // Written at once: the same recipient may come twice in a batch.
        moves.born(&birth.born.message);
        for moved in moves.contacts.drain(..) {
            move_contact(sql, &moved)?;
        }
    }
    Ok(Ok(birth.into()))
}

/// Whether a recipient was not handed over yet, and their broadcast is being sent and was not taken by anybody else.
fn is_open(sql: &mut Statements<'_>, tenant: i64, part: Part, fence: i64) -> rusqlite::Result<bool> {
    let (pending, sending) = (ContactStatus::Pending.number(), Status::Sending.number());
    let key = (part.broadcast.uuid(), part.contact.uuid());
    sql.get(OPEN_CONTACT)?.exists(params![tenant, key.0.as_bytes(), key.1.as_bytes(), pending, sending, fence])
}

fn move_contact(sql: &mut Statements<'_>, moved: &Move) -> rusqlite::Result<()> {
    let key = (moved.part.broadcast.uuid(), moved.part.contact.uuid());
    let values = params![moved.tenant, key.0.as_bytes(), key.1.as_bytes(), moved.status.number(), moved.message.map(Uuid::into_bytes)];
    sql.get(MOVE_CONTACT)?.execute(values)?;
    Ok(())
}

fn add_counts(sql: &mut Statements<'_>, moves: &Moves) -> rusqlite::Result<()> {
    for ((tenant, broadcast), counts) in &moves.counts {
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

/// Takes the idempotency key, or answers the message that has it.
fn claim_key(sql: &mut Statements<'_>, prepared: &Prepared, key: &Idempotency) -> rusqlite::Result<Option<Accepted>> {
    let message = &prepared.item.message;
    let inserted = sql.get(INSERT_KEY)?.execute(params![
        message.tenant.0,
        key.operation.number(),
        key.key,
        key.fingerprint,
        message.id.uuid().as_bytes(),
        prepared.item.now.plus(limits::IDEMPOTENCY_RETENTION).millis()
    ])?;
    if inserted == 1 {
        return Ok(None);
    }
    sql.get(FIND_KEY)?
        .query_row(params![message.tenant.0, key.operation.number(), key.key], |row| {
            let original = MessageId::from_uuid(uuid(row.get(0)?));
            let fingerprint: Vec<u8> = row.get(1)?;
            Ok(Accepted::Duplicate { original, same_request: fingerprint == key.fingerprint })
        })
        .map(Some)
}

fn is_suppressed(sql: &mut Statements<'_>, prepared: &Prepared, identifier: &str) -> rusqlite::Result<bool> {
    let message = &prepared.item.message;
    sql.get(SUPPRESSED)?.exists(params![
        message.tenant.0,
        prepared.item.recipient.kind.number(),
        identifier,
        Uuid::nil().as_bytes(),
        message.sender.uuid().as_bytes()
    ])
}

fn is_marked(sql: &mut Statements<'_>, prepared: &Prepared) -> rusqlite::Result<bool> {
    let item = &prepared.item;
    sql.get(IS_MARKED)?.exists(params![item.message.tenant.0, item.recipient.kind.number(), item.mark])
}

/// The recipient's address row and contact.
fn find_address(sql: &mut Statements<'_>, prepared: &Prepared) -> rusqlite::Result<Option<(Uuid, Uuid)>> {
    let recipient = &prepared.item.recipient;
    sql.get(FIND_ADDRESS)?
        .query_row(params![prepared.item.message.tenant.0, recipient.kind.number(), recipient.identifier], |row| {
            Ok((uuid(row.get(0)?), uuid(row.get(1)?)))
        })
        .optional()
}

/// Makes both for a recipient who is new, or was erased and left suppressions under a mark.
fn make_address(sql: &mut Statements<'_>, prepared: &Prepared, marked: bool) -> rusqlite::Result<(Uuid, Uuid)> {
    let (item, tenant) = (&prepared.item, prepared.item.message.tenant.0);
    let (kind, identifier) = (item.recipient.kind.number(), &item.recipient.identifier);
    let (address, contact) = (item.new_address.uuid(), item.new_contact.uuid());
    sql.get(INSERT_CONTACT)?.execute(params![tenant, contact.as_bytes(), item.country, item.now.millis()])?;
    sql.get(INSERT_ADDRESS)?.execute(params![tenant, address.as_bytes(), kind, identifier, contact.as_bytes(), item.now.millis()])?;
    if marked {
        sql.get(RESTORE)?.execute(params![tenant, kind, identifier, item.mark])?;
    }
    Ok((address, contact))
}

fn insert(sql: &mut Statements<'_>, batch: &mut Batch, birth: &Birth<'_>) -> rusqlite::Result<()> {
    let born = &birth.born;
    let fixed = &born.fixed;
    sql.get(INSERT_MESSAGE)?.execute(params![
        fixed.tenant_id,
        fixed.id.as_bytes(),
        fixed.direction,
        fixed.message_type,
        fixed.sender_id.as_bytes(),
        birth.address.as_bytes(),
        fixed.recipient,
        fixed.sent_from,
        fixed.idempotency_key,
        fixed.spooled,
        fixed.request,
    ])?;
    let write = batch.writes.born(born);
    put_state(sql, INSERT_STATE, &write)?;
    batch.known.push(((fixed.tenant_id, fixed.id), Known::born(birth, write)));
    Ok(())
}

/// Inserts or updates a state; returns whether the row was written.
fn put_state(sql: &mut Statements<'_>, statement: usize, write: &StateWrite<'_>) -> rusqlite::Result<bool> {
    let StateWrite { tenant, id, row, revision, agenda, history } = write;
    let rows = sql.get(statement)?.execute(params![
        tenant,
        id.as_bytes(),
        row.status,
        row.wait,
        row.held,
        row.due_at,
        row.owner,
        row.fence,
        row.version,
        revision,
        row.expires_at,
        row.updated_at,
        row.channel,
        row.connection_id.as_bytes(),
        agenda,
        row.provider,
        row.detail,
        history,
    ])?;
    Ok(rows == 1)
}

/// Applies a batch of steps. The answers must not be given before the commit.
pub(super) fn transition(sql: &mut Statements<'_>, batch: &mut Batch, memory: &Memory, ops: &[TransitionOp]) -> Result<Vec<Transitioned>> {
    let items = items(ops, |tenant, receipt| match memory.named(tenant, receipt) {
        Some(named) => Ok(Some(named)),
        None => find_reference(sql, tenant, receipt).map_err(failed),
    })?;
    let mut fold = Fold::default();
    for item in &items {
        let key = Fold::key(item);
        if !fold.contains(&key)
            && let Some(loaded) = load(sql, memory, key, &items)?
        {
            fold.insert(key, loaded);
        }
    }
    let mut answers = items.iter().map(|item| fold.apply(item)).collect::<Result<Vec<_>>>()?;
    for key in fold.doubtful(&items, &answers) {
        fold.remove(&key);
        if let Some(loaded) = load(sql, memory, key, &items)? {
            fold.insert(key, loaded);
        }
        for (item, answer) in items.iter().zip(&mut answers).filter(|(item, _)| Fold::key(item) == key) {
            *answer = fold.apply(item)?;
        }
    }
    for reference in fold.references(&items) {
        let Reference { tenant, connection, reference, message, attempt, part } = reference;
        let values = params![tenant, connection.as_bytes(), reference, message.as_bytes(), attempt, part];
        sql.get(INSERT_REFERENCE).and_then(|statement| statement.execute(values)).map_err(failed)?;
        batch.references.push((tenant, connection, reference.to_owned(), (message, attempt, part)));
    }
    for (tenant, message, receipt) in fold.receipts(&items) {
        let (id, connection) = (receipt.id.uuid(), receipt.connection.uuid());
        let values = params![tenant, id.as_bytes(), message.as_bytes(), connection.as_bytes(), receipt.reference, receipt.raw];
        sql.get(INSERT_RECEIPT).and_then(|statement| statement.execute(values)).map_err(failed)?;
    }
    let mut till = Till::default();
    for (key, loaded) in fold.touched() {
        let write = batch.writes.update(key, loaded)?;
        if !put_state(sql, UPDATE_STATE, &write).map_err(failed)? {
            batch.stale = true;
            return Err(crate::row::corrupt("states", format!("{} is not at revision {}", key.1, loaded.known.revision)));
        }
        batch.writes.written(&write, loaded);
        till.settle(key, loaded);
        let Known { state, address, .. } = &loaded.known;
        batch.known.push((key, Known::after(write, state.clone(), *address, None)));
    }
    let moves = fold.moves();
    moves.contacts.iter().try_for_each(|moved| move_contact(sql, moved)).map_err(failed)?;
    add_counts(sql, &moves).map_err(failed)?;
    book(sql, &till).map_err(failed)?;
    Ok(answers)
}

fn find_reference(sql: &mut Statements<'_>, tenant: i64, receipt: &RawReceipt) -> rusqlite::Result<Option<Named>> {
    let connection = receipt.connection.uuid();
    let key = params![tenant, connection.as_bytes(), receipt.reference];
    let read = |row: &rusqlite::Row<'_>| Ok((uuid(row.get(0)?), row.get(1)?, row.get(2)?));
    sql.get(FIND_REFERENCE)?.query_row(key, read).optional()
}

/// What is remembered of a message, or else what is stored.
fn load(sql: &mut Statements<'_>, memory: &Memory, key: (i64, Uuid), items: &[Item<'_>]) -> Result<Option<Loaded>> {
    let taken = memory.take(&key);
    let remembered = taken.is_some();
    let known = match taken {
        Some(known) => Some(known),
        None => read(sql, key)?,
    };
    let Some(mut known) = known else { return Ok(None) };
    let mut suppressed = false;
    if items.iter().any(|item| matches!(item.step, Step::Start { .. }) && Fold::key(item) == key) {
        let message = match known.fixed.take() {
            Some(message) => message,
            None => Arc::new(read_fixed(sql, key)?.decode(known.state.clone())?),
        };
        let sender = message.sender.uuid();
        let values = params![key.0, message.to, known.state.route.channel.number(), sender.as_bytes()];
        suppressed = sql.get(IS_SUPPRESSED).and_then(|statement| statement.exists(values)).map_err(failed)?;
        known.fixed = Some(message);
    }
    let mut loaded = Loaded { remembered, ..Loaded::new(known, suppressed) };
    let asks = items.iter().any(|item| asks_broadcast(&item.step) && Fold::key(item) == key);
    if asks && let Some(broadcast) = loaded.broadcast() {
        let status =
            sql.get(STATUS).and_then(|statement| statement.query_row(params![key.0, broadcast.as_bytes()], |row| row.get(0)).optional());
        loaded.halt = status.map_err(failed)?.and_then(Status::from_number).and_then(Status::halt);
    }
    Ok(Some(loaded))
}

fn read(sql: &mut Statements<'_>, (tenant, id): (i64, Uuid)) -> Result<Option<Known>> {
    let row = sql.get(LOAD).and_then(|statement| {
        statement
            .query_row(params![tenant, id.as_bytes()], |row| {
                let state = StateRow {
                    status: row.get(0)?,
                    wait: row.get(1)?,
                    held: row.get(2)?,
                    due_at: row.get(3)?,
                    owner: row.get(4)?,
                    fence: row.get(5)?,
                    version: row.get(6)?,
                    expires_at: row.get(7)?,
                    updated_at: row.get(8)?,
                    channel: row.get(9)?,
                    connection_id: uuid(row.get(10)?),
                    provider: row.get(11)?,
                    detail: row.get(12)?,
                };
                Ok((state, row.get(13)?, row.get(14)?, row.get(15)?, uuid(row.get(16)?)))
            })
            .optional()
    });
    let Some((state, revision, agenda, history, address)) = row.map_err(failed)? else { return Ok(None) };
    Ok(Some(Known { state: state.decode()?, address, revision, agenda, history, fixed: None }))
}

fn read_fixed(sql: &mut Statements<'_>, (tenant, id): (i64, Uuid)) -> Result<FixedRow> {
    let row = sql.get(LOAD_FIXED).and_then(|statement| {
        statement.query_row(params![tenant, id.as_bytes()], |row| {
            Ok(FixedRow {
                tenant_id: tenant,
                id,
                direction: row.get(0)?,
                message_type: row.get(1)?,
                sender_id: uuid(row.get(2)?),
                address_id: uuid(row.get(3)?),
                recipient: row.get(4)?,
                sent_from: row.get(5)?,
                idempotency_key: row.get(6)?,
                spooled: row.get(7)?,
                request: row.get(8)?,
            })
        })
    });
    let mut fixed = row.map_err(failed)?;
    if fixed.spooled > 0 {
        let statement = sql.get(CHUNKS).map_err(failed)?;
        let rows = statement.query_map(params![tenant, id.as_bytes()], |row| row.get(0)).map_err(failed)?;
        unspool(&mut fixed, rows.collect::<rusqlite::Result<_>>().map_err(failed)?)?;
    }
    Ok(fixed)
}

fn uuid(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}
