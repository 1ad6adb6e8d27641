//! Copies an embedded database to PostgreSQL.
//!
//! Both schemas have the same tables and columns, so that a row is copied value by value. Everything is one transaction: a copy that is
//! interrupted leaves the target empty.

use std::path::Path;

use futures::TryStreamExt as _;
use nuncio_store::{Result, StoreError};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, Row as _, SqliteConnection};
use uuid::Uuid;

use crate::postgres::{self, COPIED, DISTRIBUTED};
use crate::{SqlxResult as _, sqlx_error};

/// Rows of one statement.
const ROWS: usize = 500;

/// How far a copy is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The table that is being copied.
    pub table: &'a str,
    /// Rows copied so far.
    pub copied: u64,
    /// Rows of all tables.
    pub rows: u64,
}

/// What was copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    /// Tables with rows.
    pub tables: u64,
    /// Their rows.
    pub rows: u64,
}

/// A column, and its type on PostgreSQL.
#[derive(Debug)]
struct Column {
    name: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Integer,
    Text,
    Bytes,
    Uuid,
}

/// Copies the SQLite file, which no server may be using and whose schema is up to date, to the PostgreSQL database at `url`.
///
/// # Errors
///
/// Fails if the target is not empty, or does not keep what it confirms; nothing was copied then.
pub async fn copy(file: &Path, url: &str, progress: impl Fn(Progress<'_>) + Send + Sync) -> Result<Copied> {
    let (options, pool) = postgres::connect(url).await?;
    postgres::refuse_unsafe(&pool).await?;
    pool.close().await;
    postgres::migrate(&options).await?;
    let unlimited = ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"].map(|limit| (limit, "0"));
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options.options(unlimited)).await.map_err(sqlx_error)?;
    let mut source = SqliteConnectOptions::new().filename(file).read_only(true).connect().await.store()?;
    let mut target = pool.begin().await.store()?;
    let tables: Vec<&str> = COPIED.iter().chain(DISTRIBUTED).copied().collect();
    let mut rows = 0;
    for table in &tables {
        // Writers wait until the copy is there or not.
        sqlx::query(AssertSqlSafe(format!("LOCK TABLE {table} IN EXCLUSIVE MODE"))).execute(&mut *target).await.store()?;
        let (used,): (bool,) =
            sqlx::query_as(AssertSqlSafe(format!("SELECT EXISTS (SELECT 1 FROM {table})"))).fetch_one(&mut *target).await.store()?;
        if used {
            return Err(StoreError::Unavailable(format!(
                "the PostgreSQL database is not empty: it has rows in {table}; copy into a new one"
            )));
        }
        rows += count(&mut source, table).await?;
    }
    let mut copied = Copied { tables: 0, rows: 0 };
    for table in &tables {
        let before = copied.rows;
        let columns = columns(&mut target, table).await?;
        copy_table(&mut source, &mut target, table, &columns, |more| {
            copied.rows += more;
            progress(Progress { table, copied: copied.rows, rows });
        })
        .await?;
        copied.tables += u64::from(copied.rows > before);
    }
    if copied.rows != rows {
        return Err(StoreError::Unavailable(format!("{} of {rows} rows were read; is a server using the file?", copied.rows)));
    }
    target.commit().await.store()?;
    // Only its own tables: of others, an ordinary user gets a warning each. The rows are there, whether this succeeds or not.
    let _ = sqlx::query(AssertSqlSafe(format!("ANALYZE {}", tables.join(", ")))).execute(&pool).await;
    pool.close().await;
    Ok(copied)
}

async fn count(source: &mut SqliteConnection, table: &str) -> Result<u64> {
    let (rows,): (i64,) = sqlx::query_as(AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"))).fetch_one(source).await.store()?;
    Ok(rows.unsigned_abs())
}

async fn columns(target: &mut PgConnection, table: &str) -> Result<Vec<Column>> {
    let found: Vec<(String, String)> = sqlx::query_as(
        r"
            SELECT CAST(a.attname AS TEXT), CAST(a.atttypid AS regtype)::text
            FROM pg_attribute a
            WHERE a.attrelid = CAST($1 AS regclass) AND a.attnum > 0 AND NOT a.attisdropped
            ORDER BY a.attnum",
    )
    .bind(table)
    .fetch_all(target)
    .await
    .store()?;
    let column = |(name, kind): (String, String)| {
        let kind = match kind.as_str() {
            "bigint" | "integer" | "smallint" => Kind::Integer,
            "text" => Kind::Text,
            "bytea" => Kind::Bytes,
            "uuid" => Kind::Uuid,
            other => return Err(StoreError::Other(format!("column {table}.{name} is of the type {other}, which is not copied").into())),
        };
        Ok(Column { name, kind })
    };
    found.into_iter().map(column).collect()
}

async fn copy_table(
    source: &mut SqliteConnection,
    target: &mut PgConnection,
    table: &str,
    columns: &[Column],
    mut copied: impl FnMut(u64),
) -> Result<()> {
    let names = columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    let arrays = columns.iter().enumerate().map(|(n, column)| format!("${}::{}[]", n + 1, column.kind.name()));
    let insert = format!("INSERT INTO {table} ({names}) SELECT * FROM unnest({})", arrays.collect::<Vec<_>>().join(", "));
    let select = format!("SELECT {names} FROM {table}");
    let mut rows = sqlx::query(AssertSqlSafe(select)).fetch(source);
    let mut batch: Vec<SqliteRow> = Vec::with_capacity(ROWS);
    loop {
        let row = rows.try_next().await.store()?;
        let ended = row.is_none();
        batch.extend(row);
        if batch.len() == ROWS || (ended && !batch.is_empty()) {
            write(target, &insert, columns, &batch).await?;
            copied(batch.len() as u64);
            batch.clear();
        }
        if ended {
            return Ok(());
        }
    }
}

/// Writes rows by one statement, an array for each column.
async fn write(target: &mut PgConnection, insert: &str, columns: &[Column], rows: &[SqliteRow]) -> Result<()> {
    let mut query = sqlx::query(AssertSqlSafe(insert.to_owned()));
    for (n, column) in columns.iter().enumerate() {
        query = match column.kind {
            Kind::Integer => query.bind(values::<i64>(rows, n)?),
            Kind::Text => query.bind(values::<String>(rows, n)?),
            Kind::Bytes => query.bind(values::<Vec<u8>>(rows, n)?),
            Kind::Uuid => query.bind(values::<Uuid>(rows, n)?),
        };
    }
    query.execute(target).await.store()?;
    Ok(())
}

fn values<'r, T>(rows: &'r [SqliteRow], column: usize) -> Result<Vec<Option<T>>>
where
    Option<T>: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
{
    rows.iter().map(|row| row.try_get::<Option<T>, _>(column).store()).collect()
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Integer => "bigint",
            Self::Text => "text",
            Self::Bytes => "bytea",
            Self::Uuid => "uuid",
        }
    }
}
