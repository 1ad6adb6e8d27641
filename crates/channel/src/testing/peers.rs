//! Third-party programs that adapters are tested against: the scripts in `peers/`.

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace").to_owned()
}

/// Returns the Python interpreter for third-party peers.
pub fn peer_python() -> PathBuf {
    std::env::var_os("NUNCIO_PEER_PYTHON").map_or_else(|| repository().join(".peers/venv/bin/python"), PathBuf::from)
}

/// Returns a command that runs a Python script of `peers/`.
pub fn python_peer(script: &str) -> Command {
    let mut command = Command::new(peer_python());
    command.arg(repository().join("peers").join(script));
    command
}

/// Returns a command that runs a Node.js script of `peers/`; `None`, with a notice, without the npm package that it needs.
pub fn node_peer(script: &str, package: &str) -> Option<Command> {
    let modules = std::env::var_os("NUNCIO_PEER_NODE").map_or_else(|| repository().join(".peers/node"), PathBuf::from);
    let Some(modules) = modules.canonicalize().ok().filter(|modules| modules.join("node_modules").join(package).exists()) else {
        println!("SKIPPED what needs the npm package {package}: scripts/deps.sh installs it where there is node and npm");
        return None;
    };
    let mut command = Command::new("node");
    command.arg(repository().join("peers").join(script)).arg(modules);
    Some(command)
}

/// A running peer that speaks in lines of JSON. Stops when dropped.
#[derive(Debug)]
pub struct PeerProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl PeerProcess {
    /// Starts a peer. Panics if it is not installed.
    pub fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the peer starts; scripts/deps.sh installs it");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, output }
    }

    /// Waits for the next line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).expect("its output") > 0, "the peer ended");
        line
    }

    /// Waits for the next line and parses it.
    pub fn seen(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Waits for the line that names the peer's port on 127.0.0.1.
    pub fn port(&mut self) -> u16 {
        self.seen()["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port")
    }

    /// Writes a line.
    pub fn tell(&mut self, line: impl Display) {
        writeln!(self.child.stdin.as_mut().expect("its input"), "{line}").expect("it reads");
    }

    /// Writes a line and waits for the answer.
    pub fn ask(&mut self, question: impl Display) -> Value {
        self.tell(question);
        self.seen()
    }

    /// Closes the peer's input, at which it ends, and waits for that.
    pub fn stop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        self.stop();
    }
}
