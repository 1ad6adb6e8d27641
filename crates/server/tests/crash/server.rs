//! Runs the real binary with a new data folder.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nuncio_domain::{Environment, Timestamp};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Maximum duration of a start.
const START: Duration = Duration::from_secs(30);
/// Log lines shown by a failed test.
const SHOWN: usize = 1_000;

pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64)
}

/// Storage of a server.
#[derive(Clone, Debug)]
pub(crate) struct Install {
    pub(crate) data: PathBuf,
    /// `postgres://` URL; empty for SQLite.
    pub(crate) database: String,
}

/// An API key for each environment.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    live: String,
    test: String,
}

impl Keys {
    pub(crate) fn of(&self, world: Environment) -> &str {
        match world {
            Environment::Live => &self.live,
            Environment::Test => &self.test,
        }
    }
}

impl Install {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nuncio"));
        let folder = self.data.parent().expect("a data folder lies in a folder");
        command.current_dir(folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("NUNCIO__API__RATE_LIMIT__PER_MINUTE", "0").env("NUNCIO__LOG__LEVEL", "warn");
        command.env("NUNCIO__API__RATE_LIMIT__WRONG_KEYS_PER_MINUTE", "0"); // a test tries a wrong key with every operation
        // The webhook endpoint is this test.
        command.env("NUNCIO__NET__ALLOW_HTTP", "true").env("NUNCIO__NET__ALLOW_LOOPBACK", "true");
        command.args(arguments).arg("--data").arg(&self.data);
        if !self.database.is_empty() {
            command.arg("--database").arg(&self.database);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a command; returns its JSON output.
    pub(crate) async fn run(&self, arguments: &[&str]) -> (ExitStatus, Value) {
        let output = timeout(START, self.command(arguments).arg("--json").output()).await.expect("in time").expect("it runs");
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?} answered {output:?}"));
        (output.status, json)
    }

    /// Creates a key with all permissions for each environment.
    pub(crate) async fn keys(&self) -> Keys {
        let key = async |world| {
            let (_, json) = self.run(&["keys", "create", "--name", "crash", "--env", world]).await;
            json["key"].as_str().expect("a key").to_owned()
        };
        Keys { live: key("live").await, test: key("test").await }
    }

    /// Sends live emails over this relay, with at most [`super::verify::MAIL_WINDOW`] connections.
    pub(crate) async fn connect_mail(&self, relay: SocketAddr) {
        let (port, window) = (format!("port={}", relay.port()), format!("connections={}", super::verify::MAIL_WINDOW));
        let settings = ["host=127.0.0.1", &port, "tls=none", "from=crash@example.com", &window];
        let mut arguments = vec!["connections", "set", "--channel", "email", "--kind", "smtp"];
        arguments.extend(settings.iter().flat_map(|setting| ["--setting", setting]));
        let (status, json) = self.run(&arguments).await;
        assert!(status.success(), "{json}");
    }

    /// Starts the server with these environment variables and waits until it listens.
    pub(crate) async fn start(&self, environment: &[(&str, &Path)]) -> Server {
        let mut child = self
            .command(&["serve", "--listen", "127.0.0.1:0"])
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let log = Log::default();
        let (found, address) = oneshot::channel();
        let stderr = child.stderr.take().expect("a pipe");
        tokio::spawn(log.clone().follow(stderr, found));
        let address = timeout(START, address).await.ok().and_then(Result::ok);
        let address = address.unwrap_or_else(|| panic!("the server did not start:\n{}", log.text()));
        Server { child, address, log }
    }
}

#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<VecDeque<String>>>);

impl Log {
    async fn follow(self, stderr: tokio::process::ChildStderr, found: oneshot::Sender<SocketAddr>) {
        let (mut lines, mut found) = (BufReader::new(stderr).lines(), Some(found));
        while let Ok(Some(line)) = lines.next_line().await {
            let address = line.strip_prefix("nuncio listens on http://").and_then(|text| text.parse().ok());
            if let Some((address, found)) = address.and_then(|address| Some((address, found.take()?))) {
                let _ = found.send(address);
            }
            let mut log = self.0.lock().expect("no panic");
            log.push_back(line);
            if log.len() > SHOWN {
                log.pop_front();
            }
        }
    }

    fn text(&self) -> String {
        self.0.lock().expect("no panic").iter().map(|line| format!("{line}\n")).collect()
    }
}

/// A running server. Killed when dropped; a failed test prints the end of its log.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Log,
}

impl Server {
    /// Returns how many of the last lines of its log contain `text`.
    pub(crate) fn logged(&self, text: &str) -> usize {
        self.log.text().lines().filter(|line| line.contains(text)).count()
    }

    /// Kills it, waits until it has ended, and returns the time just before.
    pub(crate) async fn kill(mut self) -> Timestamp {
        let at = now();
        assert_eq!(self.child.try_wait().expect("it can be asked"), None, "it ended by itself");
        self.child.kill().await.expect("it is killed");
        at
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().expect("it runs").to_string();
        let status = std::process::Command::new("kill").arg(format!("-{name}")).arg(id).status().expect("kill runs");
        assert!(status.success(), "{status}");
    }

    /// Returns its resident memory in MB.
    pub(crate) fn resident_mb(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().expect("it runs"))).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1024
    }

    /// Waits for it to end by itself; returns its exit code.
    pub(crate) async fn ended(&mut self, patience: Duration) -> Option<i32> {
        timeout(patience, self.child.wait()).await.ok()?.expect("it can be waited for").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let ended = self.child.try_wait();
            eprintln!("the server (ended: {ended:?}) logged at last:\n{}", self.log.text());
        }
    }
}
