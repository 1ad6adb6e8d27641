//! Reads messages.

use std::sync::Arc;

use nuncio_domain::lifecycle::Step;
use nuncio_store::Result;
use rusqlite::{Row, params};
use uuid::Uuid;

use super::super::rusqlite_error as failed;
use super::recipients::is_suppressed;
use super::{Statements, broadcasts, uuid};
use crate::cache::{Cache, CachedRow};
use crate::message_batch::{LoadedMessage, ResolvedTransition, TransitionBatch, asks_broadcast, unspool};
use crate::row::{FixedRow, StateRow};

const LOAD: &str = r"
    SELECT s.status, s.wait, s.held, s.due_at, s.owner, s.fence, s.version, s.expires_at, s.updated_at,
        s.channel, s.connection_id, s.provider, s.detail, s.revision, s.agenda, s.history, m.address_id
    FROM states s
    JOIN messages m ON m.tenant_id = s.tenant_id AND m.id = s.id
    WHERE s.tenant_id = ?1 AND s.id = ?2";

const LOAD_FIXED: &str = r"
    SELECT direction, message_type, sender_id, address_id, recipient, sent_from, idempotency_key,
        spooled, request
    FROM messages
    WHERE tenant_id = ?1 AND id = ?2";

const CHUNKS: &str = "SELECT data FROM spool_chunks WHERE tenant_id = ?1 AND message_id = ?2 ORDER BY chunk";

/// A message from the cache, or else from the database.
pub(super) fn load(
    sql: &mut Statements<'_>,
    cache: &Cache,
    key: (i64, Uuid),
    items: &[ResolvedTransition<'_>],
) -> Result<Option<LoadedMessage>> {
    let taken = cache.take(&key);
    let from_cache = taken.is_some();
    let known = match taken {
        Some(known) => Some(known),
        None => read(sql, key)?,
    };
    let Some(mut known) = known else { return Ok(None) };
    let mut suppressed = false;
    if items.iter().any(|item| matches!(item.step, Step::Start { .. }) && TransitionBatch::key(item) == key) {
        let message = match known.fixed.take() {
            Some(message) => message,
            None => Arc::new(read_fixed(sql, key)?.decode(known.state.clone())?),
        };
        let kind = known.state.route.channel.address_kind();
        suppressed = is_suppressed(sql, key.0, kind, &message.to, message.sender).map_err(failed)?;
        known.fixed = Some(message);
    }
    let mut loaded = LoadedMessage { from_cache, ..LoadedMessage::new(known, suppressed) };
    let asks = items.iter().any(|item| asks_broadcast(&item.step) && TransitionBatch::key(item) == key);
    if asks && let Some(broadcast) = loaded.broadcast() {
        loaded.halt = broadcasts::halt(sql, key.0, broadcast).map_err(failed)?;
    }
    Ok(Some(loaded))
}

fn read(sql: &mut Statements<'_>, (tenant, id): (i64, Uuid)) -> Result<Option<CachedRow>> {
    let row = sql.find(LOAD, params![tenant, id.as_bytes()], |row| {
        Ok((state_of(row)?, row.get(13)?, row.get(14)?, row.get(15)?, uuid(row.get(16)?)))
    });
    let Some((state, revision, agenda, history, address)) = row.map_err(failed)? else { return Ok(None) };
    Ok(Some(CachedRow { state: state.decode()?, address, revision, agenda, history, fixed: None }))
}

fn state_of(row: &Row<'_>) -> rusqlite::Result<StateRow> {
    Ok(StateRow {
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
    })
}

/// The part of a message that never changes, including the chunks of a large request.
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
