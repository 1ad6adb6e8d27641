//! The event log: what a transaction adds to it, and how it is read.

use async_trait::async_trait;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::{MessageId, TenantId, Timestamp};
use nuncio_store::{EventRecord, EventRepo, LogEntry, LogPayload, NewEvent, Occurrence, Position, Result};
use uuid::Uuid;

use super::{SqlTx, dialect};
use crate::event_log;
use crate::row::json;

/// Rows of the log that are read at once; each holds the entries of a whole batch.
const LOG_ROWS: i64 = 8;

#[async_trait]
impl EventRepo for SqlTx {
    async fn insert_event(&mut self, tenant: TenantId, event: &NewEvent, now: Timestamp) -> Result<()> {
        let what = (event.kind, event.resource, event.sequence);
        let entry = self.writes.log.push(tenant.0, what, now.millis(), &json(&event.occurrences)?);
        self.write(sql!(
            "INSERT INTO resource_log (tenant_id, resource_id, sequence, batch) VALUES ($1, $2, $3, $4)",
            [tenant, event.resource, event.sequence, entry.batch]
        ))
        .await
    }

    async fn read_log(&mut self, tenant: TenantId, after: Position, limit: u32) -> Result<Vec<LogEntry>> {
        let (mut found, mut from) = (Vec::new(), after.commit);
        while found.len() < limit as usize {
            let rows: Vec<(i64, Vec<u8>)> = self
                .all(sql!(
                    r"
                    SELECT position, entries
                    FROM log
                    WHERE tenant_id = $1 AND position >= $2
                    ORDER BY position
                    LIMIT $3",
                    [tenant, from, LOG_ROWS]
                ))
                .await?;
            let Some((last, _)) = rows.last() else { break };
            from = last + 1;
            for (position, entries) in &rows {
                found.extend(event_log::read(*position, entries)?.into_iter().filter(|entry| entry.position > after));
            }
            if rows.len() < LOG_ROWS as usize {
                break;
            }
        }
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn list_log(&mut self, tenant: TenantId, resource: Option<Uuid>, before: Option<Position>, limit: u32) -> Result<Vec<LogEntry>> {
        let before = before.unwrap_or(Position { commit: i64::MAX, entry: i64::MAX });
        let mut found = match resource {
            Some(resource) => self.entries_of(tenant, resource, before).await?,
            None => self.entries_before(tenant, before, limit).await?,
        };
        found.truncate(limit as usize);
        Ok(found)
    }

    async fn log_place(&mut self, tenant: TenantId, at: Timestamp) -> Result<Position> {
        let (first, last): (Option<i64>, Option<i64>) = self
            .one(sql!(
                r"
                SELECT
                    (SELECT MIN(position) FROM log WHERE tenant_id = $1),
                    (SELECT MAX(position) FROM log WHERE tenant_id = $1)",
                [tenant]
            ))
            .await?;
        let (mut low, mut high) = (first.unwrap_or_default(), last.map_or(0, |last| last + 1));
        while low < high {
            let middle = low + (high - low) / 2;
            let row: Option<(i64, i64)> = self
                .optional(sql!(
                    r"
                    SELECT position, recorded_at
                    FROM log
                    WHERE tenant_id = $1 AND position >= $2
                    ORDER BY position
                    LIMIT 1",
                    [tenant, middle]
                ))
                .await?;
            match row {
                Some((position, recorded_at)) if recorded_at < at.millis() => low = position + 1,
                _ => high = middle,
            }
        }
        Ok(Position { commit: low, entry: 0 })
    }

    async fn find_log_entry(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid, sequence: i64) -> Result<Option<LogEntry>> {
        let entries = match kind {
            ResourceKind::Message => self.entries_of_message(tenant, resource).await?,
            _ => self.entries_of_resource(tenant, resource).await?,
        };
        Ok(entries.into_iter().rfind(|entry| entry.sequence <= sequence))
    }

    async fn log_end(&mut self, tenant: TenantId) -> Result<Position> {
        let head: Option<i64> = self.value(sql!("SELECT position FROM log_heads WHERE tenant_id = $1", [tenant])).await?;
        Ok(Position { commit: head.unwrap_or_default(), entry: i64::MAX })
    }

    async fn list_resource_events(&mut self, tenant: TenantId, kind: ResourceKind, resource: Uuid) -> Result<Vec<(i64, Vec<Occurrence>)>> {
        let entries = self.entries_of_resource(tenant, resource).await?;
        let of_kind = |entry: LogEntry| match entry.payload {
            LogPayload::Other(found, occurrences) if found == kind => Some((entry.sequence, occurrences)),
            _ => None,
        };
        Ok(entries.into_iter().filter_map(of_kind).collect())
    }

    async fn list_message_events(&mut self, tenant: TenantId, id: MessageId) -> Result<Vec<EventRecord>> {
        let entries = self.entries_of_message(tenant, id.uuid()).await?;
        let record = |entry: LogEntry| match entry.payload {
            LogPayload::Message(changes) => {
                Some(EventRecord { message: id, sequence: entry.sequence, changes, recorded_at: entry.recorded_at })
            }
            LogPayload::Other(..) => None,
        };
        Ok(entries.into_iter().filter_map(record).collect())
    }
}

impl SqlTx {
    /// Writes what this transaction adds to the log, the agenda and the lists of rare messages. The heads of logs are taken last, since
    /// other nodes wait for them.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        let writes = std::mem::take(&mut self.writes);
        for row in writes.agenda.into_rows() {
            self.run(sql!(
                r"
                    INSERT INTO agenda (tenant_id, id, shard, owner, due_at, connection_id, bulk, decide_at, ids)
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                [row.tenant, row.id, dialect::shard(&row), row.owner, row.due_at, row.connection, row.bulk, row.decide_at, row.ids()]
            ))
            .await?;
        }
        for flag in &writes.flags {
            self.run(sql!("INSERT INTO flagged (tenant_id, kind, id) VALUES ($1, $2, $3)", [flag.tenant, flag.kind, flag.id])).await?;
        }
        for row in writes.log.into_rows() {
            let (position,): (i64,) = self
                .one(sql!(
                    r"
                    INSERT INTO log_heads (tenant_id, position)
                    VALUES ($1, 1)
                    ON CONFLICT (tenant_id) DO UPDATE SET position = log_heads.position + 1
                    RETURNING position",
                    [row.tenant]
                ))
                .await?;
            self.run(sql!(
                r"
                    INSERT INTO log (tenant_id, position, batch, recorded_at, entries)
                    VALUES ($1, $2, $3, $4, $5)",
                [row.tenant, position, row.batch, row.recorded_at, row.encode()]
            ))
            .await?;
        }
        Ok(())
    }

    /// The entries of a message, oldest first.
    async fn entries_of_message(&mut self, tenant: TenantId, id: Uuid) -> Result<Vec<LogEntry>> {
        let history: Option<Vec<u8>> =
            self.value(sql!("SELECT history FROM states WHERE tenant_id = $1 AND id = $2", [tenant, id])).await?;
        let batches = history.map(|history| event_log::batches(&history)).unwrap_or_default();
        self.entries_in(tenant, id, batches).await
    }

    /// The entries of a resource other than a message, oldest first.
    async fn entries_of_resource(&mut self, tenant: TenantId, id: Uuid) -> Result<Vec<LogEntry>> {
        let batches = self
            .column(sql!(
                r"
                SELECT batch
                FROM resource_log
                WHERE tenant_id = $1 AND resource_id = $2
                ORDER BY sequence",
                [tenant, id]
            ))
            .await?;
        self.entries_in(tenant, id, batches).await
    }

    /// At least `limit` entries before a position, if there are as many, newest first.
    async fn entries_before(&mut self, tenant: TenantId, before: Position, limit: u32) -> Result<Vec<LogEntry>> {
        let (mut found, mut to) = (Vec::new(), before.commit);
        while found.len() < limit as usize {
            let rows: Vec<(i64, Vec<u8>)> = self
                .all(sql!(
                    r"
                    SELECT position, entries
                    FROM log
                    WHERE tenant_id = $1 AND position <= $2
                    ORDER BY position DESC
                    LIMIT $3",
                    [tenant, to, LOG_ROWS]
                ))
                .await?;
            let Some((last, _)) = rows.last() else { break };
            to = last - 1;
            for (position, entries) in &rows {
                found.extend(event_log::read(*position, entries)?.into_iter().rev().filter(|entry| entry.position < before));
            }
            if rows.len() < LOG_ROWS as usize {
                break;
            }
        }
        Ok(found)
    }

    /// The entries of a resource before a position, newest first.
    async fn entries_of(&mut self, tenant: TenantId, resource: Uuid, before: Position) -> Result<Vec<LogEntry>> {
        let mut found = self.entries_of_message(tenant, resource).await?;
        found.extend(self.entries_of_resource(tenant, resource).await?);
        found.retain(|entry| entry.position < before);
        found.sort_by_key(|entry| std::cmp::Reverse(entry.position));
        Ok(found)
    }

    async fn entries_in(&mut self, tenant: TenantId, resource: Uuid, batches: Vec<i64>) -> Result<Vec<LogEntry>> {
        let mut found = Vec::new();
        for part in batches.chunks(100) {
            let rows: Vec<(i64, Vec<u8>)> = self.all(dialect::log_of_batches(tenant.0, part).build()).await?;
            for (position, entries) in rows {
                found.extend(event_log::read(position, &entries)?.into_iter().filter(|entry| entry.resource == resource));
            }
        }
        found.sort_by_key(|entry| entry.sequence);
        found.dedup();
        Ok(found)
    }
}
