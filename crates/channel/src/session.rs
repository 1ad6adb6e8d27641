//! Sessions that an account keeps open: binds, polls, listeners.

use std::future::Future;

use tokio::sync::watch;

/// On which nodes an account's session is kept open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sessions {
    /// On none: each send makes its own call.
    None,
    /// On every node: each sends through its own session.
    EveryNode,
    /// On one node at a time: the provider refuses a second session, or would report everything twice.
    OneNode,
}

/// Asks a session to end.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Waits for the request to stop.
    pub async fn asked(&mut self) {
        // A dropped sender also ends the session.
        let _ = self.0.wait_for(|asked| *asked).await;
    }

    /// Waits for `work`; `None` if asked to stop first.
    pub async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            () = self.asked() => None,
            done = work => Some(done),
        }
    }
}

/// The sender of a request to stop, and its receiver. Dropping the sender also stops the session.
pub fn stop() -> (watch::Sender<bool>, Stop) {
    let (ask, asked) = watch::channel(false);
    (ask, Stop(asked))
}
