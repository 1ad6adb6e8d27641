//! A transaction's place among those of its session.

use nuncio_store::{Result, StoreError};
use tokio::sync::oneshot;

/// The place of a transaction that may begin while the one before it waits for its commit, and is followed by another in the same way.
///
/// Their statements run one after the other, since they share a session. A transaction may start attempts that results in the one before
/// made room for, so it commits only after that one has.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Place {
    /// Resolves when the transaction before has committed; closed if it failed. None if there is none.
    before: Option<oneshot::Receiver<()>>,
    /// Tells that all statements are sent.
    left: Option<oneshot::Sender<()>>,
    has_left: bool,
}

impl Place {
    pub(in crate::postgres) fn new(before: Option<oneshot::Receiver<()>>, left: oneshot::Sender<()>) -> Self {
        Self { before, left: Some(left), has_left: false }
    }

    /// Whether no other transaction is under way.
    pub(super) fn is_first(&mut self) -> bool {
        if self.before.as_mut().is_some_and(|before| before.try_recv().is_ok()) {
            self.before = None;
        }
        self.before.is_none()
    }

    /// Waits until the transaction before has committed. Fails if it was not.
    pub(super) async fn follow(&mut self) -> Result<()> {
        match self.before.take() {
            Some(before) => before.await.map_err(|_| StoreError::Busy("the transaction before this one was not committed".to_owned())),
            None => Ok(()),
        }
    }

    /// The commit is sent: statements of the next transaction may follow.
    pub(super) async fn leave(&mut self) {
        self.has_left = true;
        if let Some(left) = self.left.take() {
            let _ = left.send(()); // the writer that waited for it is gone
        }
    }

    /// Whether the commit is sent. If it failed, the server has rolled back.
    pub(super) const fn has_left(&self) -> bool {
        self.has_left
    }
}
