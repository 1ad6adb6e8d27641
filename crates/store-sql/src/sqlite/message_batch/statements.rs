//! The statements of message batches: prepared once, run in a loop.

use rusqlite::{Connection, OptionalExtension as _, Params, Row, Statement};

/// Numbers the statements.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        #[expect(clippy::upper_case_acronyms, non_camel_case_types, reason = "it only counts the names of constants")]
        enum Number { $($name,)+ }
        $($(#[$doc])* pub(super) const $name: usize = Number::$name as usize;)+
        const TEXTS: &[&str] = &[$($sql,)+];
    };
}

statements! {
    EPOCH_AND_QUOTA = r"
        SELECT w.epoch, q.max_bytes, q.stored_bytes
        FROM worlds w
        LEFT JOIN storage_quotas q ON q.tenant_id = w.tenant_id
        WHERE w.tenant_id = ?1";
    ADD_STORED_BYTES = "UPDATE storage_quotas SET stored_bytes = stored_bytes + ?2 WHERE tenant_id = ?1";
    INSERT_KEY = r"
        INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT DO NOTHING";
    FIND_KEY = r"
        SELECT resource_id, fingerprint
        FROM idempotency_keys
        WHERE tenant_id = ?1 AND operation = ?2 AND key = ?3";
    DELETE_KEY = "DELETE FROM idempotency_keys WHERE tenant_id = ?1 AND operation = ?2 AND key = ?3";
    FIND_ADDRESS = "SELECT id, contact_id FROM addresses WHERE tenant_id = ?1 AND kind = ?2 AND identifier = ?3";
    INSERT_CONTACT = r"
        INSERT INTO contacts (tenant_id, id, country, created_at, updated_at)
        VALUES (?1, ?2, ?3, ?4, ?4)";
    INSERT_ADDRESS = r"
        INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    /// Restores the opt-outs of an erased person who is known again.
    RESTORE_SUPPRESSIONS = r"
        UPDATE OR IGNORE suppressions
        SET identifier = ?3
        WHERE tenant_id = ?1 AND kind = ?2 AND identifier = ?4";
    // The `+` keeps the senders out of the index look-up: a list there would go into a temporary table, at ten times the cost.
    IS_SUPPRESSED = r"
        SELECT 1
        FROM suppressions
        WHERE tenant_id = ?1
          AND kind = ?2
          AND identifier = ?3
          AND (+sender_id = zeroblob(16) OR +sender_id = ?4)
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
    // Two statements: RETURNING would open a temporary table each time.
    RAISE_HEAD = r"
        INSERT INTO log_heads (tenant_id, position)
        VALUES (?1, 1)
        ON CONFLICT (tenant_id) DO UPDATE SET position = position + 1";
    FIND_HEAD = "SELECT position FROM log_heads WHERE tenant_id = ?1";
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
    CLAIM_CONTACT = r"
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
    BROADCAST_STATUS = "SELECT status FROM broadcasts WHERE tenant_id = ?1 AND id = ?2";
    UPDATE_CONTACT = r"
        UPDATE broadcast_contacts
        SET message_id = ?4, outcome = ?5
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
    IS_FENCE_CURRENT = "SELECT 1 FROM webhook_cursors WHERE tenant_id = ?1 AND fence = ?2";
    ADVANCE_CURSOR = "UPDATE webhook_cursors SET position = ?2, entry = ?3 WHERE tenant_id = ?1";
    BALANCE = "SELECT available, reserved, spent, limited FROM balances WHERE tenant_id = ?1";
    INSERT_TRANSFER = r"
        INSERT INTO ledger (tenant_id, resource_id, purpose, part, debit, credit, amount, sender_id,
            recorded_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    MOVE_BALANCE = r"
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

/// The statements of the writer. Each is prepared at its first use, and kept.
pub(in crate::sqlite) struct Statements<'c> {
    conn: &'c Connection,
    prepared: Vec<Option<Statement<'c>>>,
}

impl<'c> Statements<'c> {
    pub(in crate::sqlite) fn new(conn: &'c Connection) -> Self {
        Self { conn, prepared: TEXTS.iter().map(|_| None).collect() }
    }

    pub(super) fn get(&mut self, number: usize) -> rusqlite::Result<&mut Statement<'c>> {
        let slot = &mut self.prepared[number];
        if slot.is_none() {
            *slot = Some(self.conn.prepare(TEXTS[number])?);
        }
        slot.as_mut().ok_or(rusqlite::Error::InvalidQuery)
    }

    /// Runs a statement; returns the number of rows written.
    pub(super) fn execute(&mut self, number: usize, params: impl Params) -> rusqlite::Result<usize> {
        self.get(number)?.execute(params)
    }

    /// Whether a query finds a row.
    pub(super) fn exists(&mut self, number: usize, params: impl Params) -> rusqlite::Result<bool> {
        self.get(number)?.exists(params)
    }

    /// The first row of a query, if there is one.
    pub(super) fn find<T>(
        &mut self,
        number: usize,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.get(number)?.query_row(params, read).optional()
    }
}
