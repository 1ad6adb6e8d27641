//! Results of webhook deliveries, and metrics of channels.

use nuncio_domain::Timestamp;
use nuncio_domain::id::Id as _;
use nuncio_store::{DeliveryLog, MetricRow, Result};
use rusqlite::params;
use uuid::Uuid;

use super::super::rusqlite_error as failed;
use super::Statements;
use crate::row::json;

/// What was read before a replay does not undo it.
const PUT_DELIVERY: &str = r"
    INSERT INTO deliveries (tenant_id, id, sender_id, event_id, event_type, kind, resource_id, sequence,
        url, status, tries, due_at, attempts, reason, replays, updated_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
    ON CONFLICT (tenant_id, id) DO UPDATE SET
        url = excluded.url,
        attempts = excluded.attempts,
        status = CASE WHEN deliveries.replays = excluded.replays THEN excluded.status ELSE deliveries.status END,
        tries = CASE WHEN deliveries.replays = excluded.replays THEN excluded.tries ELSE deliveries.tries END,
        due_at = CASE WHEN deliveries.replays = excluded.replays THEN excluded.due_at ELSE deliveries.due_at END,
        reason = CASE WHEN deliveries.replays = excluded.replays THEN excluded.reason ELSE deliveries.reason END,
        updated_at = CASE WHEN deliveries.replays = excluded.replays THEN excluded.updated_at ELSE deliveries.updated_at END
    WHERE deliveries.status <> 2 OR excluded.status = 2";

const IS_FENCE_CURRENT: &str = "SELECT 1 FROM webhook_cursors WHERE tenant_id = ?1 AND fence = ?2";
const ADVANCE_CURSOR: &str = "UPDATE webhook_cursors SET position = ?2, entry = ?3 WHERE tenant_id = ?1";
const ADD_METRICS: &str = r"
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

/// Writes the results of deliveries; returns whether the reader's fence is current.
pub(in crate::sqlite) fn log_deliveries(sql: &mut Statements<'_>, log: &DeliveryLog) -> Result<bool> {
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
            delivery.reason,
            delivery.replays,
            delivery.updated_at.millis(),
        ])
        .map_err(failed)?;
    }
    let is_current = sql.exists(IS_FENCE_CURRENT, params![log.tenant.0, log.fence]).map_err(failed)?;
    if let (true, Some(read)) = (is_current, log.read) {
        sql.execute(ADVANCE_CURSOR, params![log.tenant.0, read.commit, read.entry]).map_err(failed)?;
    }
    Ok(is_current)
}

/// Adds to the metrics of channels. No row may come twice.
pub(in crate::sqlite) fn add_metrics(sql: &mut Statements<'_>, deltas: &[MetricRow]) -> Result<()> {
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
