//! Statements and conditions that are specific to SQLite.

use std::collections::BTreeSet;

use sqlx::{Arguments as _, QueryBuilder};
use uuid::Uuid;

use super::Db;
use super::sql::Condition;
use super::sql::query::in_json;
use crate::agenda::AgendaRow;

/// There is one writer: every write transaction has locked everything.
pub(super) const LOCK: &str = "";
/// One writer at a time: what it reads cannot change before its transaction ends.
pub(super) const LOCK_SENDING: &str = r"
    SELECT version
    FROM broadcasts
    WHERE tenant_id = $1 AND id = $2 AND status = $3";

/// Counts recipients of a broadcast that have no message: $3 failed, $4 skipped.
pub(super) const COUNT_ENDED: &str = r"
    INSERT INTO broadcast_counts (tenant_id, broadcast_id, shard, queued, sending, sent, delivered, failed,
        skipped, awaited, taken, cost)
    VALUES ($1, $2, 0, 0, 0, 0, 0, $3, $4, 0, 0, 0)
    ON CONFLICT (tenant_id, broadcast_id, shard) DO UPDATE SET
        failed = failed + excluded.failed,
        skipped = skipped + excluded.skipped";

/// Waits for a statement: the database is in this process, and ends those of readers itself.
pub(super) async fn in_time<T>(statement: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    statement.await
}

pub(super) const NOW_MILLIS: &str = "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// Recipients of one statement. SQLite takes 32,766 values.
pub(super) const CONTACTS_AT_ONCE: usize = 500;

/// Adds recipients, each with id, kind, identifier and variables, to a broadcast that lacks them. What is the same for all is bound once.
pub(super) fn insert_contacts(tenant: i64, broadcast: Uuid, rows: Vec<(Uuid, i16, String, String)>) -> QueryBuilder<Db> {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(160 + rows.len() * 40);
    text.push_str("INSERT INTO broadcast_contacts (tenant_id, broadcast_id, id, kind, recipient, variables) VALUES ");
    let mut values = sqlx::sqlite::SqliteArguments::default();
    let _ = values.add(tenant).and_then(|()| values.add(broadcast));
    for (n, (id, kind, recipient, variables)) in rows.into_iter().enumerate() {
        let first = 3 + 4 * n;
        let comma = if n == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}(?1, ?2, ?{first}, ?{}, ?{}, ?{})", first + 1, first + 2, first + 3);
        let _ = values.add(id).and_then(|()| values.add(kind)).and_then(|()| values.add(recipient)).and_then(|()| values.add(variables));
    }
    text.push_str(" ON CONFLICT (tenant_id, kind, recipient, broadcast_id) DO NOTHING");
    QueryBuilder::with_arguments(text, values)
}

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
pub(super) fn contacts_of(table: &'static str, tenant: i64, addresses: impl IntoIterator<Item = Uuid>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("SELECT id, contact_id FROM ");
    query.push(table).push(" WHERE tenant_id = ").push_bind(tenant);
    push_in(&mut query, "id", addresses);
    query
}

/// Name keys with up to `limit` contacts of each, the oldest ones. The keys come first, so that each is one look into the index.
pub(super) fn contacts_named(tenant: i64, name_keys: &BTreeSet<String>, limit: u32) -> QueryBuilder<Db> {
    let mut query = with_keys(name_keys.iter().cloned());
    query.push(
        r" SELECT k.value, c.id
            FROM k
            CROSS JOIN contacts c
            WHERE c.tenant_id = ",
    );
    query.push_bind(tenant).push(
        r" AND c.id IN (
                SELECT n.id
                FROM contacts n
                WHERE n.name_key IS NOT NULL AND n.name_key = k.value AND n.tenant_id = ",
    );
    query.push_bind(tenant).push(" ORDER BY n.id LIMIT ").push_bind(i64::from(limit)).push(")");
    query
}

/// Identifiers of one kind, each with its contact. Given `IN (…)` instead, the planner reads all addresses of the tenant.
pub(super) fn contacts_by_identifier(tenant: i64, kind: i16, identifiers: &BTreeSet<String>) -> QueryBuilder<Db> {
    let mut query = with_keys(identifiers.iter().cloned());
    query.push(
        r" SELECT a.identifier, a.contact_id
            FROM k
            CROSS JOIN addresses a
            WHERE a.identifier = k.value AND a.tenant_id = ",
    );
    query.push_bind(tenant).push(" AND a.kind = ").push_bind(kind);
    query
}

/// The addresses that merges moved to contacts. Without the name of the index, the planner reads all addresses of the tenant.
pub(super) fn moved_addresses(tenant: i64, contacts: impl IntoIterator<Item = Uuid>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new(
        r"
        SELECT id, contact_id, kind, identifier, created_at
        FROM addresses INDEXED BY addresses_contact_idx
        WHERE tenant_id = ",
    );
    query.push_bind(tenant).push(" AND contact_id <> id");
    push_in(&mut query, "contact_id", contacts);
    query
}

/// Rows of the log by their batch; by key, as [`contacts_by_identifier`].
pub(super) fn log_of_batches(tenant: i64, batches: &[i64]) -> QueryBuilder<Db> {
    let mut query = with_keys(batches.iter().copied());
    query.push(" SELECT l.position, l.entries FROM k CROSS JOIN log l WHERE l.batch = k.value AND l.tenant_id = ");
    query.push_bind(tenant);
    query
}

/// Begins a query with the table `k` of these values, in the column `value`. There must be one at least.
fn with_keys<T>(keys: impl IntoIterator<Item = T>) -> QueryBuilder<Db>
where
    T: for<'q> sqlx::Encode<'q, Db> + sqlx::Type<Db>,
{
    let mut query = QueryBuilder::new("WITH k (value) AS (VALUES ");
    let mut rows = query.separated(", ");
    for key in keys {
        rows.push("(").push_bind_unseparated(key).push_unseparated(")");
    }
    query.push(")");
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
    let text = serde_json::Value::from(value).to_string();
    // Neither an object nor a list is a scalar, nor a text in its quotes.
    let value = if value.starts_with(['"', '{', '[']) { text.clone() } else { value.to_owned() };
    Box::new(move |query| {
        query.push("(").push(column).push(" -> ").push_bind(path.clone()).push(") IN (");
        query.push_bind(text.clone()).push(", ").push_bind(value.clone()).push(")");
    })
}

/// That the member `member` of `column` is a text with `part` in it, whatever the case of letters from A to Z. Only JSON with `part`
/// anywhere is parsed. `LIKE` would compare the whole part at each letter of a long text of one letter, and nothing stops a reader.
pub(super) fn json_contains(column: &'static str, member: &'static str, part: &str) -> Condition {
    let (anywhere, path, part) = (in_json(part).to_ascii_lowercase(), format!("$.{member}"), part.to_ascii_lowercase());
    Box::new(move |query| {
        query.push("instr(lower(").push(column).push("), ").push_bind(anywhere.clone()).push(") > 0 AND instr(lower(");
        query.push(column).push(" ->> ").push_bind(path.clone()).push("), ").push_bind(part.clone()).push(") > 0");
    })
}

/// What each table takes, with its indexes.
pub(super) const TABLE_SIZES: &str = r"
    SELECT s.tbl_name, SUM(d.pgsize)
    FROM dbstat d
    JOIN sqlite_schema s ON s.name = d.name
    WHERE d.aggregate = TRUE
    GROUP BY s.tbl_name
    ORDER BY 2 DESC, 1";

#[cfg(test)]
#[path = "dialect_tests.rs"]
mod tests;
