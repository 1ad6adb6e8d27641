//! Runs SQL without the store.

use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

/// Excludes these statements from the recording.
const UNRECORDED: (&str, &str) = ("pg_stat_statements.track", "none");

/// Runs SQL on a file; returns the result as text.
pub(crate) fn sqlite_rows(path: &std::path::Path, sql: &str) -> Vec<Vec<Option<String>>> {
    use rusqlite::types::ValueRef;
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
    let mut answer = Vec::new();
    let mut batch = rusqlite::Batch::new(&conn, sql);
    while let Some(mut statement) = rusqlite::fallible_iterator::FallibleIterator::next(&mut batch).unwrap() {
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let text = |n| match row.get_ref(n).unwrap() {
                ValueRef::Null => None,
                ValueRef::Integer(i) => Some(i.to_string()),
                ValueRef::Real(r) => Some(r.to_string()),
                ValueRef::Text(t) => Some(String::from_utf8_lossy(t).into_owned()),
                ValueRef::Blob(b) => Some(format!("{b:02x?}")),
            };
            answer.push((0..columns).map(text).collect());
        }
    }
    answer
}

/// Runs SQL on a database; returns the result as text.
pub(crate) async fn postgres_rows(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let options = PgConnectOptions::from_str(url).unwrap().options([UNRECORDED]);
    let mut conn = PgConnection::connect_with(&options).await.unwrap();
    let rows = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).fetch_all(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    rows.iter().map(|row| (0..row.len()).map(|n| row.try_get_unchecked(n).unwrap()).collect()).collect()
}
