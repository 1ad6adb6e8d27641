//! Statements and conditions that are specific to PostgreSQL.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use sqlx::QueryBuilder;
use uuid::Uuid;

use super::Db;
use super::sql::Condition;
use super::sql::query::{contains, in_json};
use super::writer::UNANSWERED;
use crate::agenda::AgendaRow;

/// Ends a query that locks its rows until the transaction ends.
pub(super) const LOCK: &str = " FOR UPDATE";
/// Locked, so that what is read cannot change before the transaction ends.
pub(super) const LOCK_SENDING: &str = r"
    SELECT version
    FROM broadcasts
    WHERE tenant_id = $1 AND id = $2 AND status = $3
    FOR SHARE";

/// Counts recipients of a broadcast that have no message: $3 failed, $4 skipped.
pub(super) const COUNT_ENDED: &str = r"
    INSERT INTO broadcast_counts AS k (tenant_id, broadcast_id, shard, queued, sending, sent, delivered,
        failed, skipped, awaited, taken, cost)
    VALUES ($1, $2, CAST(pg_backend_pid() % 16 AS SMALLINT), 0, 0, 0, 0, $3, $4, 0, 0, 0)
    ON CONFLICT (tenant_id, broadcast_id, shard) DO UPDATE SET
        failed = k.failed + excluded.failed,
        skipped = k.skipped + excluded.skipped";

/// How long the server may take to respond. It ends each statement after five seconds.
const RESPONSE: Duration = Duration::from_secs(15);

/// Waits for the response to a statement, 15 s at most. If the server vanishes before it responds, nothing else ends the wait: with nothing
/// left to send, the operating system does not notice.
pub(super) async fn in_time<T>(statement: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    let unanswered = |_| Err(sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, UNANSWERED)));
    tokio::time::timeout(RESPONSE, statement).await.unwrap_or_else(unanswered)
}

pub(super) const NOW_MILLIS: &str = "SELECT CAST(date_part('epoch', clock_timestamp()) * 1000 AS BIGINT)";

/// Recipients of one statement.
pub(super) const CONTACTS_AT_ONCE: usize = 1_000;

/// Adds recipients, each with id, kind, identifier and variables, to a broadcast that lacks them.
pub(super) fn insert_contacts(tenant: i64, broadcast: Uuid, rows: Vec<(Uuid, i16, String, String)>) -> QueryBuilder<Db> {
    let mut columns = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (id, kind, recipient, variables) in rows {
        columns.0.push(id);
        columns.1.push(kind);
        columns.2.push(recipient);
        columns.3.push(variables);
    }
    let mut query = QueryBuilder::new("INSERT INTO broadcast_contacts (tenant_id, broadcast_id, id, kind, recipient, variables) SELECT ");
    query.push_bind(tenant).push(", ").push_bind(broadcast);
    query.push(", u.id, u.kind, u.recipient, u.variables FROM unnest(");
    query.push_bind(columns.0).push(", ").push_bind(columns.1).push(", ").push_bind(columns.2).push(", ").push_bind(columns.3);
    query.push(") AS u (id, kind, recipient, variables) ON CONFLICT (tenant_id, kind, recipient, broadcast_id) DO NOTHING");
    query
}

/// ` AND column IN (…)`, in a text that does not vary with the number.
pub(super) fn push_in(query: &mut QueryBuilder<Db>, column: &str, ids: impl IntoIterator<Item = Uuid>) {
    query.push(format!(" AND {column} = ANY(")).push_bind(ids.into_iter().collect::<Vec<_>>()).push(")");
}

/// The contacts behind addresses of a tenant, each with its address. Every address is looked up by its key: a server that has no statistics
/// yet would read all addresses of the tenant instead.
pub(super) fn contacts_of(table: &'static str, tenant: i64, addresses: impl IntoIterator<Item = Uuid>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("SELECT a.id, a.contact_id FROM unnest(");
    query.push_bind(addresses.into_iter().collect::<Vec<_>>());
    query.push(") AS u (id) CROSS JOIN LATERAL (SELECT id, contact_id FROM ").push(table).push(" WHERE tenant_id = ").push_bind(tenant);
    query.push(" AND id = u.id OFFSET 0) AS a");
    query
}

/// Name keys with up to `limit` contacts of each, the oldest ones. By key, because the planner takes `= ANY` for a reason to read the whole
/// table as long as it has no statistics.
pub(super) fn contacts_named(tenant: i64, name_keys: &BTreeSet<String>, limit: u32) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("SELECT c.name_key, c.id FROM unnest(");
    query.push_bind(name_keys.iter().cloned().collect::<Vec<_>>());
    query.push(
        r") AS k (name_key)
            CROSS JOIN LATERAL (
                SELECT name_key, id
                FROM contacts
                WHERE name_key IS NOT NULL AND name_key = k.name_key AND tenant_id = ",
    );
    query.push_bind(tenant).push(" ORDER BY id LIMIT ").push_bind(i64::from(limit)).push(") AS c");
    query
}

/// Identifiers of one kind, each with its contact; by key, as [`contacts_named`].
pub(super) fn contacts_by_identifier(tenant: i64, kind: i16, identifiers: &BTreeSet<String>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("SELECT a.identifier, a.contact_id FROM unnest(");
    query.push_bind(identifiers.iter().cloned().collect::<Vec<_>>());
    query.push(
        r") AS k (identifier)
            CROSS JOIN LATERAL (
                SELECT identifier, contact_id
                FROM addresses
                WHERE identifier = k.identifier AND tenant_id = ",
    );
    query.push_bind(tenant).push(" AND kind = ").push_bind(kind).push(" OFFSET 0) AS a");
    query
}

/// The addresses that merges moved to contacts.
pub(super) fn moved_addresses(tenant: i64, contacts: impl IntoIterator<Item = Uuid>) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("SELECT id, contact_id, kind, identifier, created_at FROM addresses WHERE tenant_id = ");
    query.push_bind(tenant).push(" AND contact_id <> id");
    push_in(&mut query, "contact_id", contacts);
    query
}

/// Rows of the log by their batch.
pub(super) fn log_of_batches(tenant: i64, batches: &[i64]) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::new("SELECT position, entries FROM log WHERE tenant_id = ");
    query.push_bind(tenant).push(" AND batch = ANY(").push_bind(batches.to_vec()).push(")");
    query
}

/// Live nodes divide the rows among themselves.
pub(super) fn shard(row: &AgendaRow) -> i16 {
    row.shard()
}

/// ` AND column IN (…)`, for the shards of a node.
pub(super) fn push_shards(query: &mut QueryBuilder<Db>, shards: &[i16]) {
    query.push(" AND shard = ANY(").push_bind(shards.to_vec()).push(")");
}

/// That an entry of the object `member` of `column` is `value`, as a text or as another scalar. Read as `JSON`, which keeps numbers as they
/// were written. Only JSON with the key anywhere and the value anywhere is parsed.
pub(super) fn json_entry(column: &'static str, member: &'static str, key: &str, value: &str) -> Condition {
    let anywhere = [key, value].map(|part| contains(&in_json(part)));
    let (key, text) = (key.to_owned(), serde_json::Value::from(value).to_string());
    // Neither an object nor a list is a scalar, nor a text in its quotes.
    let value = if value.starts_with(['"', '{', '[']) { text.clone() } else { value.to_owned() };
    Box::new(move |query| {
        for pattern in &anywhere {
            query.push(column).push(" LIKE ").push_bind(pattern.clone()).push(" AND ");
        }
        query.push("CAST(CAST(").push(column).push(" AS JSON) -> '").push(member).push("' -> ").push_bind(key.clone());
        query.push(" AS TEXT) IN (").push_bind(text.clone()).push(", ").push_bind(value.clone()).push(")");
    })
}

/// That the member `member` of `column` is a text with `part` in it, whatever the case of letters from A to Z. Only JSON with `part`
/// anywhere is parsed.
pub(super) fn json_contains(column: &'static str, member: &'static str, part: &str) -> Condition {
    let (anywhere, pattern) = (contains(&in_json(part)), contains(part));
    Box::new(move |query| {
        query.push(column).push(r#" COLLATE "C" ILIKE "#).push_bind(anywhere.clone());
        query
            .push(" AND (CAST(")
            .push(column)
            .push(" AS JSON) ->> '")
            .push(member)
            .push(r#"') COLLATE "C" ILIKE "#)
            .push_bind(pattern.clone());
    })
}

/// What each table takes, with its indexes and large values.
pub(super) const TABLE_SIZES: &str = r"
    SELECT CAST(c.relname AS TEXT), pg_total_relation_size(c.oid)
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relkind = 'r'
    ORDER BY 2 DESC, 1";
