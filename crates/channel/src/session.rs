//! Sessions that an account keeps open: binds, polls, listeners.

use std::future::Future;

use tokio::sync::watch;

/// On how many nodes an account's session is kept open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sessions {
    /// On none: each send makes its own call.
    None,
    /// On every node: each sends by a session of its own.
    EveryNode,
    /// On one node at a time: the provider refuses a second, or would tell everything twice.
    OneNode,
}

/// Asks a session to end.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Waits until it is asked.
    pub async fn asked(&mut self) {
        // Whoever could ask is gone: that is asking too.
        let _ = self.0.wait_for(|asked| *asked).await;
    }

    /// Waits for `work`; `None` when it is asked first.
    pub async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            () = self.asked() => None,
            done = work => Some(done),
        }
    }
}

/// A way to ask, and what hears it. Dropping the sender asks too.
pub fn stop() -> (watch::Sender<bool>, Stop) {
    let (ask, asked) = watch::channel(false);
    (ask, Stop(asked))
}
