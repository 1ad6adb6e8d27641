//! What SQLite says in its own words.

use sqlx::QueryBuilder;
use uuid::Uuid;

use super::Db;
use super::sql::Condition;
use crate::agenda::AgendaRow;

/// There is one writer: whoever writes has locked everything.
pub(super) const LOCK: &str = "";
/// One writer at a time: what it reads cannot change before its transaction ends.
pub(super) const LOCK_SENDING: &str = "SELECT version FROM broadcasts WHERE tenant_id = $1 AND id = $2 AND status = $3";

/// Recipients of a broadcast of whom no message tells: $3 failed, $4 skipped.
pub(super) const COUNT_ENDED: &str = "INSERT INTO broadcast_counts (tenant_id, broadcast_id, shard, queued, sending, sent, delivered, failed, \
     skipped, awaited, taken, cost) VALUES ($1, $2, 0, 0, 0, 0, 0, $3, $4, 0, 0, 0) \
     ON CONFLICT (tenant_id, broadcast_id, shard) DO UPDATE SET failed = failed + excluded.failed, skipped = skipped + excluded.skipped";

pub(super) const NOW_MILLIS: &str = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// ` AND column IN (…)`.
pub(super) fn push_in(query: &mut QueryBuilder<Db>, column: &str, ids: impl IntoIterator<Item = Uuid>) {
    query.push(format!(" AND {column} IN ("));
    let mut list = query.separated(", ");
    for id in ids {
        list.push_bind(id);
    }
    query.push(")");
}

/// The contacts behind addresses of a tenant, each with its address.
pub(super) fn contacts_of(tenant: i64, addresses: impl IntoIterator<Item = Uuid>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("SELECT id, contact_id FROM addresses WHERE tenant_id = ");
    query.push_bind(tenant);
    push_in(&mut query, "id", addresses);
    query
}

/// One process works on the file: one shard is enough.
pub(super) fn shard(_row: &AgendaRow) -> i16 {
    0
}

/// ` AND column IN (…)`, for the shards of a node.
pub(super) fn push_shards(query: &mut QueryBuilder<Db>, _shards: &[i16]) {
    query.push(" AND shard = 0");
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

/// What each table takes, with its indexes.
pub(super) const TABLE_SIZES: &str = "SELECT s.tbl_name, SUM(d.pgsize) FROM dbstat d JOIN sqlite_schema s ON s.name = d.name \
     WHERE d.aggregate = TRUE GROUP BY s.tbl_name ORDER BY 2 DESC, 1";
