//! From failures of the database to what a caller is told.

use nuncio_domain::{Error, Result};
use nuncio_store::StoreError;

/// Turns store results into use-case results.
pub trait StoreResultExt<T> {
    /// Busy, unavailable and in doubt become `503`, all else `500`; inner texts go to the log.
    fn or_fail(self) -> Result<T>;
}

impl<T> StoreResultExt<T> for nuncio_store::Result<T> {
    fn or_fail(self) -> Result<T> {
        self.map_err(|error| match error {
            StoreError::Busy(_) => Error::unavailable("the service is busy; try again").caused_by(error),
            StoreError::Unavailable(_) => Error::unavailable("storage is unavailable; nothing was accepted").caused_by(error),
            StoreError::InDoubt(_) => Error::unavailable(
                "storage was lost while the request was written, which may have happened or not; send it again with the same idempotency key",
            )
            .with("outcome", "unknown".into())
            .caused_by(error),
            StoreError::Conflict(_) | StoreError::Corrupt { .. } | StoreError::Other(_) => Error::internal(error),
        })
    }
}
