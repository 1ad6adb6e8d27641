//! Runs a third-party mail server: `peers/smtp_sink.py`, on aiosmtpd, which verifies signatures with dkimpy.

use nuncio_channel::testing::{PeerProcess, python_peer};
pub use nuncio_channel::testing::{peer_python, repository};
use serde_json::Value;

/// A running mail server. Stops when dropped.
#[derive(Debug)]
pub struct Mailbox {
    /// The port on 127.0.0.1.
    pub port: u16,
    process: PeerProcess,
}

impl Mailbox {
    /// Starts a server with these options of the peer (see `peers/smtp_sink.py --help`).
    pub fn start(options: &[&str]) -> Self {
        let mut process = PeerProcess::start(python_peer("smtp_sink.py").args(options));
        Self { port: process.port(), process }
    }

    /// Waits for the next event of the server.
    pub fn seen(&mut self) -> Value {
        self.process.seen()
    }
}

/// Reads a file of the repository by its path from the root.
pub fn repository_file(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).expect(path)
}
