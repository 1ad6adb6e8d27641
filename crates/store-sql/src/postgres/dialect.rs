//! What PostgreSQL says in its own words.

use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::Condition;
use super::{Conn, Db};
use crate::row::{DueRow, due_columns};

pub(super) use crate::hot::shard;

pub(super) const INSERT_EVENT: &str = "INSERT INTO events (position, tenant_id, resource_id, sequence, recorded_at, changes, kind) \
     VALUES (CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT), $1, $2, $3, $4, $5, $6)";

/// Ends a query whose rows nobody else may change until the transaction ends.
pub(super) const LOCK: &str = " FOR UPDATE";
/// Locked, so that what is read cannot change before the transaction ends.
pub(super) const LOCK_SENDING: &str = "SELECT version FROM broadcasts WHERE tenant_id = $1 AND id = $2 AND status = $3 FOR SHARE";

/// Recipients of a broadcast of whom no message tells: $3 failed, $4 skipped.
pub(super) const COUNT_ENDED: &str = "INSERT INTO broadcast_counts AS k (tenant_id, broadcast_id, shard, queued, sending, sent, delivered, failed, \
     skipped, awaited, taken, cost) VALUES ($1, $2, CAST(pg_backend_pid() % 16 AS SMALLINT), 0, 0, 0, 0, $3, $4, 0, 0, 0) \
     ON CONFLICT (tenant_id, broadcast_id, shard) DO UPDATE SET failed = k.failed + excluded.failed, skipped = k.skipped + excluded.skipped";

pub(super) const NOW_MILLIS: &str = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";

/// Running transactions write at or after this place, whenever they commit.
pub(super) const LOG_END: &str = "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT) - 1 WHERE $1 IS NOT NULL";

/// What keeps unfinished transactions' rows out of a reading of the log.
pub(super) const SETTLED: &str = " AND position < CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)";

/// ` AND column IN (…)`, in a text that does not vary with the number.
pub(super) fn push_in(query: &mut QueryBuilder<Db>, column: &str, ids: impl IntoIterator<Item = Uuid>) {
    query.push(format!(" AND {column} = ANY(")).push_bind(ids.into_iter().collect::<Vec<_>>()).push(")");
}

/// The longest due messages of each shard. Each gives its part of `limit`: reading `limit` from each to sort them would cost as many
/// times more.
pub(super) async fn due(conn: &mut Conn, shards: &[i16], skip: &[Uuid], now: i64, limit: i64) -> sqlx::Result<Vec<DueRow>> {
    sqlx::query_as(concat!(
        "SELECT m.* FROM unnest($1::smallint[]) AS s (shard) CROSS JOIN LATERAL (SELECT ",
        due_columns!(),
        " FROM messages \
         WHERE messages.shard = s.shard AND due_at <= $2 AND NOT (wait = 1 AND connection_id = ANY($4) AND expires_at > $2) \
         ORDER BY due_at LIMIT $5) m ORDER BY due_at LIMIT $3"
    ))
    .bind(shards)
    .bind(now)
    .bind(limit)
    .bind(skip)
    .bind(limit / shards.len().max(1) as i64 + 1)
    .fetch_all(conn)
    .await
}

/// That an entry of the object `member` of `column` is `value`, as a text or as another scalar. Read as `JSON`, which keeps numbers as they
/// were written.
pub(super) fn json_entry(column: &'static str, member: &'static str, key: &str, value: &str) -> Condition {
    let (key, text, value) = (key.to_owned(), serde_json::Value::from(value).to_string(), value.to_owned());
    Box::new(move |query| {
        query.push("CAST(CAST(").push(column).push(" AS JSON) -> '").push(member).push("' -> ").push_bind(key.clone());
        query.push(" AS TEXT) IN (").push_bind(text.clone()).push(", ").push_bind(value.clone()).push(")");
    })
}
