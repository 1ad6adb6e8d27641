//! The repositories of a transaction, in SQL that both databases understand.
//!
//! Each backend compiles this folder as a module of its own, with its own `Db`, `SqlTx` and `dialect`.

use nuncio_store::{Result, StoreError};
use serde::de::DeserializeOwned;
use sqlx::Row as _;

use super::{Db, Handle, dialect};
use crate::column::FromColumn;
use crate::message_batch::Writes;
use crate::row::{DueRow, MessageRow, corrupt};
use crate::{Ends, SqlxResult as _};

/// A transaction or a reader.
#[derive(Debug)]
pub(crate) struct SqlTx {
    pub(super) handle: Handle,
    pub(super) failed: bool,
    /// Whether statements may take as long as they need.
    unlimited: bool,
    /// What is written right before the commit.
    writes: Writes,
}

impl From<Handle> for SqlTx {
    fn from(handle: Handle) -> Self {
        Self { handle, failed: false, unlimited: false, writes: Writes::default() }
    }
}

impl Ends for SqlTx {
    fn end(&mut self) {
        self.failed = true;
    }
}

/// A statement with the values of `$1`, `$2`, and so on.
macro_rules! sql {
    ($sql:expr $(, [$($value:expr),* $(,)?])? $(,)?) => {
        sqlx::query($sql)$($(.bind($crate::column::ToColumn::to_column($value)))*)?
    };
}

mod addresses;
mod audit;
mod broadcasts;
mod connections;
mod contacts;
mod deliveries;
mod erasure;
mod events;
mod idempotency;
mod inbound;
mod invitations;
mod keys;
mod ledger;
mod mailboxes;
mod messages;
mod nodes;
mod numbers;
mod prices;
mod profiles;
mod projects;
pub(super) mod query;
mod quotas;
mod reassembly;
mod receipts;
mod retention;
mod reviews;
mod routing;
mod senders;
mod suppressions;
mod templates;
mod traffic;
mod users;
mod webhooks;

pub(super) use query::Condition;

type Query<'q> = sqlx::query::Query<'q, Db, <Db as sqlx::Database>::Arguments>;

type Row = <Db as sqlx::Database>::Row;

/// What a column can be read into.
trait Field: FromColumn<Column: for<'r> sqlx::Decode<'r, Db> + sqlx::Type<Db>> {}

impl<T: FromColumn<Column: for<'r> sqlx::Decode<'r, Db> + sqlx::Type<Db>>> Field for T {}

/// A row whose columns are read by name, or by place.
struct Columns<'r> {
    row: &'r Row,
    /// Named in errors.
    table: &'static str,
}

impl Columns<'_> {
    fn get<T: Field>(&self, column: impl sqlx::ColumnIndex<Row> + std::fmt::Display + Copy) -> Result<T> {
        let value = self.row.try_get(column).map_err(|error| corrupt(self.table, error))?;
        T::from_column(value).map_err(|wrong| corrupt(self.table, format!("{column} {wrong}")))
    }

    fn json<T: DeserializeOwned>(&self, column: &str) -> Result<T> {
        serde_json::from_str(&self.get::<String>(column)?).map_err(|error| corrupt(self.table, error))
    }

    fn optional_json<T: DeserializeOwned>(&self, column: &str) -> Result<Option<T>> {
        let text: Option<String> = self.get(column)?;
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(|error| corrupt(self.table, error))
    }
}

/// What a row is read into.
trait Record: Sized {
    /// Named in errors.
    const TABLE: &'static str;

    fn read(row: &Columns<'_>) -> Result<Self>;

    fn of(row: &Row) -> Result<Self> {
        Self::read(&Columns { row, table: Self::TABLE })
    }
}

/// Tuples are read by place.
macro_rules! tuples {
    ($([$($place:tt $type:ident)*])*) => {$(
        impl<$($type: Field),*> Record for ($($type,)*) {
            const TABLE: &'static str = "?";

            fn read(row: &Columns<'_>) -> Result<Self> {
                Ok(($(row.get::<$type>($place)?,)*))
            }
        }
    )*};
}

tuples! {
    [0 A]
    [0 A 1 B]
    [0 A 1 B 2 C]
    [0 A 1 B 2 C 3 D]
    [0 A 1 B 2 C 3 D 4 E]
    [0 A 1 B 2 C 3 D 4 E 5 F]
    [0 A 1 B 2 C 3 D 4 E 5 F 6 G]
}

/// Rows that are used as they are stored.
macro_rules! shared {
    ($($type:ty)*) => {$(
        impl Record for $type {
            const TABLE: &'static str = "messages";

            fn read(row: &Columns<'_>) -> Result<Self> {
                sqlx::FromRow::from_row(row.row).store()
            }
        }
    )*};
}

shared!(DueRow MessageRow);

/// Waits for a statement: as long as the database may take, or as long as it takes.
async fn finished<T>(unlimited: bool, statement: impl Future<Output = sqlx::Result<T>>) -> sqlx::Result<T> {
    if unlimited { statement.await } else { dialect::in_time(statement).await }
}

/// How the statements of a transaction run. An error ends the transaction.
impl SqlTx {
    /// Runs a statement; returns how many rows it changed.
    async fn run(&mut self, query: Query<'_>) -> Result<u64> {
        let unlimited = self.unlimited;
        Ok(finished(unlimited, query.execute(self.conn())).await.abort_on_error(self)?.rows_affected())
    }

    /// Runs a statement, whatever it changes.
    async fn write(&mut self, query: Query<'_>) -> Result<()> {
        self.run(query).await.map(drop)
    }

    /// Runs a statement; returns whether it changed one row.
    async fn changes(&mut self, query: Query<'_>) -> Result<bool> {
        Ok(self.run(query).await? == 1)
    }

    /// Returns all rows of a statement.
    async fn all<T: Record>(&mut self, query: Query<'_>) -> Result<Vec<T>> {
        self.rows(query).await?.iter().map(T::of).collect()
    }

    /// Returns the rows of a statement that can be read. One corrupt row must not block the others of all tenants.
    async fn readable<T: Record>(&mut self, query: Query<'_>) -> Result<Vec<T>> {
        let logged = |error: &StoreError| tracing::error!(%error, "failed to decode a row; skipped it");
        Ok(self.rows(query).await?.iter().filter_map(|row| T::of(row).inspect_err(logged).ok()).collect())
    }

    /// Returns the row of a statement that always has one.
    async fn one<T: Record>(&mut self, query: Query<'_>) -> Result<T> {
        let row = self.row(query).await?.ok_or(sqlx::Error::RowNotFound).abort_on_error(self)?;
        T::of(&row)
    }

    /// Returns the first row of a statement, if it has one.
    async fn optional<T: Record>(&mut self, query: Query<'_>) -> Result<Option<T>> {
        self.row(query).await?.as_ref().map(T::of).transpose()
    }

    /// Returns the first column of all rows of a statement.
    async fn column<T: Field>(&mut self, query: Query<'_>) -> Result<Vec<T>> {
        Ok(self.all(query).await?.into_iter().map(|(value,)| value).collect())
    }

    /// Returns the first column of the first row of a statement, if it has one.
    async fn value<T: Field>(&mut self, query: Query<'_>) -> Result<Option<T>> {
        Ok(self.optional(query).await?.map(|(value,)| value))
    }

    /// What waits for the database knows nothing of the type that its rows are read into: compiled once, not once per type.
    async fn rows(&mut self, query: Query<'_>) -> Result<Vec<Row>> {
        let unlimited = self.unlimited;
        finished(unlimited, query.fetch_all(self.conn())).await.abort_on_error(self)
    }

    async fn row(&mut self, query: Query<'_>) -> Result<Option<Row>> {
        let unlimited = self.unlimited;
        finished(unlimited, query.fetch_optional(self.conn())).await.abort_on_error(self)
    }

    /// Takes the time limit of statements off this connection, or puts it back.
    async fn limit_time(&mut self, limited: bool) -> Result<()> {
        let unlimited = self.unlimited;
        finished(unlimited, self.handle.limit_time(limited)).await.abort_on_error(self)?;
        self.unlimited = !limited;
        Ok(())
    }
}
