//! Answers the items of a batch, and decides whether one item spoils it.

use nuncio_store::{Result, StoreError};
use tokio::sync::oneshot;

/// Maximum number of items in one transaction.
pub(crate) const BATCH: usize = 256;

/// An item waiting for a batch, with the channel for its answer.
#[derive(Debug)]
pub(crate) struct Op<I, O> {
    pub(crate) item: I,
    pub(crate) reply: oneshot::Sender<Result<O>>,
}

/// Answers every item of a batch that is committed. `to_answer` makes the answer from the item and its outcome.
pub(crate) fn answer<I, D, O>(batch: Vec<Op<I, O>>, outcomes: Vec<D>, to_answer: impl Fn(I, D) -> O) {
    for (Op { item, reply }, outcome) in batch.into_iter().zip(outcomes) {
        let _ = reply.send(Ok(to_answer(item, outcome))); // a caller that went away changes nothing
    }
}

/// Answers every item of a batch that failed as a whole.
pub(crate) fn fail<I, O>(batch: Vec<Op<I, O>>, error: &StoreError) {
    for op in batch {
        let _ = op.reply.send(Err(copy(error)));
    }
}

fn copy(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy(what) => StoreError::Busy(what.clone()),
        StoreError::Unavailable(what) => StoreError::Unavailable(what.clone()),
        StoreError::InDoubt(what) => StoreError::InDoubt(what.clone()),
        StoreError::Corrupt { table, what } => StoreError::Corrupt { table, what: what.clone() },
        StoreError::Conflict(source) => StoreError::Conflict(source.to_string().into()),
        StoreError::Other(source) => StoreError::Other(source.to_string().into()),
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
