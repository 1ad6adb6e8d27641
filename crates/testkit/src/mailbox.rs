//! Runs a third-party mail server: `peers/smtp_sink.py`, on aiosmtpd, which verifies signatures with dkimpy.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// Returns the Python interpreter for third-party peers.
pub fn peer_python() -> PathBuf {
    std::env::var_os("NUNCIO_PEER_PYTHON").map_or_else(|| repository().join(".peers/venv/bin/python"), PathBuf::from)
}

/// A running mail server. Stops when dropped.
#[derive(Debug)]
pub struct Mailbox {
    /// The port on 127.0.0.1.
    pub port: u16,
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Mailbox {
    /// Starts a server with these options of the peer (see `peers/smtp_sink.py --help`).
    pub fn start(options: &[&str]) -> Self {
        let root = repository();
        let mut child = Command::new(peer_python())
            .arg(root.join("peers/smtp_sink.py"))
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the SMTP peer starts; scripts/deps.sh installs it");
        let mut lines = BufReader::new(child.stdout.take().expect("its output"));
        let port = read(&mut lines)["port"].as_u64().expect("its port") as u16;
        Self { port, child, lines }
    }

    /// Waits for the next event of the server.
    pub fn seen(&mut self) -> Value {
        read(&mut self.lines)
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn read(lines: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line of the SMTP peer");
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("the SMTP peer ended: {line:?}"))
}

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace").to_owned()
}

/// Reads a file of the repository by its path from the root.
pub fn repository_file(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).expect(path)
}
