//! Answers the items of a batch, and decides whether one item spoils it.

use nuncio_store::{Result, StoreError};

use crate::message_batch::{Batched, Op, copy_error};

/// Maximum number of items in one transaction.
pub(crate) const BATCH: usize = 256;

/// Answers every item of a batch that ran as one.
pub(crate) fn answer<I: Batched>(batch: Vec<Op<I, I::Answer>>, outcome: Result<Vec<I::Done>>) {
    match outcome {
        Ok(done) => {
            for (Op { item, reply }, done) in batch.into_iter().zip(done) {
                let _ = reply.send(Ok(item.into_answer(done))); // a caller that went away changes nothing
            }
        }
        Err(error) => {
            for op in batch {
                let _ = op.reply.send(Err(copy_error(&error)));
            }
        }
    }
}

/// Whether a single item may be the reason that a batch failed with `error`.
pub(crate) fn may_be_one_item(error: &StoreError) -> bool {
    matches!(error, StoreError::Other(_) | StoreError::Conflict(_) | StoreError::Corrupt { .. })
}

/// The queue of a writer is full.
pub(crate) fn full() -> StoreError {
    StoreError::Busy("too many requests wait for the database".to_owned())
}

/// The store was closed.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
