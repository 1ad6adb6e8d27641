//! What SQLite says in its own words.

use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::Condition;
use super::{Conn, Db};
use crate::row::{DueRow, due_columns};

pub(super) const INSERT_EVENT: &str =
    "INSERT INTO events (tenant_id, resource_id, sequence, recorded_at, changes, kind) VALUES ($1, $2, $3, $4, $5, $6)";

/// There is one writer: whoever writes has locked everything.
pub(super) const LOCK: &str = "";
/// One writer at a time: what it reads cannot change before its transaction ends.
pub(super) const LOCK_SENDING: &str = "SELECT version FROM broadcasts WHERE tenant_id = $1 AND id = $2 AND status = $3";

/// Recipients of a broadcast of whom no message tells: $3 failed, $4 skipped.
pub(super) const COUNT_ENDED: &str = "INSERT INTO broadcast_counts (tenant_id, broadcast_id, shard, queued, sending, sent, delivered, failed, \
     skipped, awaited, taken, cost) VALUES ($1, $2, 0, 0, 0, 0, 0, $3, $4, 0, 0, 0) \
     ON CONFLICT (tenant_id, broadcast_id, shard) DO UPDATE SET failed = failed + excluded.failed, skipped = skipped + excluded.skipped";

pub(super) const NOW_MILLIS: &str = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// Rows of the log are in commit order, and one writer leaves no gap that another could fill.
pub(super) const LOG_END: &str = "SELECT COALESCE(MAX(position), 0) FROM events WHERE tenant_id = $1";

/// What keeps unfinished transactions' rows out of a reading of the log: nothing, with one writer.
pub(super) const SETTLED: &str = "";

/// ` AND column IN (…)`.
pub(super) fn push_in(query: &mut QueryBuilder<Db>, column: &str, ids: impl IntoIterator<Item = Uuid>) {
    query.push(format!(" AND {column} IN ("));
    let mut list = query.separated(", ");
    for id in ids {
        list.push_bind(id);
    }
    query.push(")");
}

/// One process works on the file: one shard is enough.
pub(super) fn shard(_id: Uuid) -> i16 {
    0
}

/// The longest due messages.
pub(super) async fn due(conn: &mut Conn, _shards: &[i16], skip: &[Uuid], now: i64, limit: i64) -> sqlx::Result<Vec<DueRow>> {
    let mut query = QueryBuilder::<Db>::new(concat!("SELECT ", due_columns!(), " FROM messages WHERE shard = 0 AND due_at <= "));
    query.push_bind(now);
    if !skip.is_empty() {
        query.push(" AND NOT (wait = 1 AND connection_id IN (");
        let mut list = query.separated(", ");
        for connection in skip {
            list.push_bind(*connection);
        }
        query.push(") AND expires_at > ").push_bind(now).push(")");
    }
    query.push(" ORDER BY due_at LIMIT ").push_bind(limit);
    query.build_query_as().fetch_all(conn).await
}

/// That an entry of the object `member` of `column` is `value`, as a text or as another scalar.
pub(super) fn json_entry(column: &'static str, member: &'static str, key: &str, value: &str) -> Condition {
    let path = format!("$.{member}.{}", serde_json::Value::from(key));
    let (text, value) = (serde_json::Value::from(value).to_string(), value.to_owned());
    Box::new(move |query| {
        query.push("(").push(column).push(" -> ").push_bind(path.clone()).push(") IN (");
        query.push_bind(text.clone()).push(", ").push_bind(value.clone()).push(")");
    })
}
