//! Reads the event log.

use nuncio_domain::event::ResourceKind;
use nuncio_domain::{TenantId, Timestamp};
use nuncio_store::{LogEntry, Position, Result};
use uuid::Uuid;

use super::super::SqlTx;
use crate::event_log;

/// Rows of the log that are read at once; each holds the entries of a whole batch.
const LOG_ROWS: i64 = 8;

pub(super) async fn read(tx: &mut SqlTx, tenant: TenantId, after: Position, limit: u32) -> Result<Vec<LogEntry>> {
    let (mut found, mut from) = (Vec::new(), after.commit);
    while found.len() < limit as usize {
        let rows: Vec<(i64, Vec<u8>)> = tx
            .all(sql!(
                r"
                SELECT position, entries
                FROM log
                WHERE tenant_id = $1 AND position >= $2
                ORDER BY position
                LIMIT $3",
                [tenant.0, from, LOG_ROWS]
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

pub(super) async fn list(
    tx: &mut SqlTx,
    tenant: TenantId,
    resource: Option<Uuid>,
    before: Option<Position>,
    limit: u32,
) -> Result<Vec<LogEntry>> {
    let before = before.unwrap_or(Position { commit: i64::MAX, entry: i64::MAX });
    let mut found = match resource {
        Some(resource) => entries_of(tx, tenant, resource, before).await?,
        None => entries_before(tx, tenant, before, limit).await?,
    };
    found.truncate(limit as usize);
    Ok(found)
}

pub(super) async fn place(tx: &mut SqlTx, tenant: TenantId, at: Timestamp) -> Result<Position> {
    let (first, last): (Option<i64>, Option<i64>) = tx
        .one(sql!(
            r"
            SELECT
                (SELECT MIN(position) FROM log WHERE tenant_id = $1),
                (SELECT MAX(position) FROM log WHERE tenant_id = $1)",
            [tenant.0]
        ))
        .await?;
    let (mut low, mut high) = (first.unwrap_or_default(), last.map_or(0, |last| last + 1));
    while low < high {
        let middle = low + (high - low) / 2;
        let row: Option<(i64, i64)> = tx
            .optional(sql!(
                r"
                SELECT position, recorded_at
                FROM log
                WHERE tenant_id = $1 AND position >= $2
                ORDER BY position
                LIMIT 1",
                [tenant.0, middle]
            ))
            .await?;
        match row {
            Some((position, recorded_at)) if recorded_at < at.millis() => low = position + 1,
            _ => high = middle,
        }
    }
    Ok(Position { commit: low, entry: 0 })
}

pub(super) async fn find(tx: &mut SqlTx, tenant: TenantId, kind: ResourceKind, resource: Uuid, sequence: i64) -> Result<Option<LogEntry>> {
    let entries = match kind {
        ResourceKind::Message => tx.entries_of_message(tenant, resource).await?,
        _ => tx.entries_of_resource(tenant, resource).await?,
    };
    Ok(entries.into_iter().rfind(|entry| entry.sequence <= sequence))
}

pub(super) async fn end(tx: &mut SqlTx, tenant: TenantId) -> Result<Position> {
    let row: Option<(i64,)> = tx.optional(sql!("SELECT position FROM log_heads WHERE tenant_id = $1", [tenant.0])).await?;
    Ok(Position { commit: row.map_or(0, |(position,)| position), entry: i64::MAX })
}

/// Up to `limit` entries before a position and no fewer than there are, newest first.
async fn entries_before(tx: &mut SqlTx, tenant: TenantId, before: Position, limit: u32) -> Result<Vec<LogEntry>> {
    let (mut found, mut to) = (Vec::new(), before.commit);
    while found.len() < limit as usize {
        let rows: Vec<(i64, Vec<u8>)> = tx
            .all(sql!(
                r"
                SELECT position, entries
                FROM log
                WHERE tenant_id = $1 AND position <= $2
                ORDER BY position DESC
                LIMIT $3",
                [tenant.0, to, LOG_ROWS]
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
async fn entries_of(tx: &mut SqlTx, tenant: TenantId, resource: Uuid, before: Position) -> Result<Vec<LogEntry>> {
    let mut found = tx.entries_of_message(tenant, resource).await?;
    found.extend(tx.entries_of_resource(tenant, resource).await?);
    found.retain(|entry| entry.position < before);
    found.sort_by_key(|entry| std::cmp::Reverse(entry.position));
    Ok(found)
}
