//! Keeps the order of arrival among the texts of one person, which are stored concurrently: a STOP must not overtake the START before it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Lines that texts wait in. People can share one.
const LINES: u64 = 64;

/// The end of each line: what its last text ends with.
#[derive(Debug)]
pub(crate) struct Turns(Mutex<Vec<oneshot::Receiver<()>>>);

/// A place in a line.
#[derive(Debug)]
pub(crate) struct Turn {
    before: oneshot::Receiver<()>,
    over: oneshot::Sender<()>,
}

impl Default for Turns {
    fn default() -> Self {
        Self(Mutex::new((0..LINES).map(|_| oneshot::channel().1).collect()))
    }
}

impl Turns {
    /// Takes the next place in the line of `author`.
    pub(crate) fn take(&self, author: &str) -> Turn {
        let mut hasher = DefaultHasher::new();
        author.hash(&mut hasher);
        let (over, end) = oneshot::channel();
        let line = (hasher.finish() % LINES) as usize;
        Turn { before: std::mem::replace(&mut self.0.lock()[line], end), over }
    }
}

impl Turn {
    /// Waits until it is this place's turn, which lasts until the returned value is dropped.
    pub(crate) async fn come(self) -> oneshot::Sender<()> {
        // Whoever was before has dropped its end.
        self.before.await.ok();
        self.over
    }
}
