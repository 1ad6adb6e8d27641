//! Idle connections for the next email.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::client::Connection;

/// How long a connection waits. Relays close idle ones after one to five minutes (RFC 5321 §4.5.3.2.7 asks for five).
const IDLE: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    /// Whether a task sees to connections that waited too long.
    reaping: bool,
}

impl Pool {
    /// The connection that was used last.
    pub(crate) fn take(&self) -> Option<Connection> {
        self.state.lock().idle.pop()
    }

    /// Returns `connection` to the pool.
    pub(crate) fn put(self: &Arc<Self>, mut connection: Connection) {
        connection.since = tokio::time::Instant::now();
        let mut state = self.state.lock();
        state.idle.push(connection);
        if !std::mem::replace(&mut state.reaping, true) {
            tokio::spawn(reap(Arc::downgrade(self)));
        }
    }

    /// Removes connections that were idle too long; returns them, and whether any are left.
    fn expired(&self) -> (Vec<Connection>, bool) {
        let mut state = self.state.lock();
        // The most recently used are last, so old ones come first.
        let fresh = state.idle.iter().position(|c| c.since.elapsed() < IDLE).unwrap_or(state.idle.len());
        let old = state.idle.drain(..fresh).collect();
        state.reaping = !state.idle.is_empty();
        (old, state.reaping)
    }
}

/// Ends when the pool is empty or dropped.
async fn reap(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(strong) = pool.upgrade() else { return };
        let (old, more) = strong.expired();
        drop(strong);
        for connection in old {
            connection.quit().await;
        }
        if !more {
            return;
        }
    }
}
