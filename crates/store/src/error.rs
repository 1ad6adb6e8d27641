//! What can go wrong with a database.

/// A failure of the database, not of the request.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A unique constraint was hit. Ends the transaction.
    #[error("a row with this key exists already")]
    Conflict(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Too much to do, or a lock that others hold. Worth another try.
    #[error("the database is busy: {0}")]
    Busy(String),
    /// No connection, no space, read-only, or closed.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// The database was lost while it committed, and did not come back in time to tell what became of it.
    #[error("it is not known whether this was written: {0}")]
    InDoubt(String),
    /// A stored value cannot be read.
    #[error("table {table}: {what}")]
    Corrupt {
        /// The table.
        table: &'static str,
        /// What is wrong, without personal data.
        what: String,
    },
    /// Anything else.
    #[error("the database refused a statement: {0}")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What the store answers.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
