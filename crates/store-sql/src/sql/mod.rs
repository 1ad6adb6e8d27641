//! The repositories of a transaction, in SQL that both databases understand.
//!
//! Each backend compiles this folder as a module of its own, with its own `Db`, `SqlTx` and `dialect`.

use nuncio_store::Result;

use super::{Db, Handle, dialect};
use crate::message_batch::Writes;
use crate::{Ends, SqlxResult as _};

/// A transaction or a reader.
#[derive(Debug)]
pub(crate) struct SqlTx {
    pub(super) handle: Handle,
    pub(super) failed: bool,
    /// What is written right before the commit.
    writes: Writes,
}

impl From<Handle> for SqlTx {
    fn from(handle: Handle) -> Self {
        Self { handle, failed: false, writes: Writes::default() }
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
        sqlx::query($sql)$($(.bind($value))*)?
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

/// What a row is read into.
trait FromRow: for<'r> sqlx::FromRow<'r, Row> + Send + Unpin {}

impl<T: for<'r> sqlx::FromRow<'r, Row> + Send + Unpin> FromRow for T {}

/// How the statements of a transaction run. An error ends the transaction.
impl SqlTx {
    /// Runs a statement; returns how many rows it changed.
    async fn run(&mut self, query: Query<'_>) -> Result<u64> {
        Ok(query.execute(self.conn()).await.abort_on_error(self)?.rows_affected())
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
    async fn all<T: FromRow>(&mut self, query: Query<'_>) -> Result<Vec<T>> {
        let rows = self.rows(query).await?;
        let mut all = Vec::with_capacity(rows.len());
        for row in &rows {
            all.push(T::from_row(row).abort_on_error(self)?);
        }
        Ok(all)
    }

    /// Returns the row of a statement that always has one.
    async fn one<T: FromRow>(&mut self, query: Query<'_>) -> Result<T> {
        self.optional(query).await?.ok_or(sqlx::Error::RowNotFound).abort_on_error(self)
    }

    /// Returns the first row of a statement, if it has one.
    async fn optional<T: FromRow>(&mut self, query: Query<'_>) -> Result<Option<T>> {
        let row = self.row(query).await?;
        row.as_ref().map(T::from_row).transpose().abort_on_error(self)
    }

    /// What waits for the database knows nothing of the type that its rows are read into: compiled once, not once per type.
    async fn rows(&mut self, query: Query<'_>) -> Result<Vec<Row>> {
        query.fetch_all(self.conn()).await.abort_on_error(self)
    }

    async fn row(&mut self, query: Query<'_>) -> Result<Option<Row>> {
        query.fetch_optional(self.conn()).await.abort_on_error(self)
    }

    /// Takes the time limit of statements off this connection, or puts it back.
    async fn limit_time(&mut self, limited: bool) -> Result<()> {
        let set = if limited { dialect::TIME_LIMIT } else { dialect::NO_TIME_LIMIT };
        sqlx::raw_sql(set).execute(self.conn()).await.abort_on_error(self)?;
        Ok(())
    }
}
