//! Collects the rest of a transaction and writes it before the commit.

use nuncio_store::Result;
use rusqlite::params;
use uuid::Uuid;

use super::super::rusqlite_error as failed;
use super::Statements;
use crate::agenda::{AgendaKey, AgendaRow};
use crate::cache::{Cache, CachedRow};
use crate::event_log::LogRow;
use crate::message_batch::{Flag, ReferencedPart, Writes};

// Two statements: RETURNING would open a temporary table each time.
const RAISE_HEAD: &str = r"
    INSERT INTO log_heads (tenant_id, position)
    VALUES (?1, 1)
    ON CONFLICT (tenant_id) DO UPDATE SET position = position + 1";

const FIND_HEAD: &str = "SELECT position FROM log_heads WHERE tenant_id = ?1";
const INSERT_LOG: &str = "INSERT INTO log (tenant_id, position, batch, recorded_at, entries) VALUES (?1, ?2, ?3, ?4, ?5)";
const INSERT_AGENDA: &str = r"
    INSERT INTO agenda (tenant_id, id, shard, owner, due_at, connection_id, bulk, decide_at, ids)
    VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, ?8)";

const DELETE_AGENDA: &str = "DELETE FROM agenda WHERE tenant_id = ?1 AND id = ?2";
const INSERT_FLAG: &str = "INSERT INTO flagged (tenant_id, kind, id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const DELETE_FLAG: &str = "DELETE FROM flagged WHERE tenant_id = ?1 AND kind = ?2 AND id = ?3";

/// What one transaction writes, and what it adds to the cache after the commit.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Batch {
    pub(super) writes: Writes,
    pub(super) messages: Vec<((i64, Uuid), CachedRow)>,
    pub(super) references: Vec<(i64, Uuid, String, ReferencedPart)>,
    rows: Vec<AgendaRow>,
    /// Another process changed a state, so that the cache is wrong.
    pub(in crate::sqlite) stale: bool,
}

impl Batch {
    /// Writes what the batch adds up to, as the last thing before the commit.
    pub(in crate::sqlite) fn finish(&mut self, sql: &mut Statements<'_>, cache: &Cache) -> Result<()> {
        let writes = std::mem::take(&mut self.writes);
        self.rows = writes.agenda.into_rows();
        write_agenda(sql, &self.rows, &cache.agenda.emptied(&writes.leaving)).map_err(failed)?;
        write_flags(sql, INSERT_FLAG, &writes.flags).map_err(failed)?;
        write_flags(sql, DELETE_FLAG, &writes.flags_gone).map_err(failed)?;
        append_log(sql, &writes.log.into_rows()).map_err(failed)?;
        self.writes.leaving = writes.leaving;
        Ok(())
    }

    /// Updates the cache after the commit.
    pub(in crate::sqlite) fn committed(self, cache: &Cache) {
        cache.agenda.committed(&self.writes.leaving, &self.rows);
        cache.put(self.messages.into_iter());
        cache.put_references(self.references.into_iter());
    }
}

fn write_agenda(sql: &mut Statements<'_>, rows: &[AgendaRow], emptied: &[AgendaKey]) -> rusqlite::Result<()> {
    for row in rows {
        let connection = row.connection.map(Uuid::into_bytes);
        let values = params![row.tenant, row.id, row.owner, row.due_at, connection, row.bulk, row.decide_at, row.ids()];
        sql.execute(INSERT_AGENDA, values)?;
    }
    for (tenant, id) in emptied {
        sql.execute(DELETE_AGENDA, params![tenant, id])?;
    }
    Ok(())
}

/// Runs one of the two statements for each flag.
fn write_flags(sql: &mut Statements<'_>, statement: &'static str, flags: &[Flag]) -> rusqlite::Result<()> {
    for flag in flags {
        sql.execute(statement, params![flag.tenant, flag.kind, flag.id.as_bytes()])?;
    }
    Ok(())
}

fn append_log(sql: &mut Statements<'_>, rows: &[LogRow]) -> rusqlite::Result<()> {
    for row in rows {
        sql.execute(RAISE_HEAD, [row.tenant])?;
        let position: i64 = sql.get(FIND_HEAD)?.query_row([row.tenant], |found| found.get(0))?;
        sql.execute(INSERT_LOG, params![row.tenant, position, row.batch, row.recorded_at, row.encode()])?;
    }
    Ok(())
}
