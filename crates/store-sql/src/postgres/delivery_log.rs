//! Results of deliveries, and metrics of channels: written in batches that their callers make.

use nuncio_domain::Timestamp;
use nuncio_domain::id::Id as _;
use nuncio_store::{DeliveryLog, MetricRow, Result};
use sqlx::PgPool;
use uuid::Uuid;

use super::message_batch::column;
use crate::SqlxResult as _;
use crate::row::json;

/// What was read before a replay does not undo it.
const PUT_DELIVERIES: &str = r"
    INSERT INTO deliveries AS d (tenant_id, id, sender_id, event_id, event_type, kind, resource_id,
        sequence, url, status, tries, due_at, attempts, reason, replays, updated_at)
    SELECT $1, u.*
    FROM unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::smallint[], $7::uuid[], $8::bigint[],
        $9::text[], $10::smallint[], $11::smallint[], $12::bigint[], $13::text[], $14::text[], $15::smallint[],
        $16::bigint[]) AS u
    ON CONFLICT (tenant_id, id) DO UPDATE SET
        url = excluded.url,
        attempts = excluded.attempts,
        status = CASE WHEN d.replays = excluded.replays THEN excluded.status ELSE d.status END,
        tries = CASE WHEN d.replays = excluded.replays THEN excluded.tries ELSE d.tries END,
        due_at = CASE WHEN d.replays = excluded.replays THEN excluded.due_at ELSE d.due_at END,
        reason = CASE WHEN d.replays = excluded.replays THEN excluded.reason ELSE d.reason END,
        updated_at = CASE WHEN d.replays = excluded.replays THEN excluded.updated_at ELSE d.updated_at END
    WHERE d.status <> 2 OR excluded.status = 2";

const FENCE: &str = "SELECT fence FROM webhook_cursors WHERE tenant_id = $1 AND fence = $2 FOR UPDATE";

const ADVANCE: &str = "UPDATE webhook_cursors SET position = $2, entry = $3 WHERE tenant_id = $1";
const ADD_METRICS: &str = r"
    INSERT INTO channel_metrics AS m (tenant_id, address_id, channel, successes, failures, delivery_ms,
        timed, last_success_at)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::bigint[])
    ON CONFLICT (tenant_id, address_id, channel) DO UPDATE SET
        successes = m.successes + excluded.successes,
        failures = m.failures + excluded.failures,
        delivery_ms = m.delivery_ms + excluded.delivery_ms,
        timed = m.timed + excluded.timed,
        last_success_at = CASE
            WHEN m.last_success_at > excluded.last_success_at OR excluded.last_success_at IS NULL
            THEN m.last_success_at
            ELSE excluded.last_success_at
        END";

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

/// Writes the results of deliveries; returns whether the reader's fence is current.
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
            .bind(column(rows, |d| d.reason.as_deref()))
            .bind(column(rows, |d| d.replays))
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
