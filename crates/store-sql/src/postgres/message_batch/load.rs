//! Reads messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_domain::id::Id as _;
use nuncio_domain::message::Message;
use nuncio_domain::{MessageId, TenantId};
use nuncio_store::Result;
use tokio_postgres::Row;
use uuid::Uuid;

use super::super::session::failed;
use super::{Session, for_each};
use crate::cache::CachedRow;
use crate::message_batch::{LoadedMessage, TransitionBatch, unspool};
use crate::row::{FixedRow, StateRow};

/// Columns 2 to 18 of a loaded row.
macro_rules! state_columns {
    () => {
        "s.status, s.wait, s.held, s.due_at, s.owner, s.fence, s.version, s.expires_at, s.updated_at, \
         s.channel, s.connection_id, s.provider, s.detail, s.revision, s.agenda, s.history, m.address_id"
    };
}

/// Columns 20 to 26 of a loaded row.
macro_rules! fixed_columns {
    () => {
        "m.direction, m.message_type, m.sender_id, m.recipient, m.sent_from, m.idempotency_key, m.spooled"
    };
}

/// Locks rows in the order of the ids asked for, which is that of keys, so that two nodes cannot deadlock. Like all locking statements it
/// is for one tenant: a Citus cluster locks no rows of several. Looks up message by message: planned on tables that were empty, a join
/// reads all.
#[rustfmt::skip]
pub(super) const LOAD: &str = concat!(r"
    SELECT a.*
    FROM unnest($2::uuid[]) AS u (id)
    CROSS JOIN LATERAL (
        SELECT s.tenant_id, s.id, ", state_columns!(), r", s.id = ANY($3), ", fixed_columns!(), r",
            CASE WHEN s.id = ANY($3) THEN m.request ELSE '' END AS request
        FROM states s
        JOIN messages m ON m.tenant_id = $1 AND m.id = u.id
        WHERE s.tenant_id = $1 AND s.id = u.id
        FOR UPDATE OF s
    ) AS a");

#[rustfmt::skip]
pub(super) const LOAD_MESSAGE: &str = concat!(r"
    SELECT m.tenant_id, m.id, ", state_columns!(), r", true AS starts, ", fixed_columns!(), r", m.request
    FROM messages m
    JOIN states s ON s.tenant_id = m.tenant_id AND s.id = m.id
    WHERE m.tenant_id = $1 AND m.id = $2");

pub(super) const CHUNKS: &str = "SELECT data FROM spool_chunks WHERE tenant_id = $1 AND message_id = $2 ORDER BY chunk";

/// Reads and locks messages.
pub(super) async fn load(session: &Session, transitions: &mut TransitionBatch, keys: &[((i64, Uuid), bool)]) -> Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut asked: BTreeMap<i64, (Vec<Uuid>, Vec<Uuid>)> = BTreeMap::new();
    for ((tenant, id), starts) in keys {
        let (ids, starting) = asked.entry(*tenant).or_default();
        ids.push(*id);
        starting.extend(starts.then_some(*id));
    }
    let load = &session.statements.load_states;
    for row in for_each(asked, |tenant, (ids, starting)| async move { session.query(load, &[&tenant, &ids, &starting]).await }).await? {
        let state = state_of(&row).decode()?;
        let fixed = if row.get(19) { Some(Arc::new(fixed_of(session, &row).await?.decode(state.clone())?)) } else { None };
        let known = CachedRow { state, address: row.get(18), revision: row.get(15), agenda: row.get(16), history: row.get(17), fixed };
        transitions.insert((row.get(0), row.get(1)), LoadedMessage::new(known, false));
    }
    Ok(())
}

/// Reads one message with its request.
pub(in crate::postgres) async fn load_message(session: &Session, tenant: TenantId, id: MessageId) -> Result<Option<Message>> {
    let rows = session.query(&session.statements.load_message, &[&tenant.0, &id.uuid()]).await.map_err(failed)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let state = state_of(row).decode()?;
    fixed_of(session, row).await?.decode(state).map(Some)
}

/// The state in a row of [`LOAD`] or [`LOAD_MESSAGE`].
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

/// The part that never changes, including the chunks of a large request.
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
