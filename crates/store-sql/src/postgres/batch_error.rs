//! Errors of message batches.

use std::error::Error;

use nuncio_store::StoreError;

use super::session::failed;

/// Why a batch failed.
#[derive(Debug)]
pub(super) enum BatchError {
    /// It was not written.
    Refused(StoreError),
    /// It may have been written.
    LostCommit(Box<dyn Error + Send + Sync>),
}

impl From<StoreError> for BatchError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl BatchError {
    /// The error of a statement that was sent with the commit. A server that answers with an error has not committed.
    pub(super) fn of_commit(error: tokio_postgres::Error) -> Self {
        if error.as_db_error().is_some() { Self::Refused(failed(error)) } else { Self::LostCommit(error.into()) }
    }

    /// A row that exists already, after a commit got no answer, is the row that it wrote after all.
    pub(super) fn may_be_written(&self, lost: bool) -> bool {
        matches!(self, Self::LostCommit(_)) || lost && matches!(self, Self::Refused(StoreError::Conflict(_)))
    }
}
