//! Errors of the database, and their mapping to API errors.

/// A failure of the database, not of the request.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A unique constraint was violated. The transaction cannot commit.
    #[error("a row with this key exists already")]
    Conflict(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Overload, a lock that was not free in time, or a statement that took too long. A retry may succeed.
    #[error("the database is busy: {0}")]
    Busy(String),
    /// No connection, no disk space, read-only, or closed.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// The connection was lost during the commit, and the outcome could not be read back in time.
    #[error("it is not known whether this was written: {0}")]
    InDoubt(String),
    /// A stored value cannot be read.
    #[error("table {table}: {what}")]
    Corrupt {
        /// The table that holds the value.
        table: &'static str,
        /// What is wrong, without personal data.
        what: String,
    },
    /// Any other database error, such as a refused statement.
    #[error("the database refused a statement: {0}")]
    Other(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Busy, unavailable and in doubt become `503`, all else `500`; inner texts go to the log.
impl From<StoreError> for nuncio_domain::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy(_) => Self::unavailable("the service is busy, or the request takes too long; try again, or ask for less").caused_by(error),
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

/// Result of a store call.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
