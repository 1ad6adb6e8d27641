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

/// Busy, unavailable and in doubt become `503`, all else `500`; inner texts go to the log.
impl From<StoreError> for nuncio_domain::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy(_) => Self::unavailable("the service is busy; try again").caused_by(error),
            StoreError::Unavailable(_) => Self::unavailable("storage is unavailable; nothing was accepted").caused_by(error),
            StoreError::InDoubt(_) => Self::unavailable(
                "storage was lost while the request was written, which may have happened or not; send it again with the same idempotency key",
            )
            .with("outcome", "unknown".into())
            .caused_by(error),
            StoreError::Conflict(_) | StoreError::Corrupt { .. } | StoreError::Other(_) => Self::internal(error),
        }
    }
}

/// What the store answers.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
