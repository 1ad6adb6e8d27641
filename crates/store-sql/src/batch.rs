//! Answering the items of a batch, and finding the one that spoils it.

use nuncio_store::{Result, StoreError};

use crate::message_batch::{Batched, Op, again};

/// The most items of one transaction.
pub(crate) const BATCH: usize = 256;
/// The most items that may wait for a lane; beyond it callers are told to come back.
pub(crate) const WAITING: usize = 16_384;

/// Answers every item of a batch that ran as one.
pub(crate) fn answer<I: Batched>(batch: Vec<Op<I, I::Answer>>, outcome: Result<Vec<I::Done>>) {
    match outcome {
        Ok(done) => {
            for (Op { item, reply }, done) in batch.into_iter().zip(done) {
                let _ = reply.send(Ok(item.answered(done))); // a caller that went away changes nothing
            }
        }
        Err(error) => {
            for op in batch {
                let _ = op.reply.send(Err(again(&error)));
            }
        }
    }
}

/// Whether a batch that failed with `error` may hold one item that spoils it for the others.
pub(crate) fn may_be_one_item(error: &StoreError) -> bool {
    matches!(error, StoreError::Other(_) | StoreError::Conflict(_) | StoreError::Corrupt { .. })
}

/// Told to callers when a lane is full.
pub(crate) fn full() -> StoreError {
    StoreError::Busy("too many requests wait for the database".to_owned())
}

/// Told to callers when the store was closed.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".to_owned())
}
