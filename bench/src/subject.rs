//! Runs the server under test: one process on fresh data, driven through its command line and its HTTP API.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::http::Conn;
use crate::load::Target;
use crate::postgres::Cluster;
use crate::proc::{self, wait_until};
use crate::shim::Shim;
use crate::workload::{FROM, LOGIN};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
    /// Kannel's: a file for each message.
    #[value(skip)]
    Spool,
    /// Kannel's: memory.
    #[value(skip)]
    Nothing,
}

impl Backend {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Spool => "Kannel's spool",
            Self::Nothing => "none (Kannel)",
        }
    }
}

/// The environment to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Environment {
    /// The sandbox, with the built-in simulator.
    Test,
    /// Live, with an SMTP server at this address.
    Smtp(SocketAddr),
    /// Live, with an SMSC at `addr`.
    Smpp {
        addr: SocketAddr,
        /// Sessions, and unanswered messages per session.
        binds: usize,
        window: usize,
        receipts: bool,
    },
}

/// Name of a second project.
const NEIGHBOUR: &str = "neighbour";

/// How to start a server.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) program: &'a Path,
    /// Parent of a new data directory.
    pub(crate) work: &'a Path,
    /// PostgreSQL; `None` for SQLite.
    pub(crate) cluster: Option<&'a Cluster>,
    pub(crate) environment: Environment,
    /// Preloaded into the server.
    pub(crate) delay: Option<&'a Shim>,
}

#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) target: Target,
    /// RFC 3339, before its first message.
    pub(crate) since: String,
    pub(crate) data: TempDir,
    child: Child,
    pid: u32,
    database: Option<(&'a Cluster, String)>,
}

/// The counters of `/metrics` that runs need.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    pub(crate) accepted: f64,
    pub(crate) delivered: f64,
    pub(crate) sent: f64,
    pub(crate) failed: f64,
}

impl<'a> Subject<'a> {
    /// Starts a server on fresh data and waits until it is ready.
    pub(crate) async fn start(setup: Setup<'a>) -> Result<Self> {
        let data = tempfile::Builder::new().prefix("data-").tempdir_in(setup.work)?;
        let database = setup.cluster.map(|cluster| create_database(cluster, &data)).transpose()?;
        let cli = Cli { program: setup.program, data: data.path(), database: database.as_ref().map(|(_, _, url)| &**url) };
        let key = cli.prepare(setup.environment).await?;
        let addr = free_port()?;
        let mut serve = cli.command(&["serve"]);
        serve.args(["--listen", &addr.to_string()]);
        serve.env("NUNCIO__API__RATE_LIMIT__PER_MINUTE", "0");
        // The webhook endpoint is on this machine.
        serve.env("NUNCIO__NET__ALLOW_HTTP", "true").env("NUNCIO__NET__ALLOW_LOOPBACK", "true");
        serve.envs(setup.delay.into_iter().flat_map(Shim::environment));
        let log = File::create(data.path().join("bench.log"))?;
        serve.stdout(log.try_clone()?).stderr(log).stdin(Stdio::null()).kill_on_drop(true);
        let child = serve.spawn().with_context(|| format!("{}", setup.program.display()))?;
        let pid = child.id().context("the server ended at once")?;
        let since = proc::now() - chrono::TimeDelta::minutes(1);
        let subject = Self {
            target: Target { addr, key },
            since: since.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            data,
            child,
            pid,
            database: database.map(|(cluster, name, _)| (cluster, name)),
        };
        subject.ready().await?;
        Ok(subject)
    }

    /// Creates a second project with its own SMSC; returns a key to its live environment.
    pub(crate) async fn neighbour(&self, program: &Path, addr: SocketAddr) -> Result<String> {
        let url = self.database.as_ref().map(|(cluster, name)| cluster.url(name));
        let cli = Cli { program, data: self.data.path(), database: url.as_deref() };
        cli.run(&["projects", "create"], &[NEIGHBOUR]).await?;
        cli.connect_smpp(Some(NEIGHBOUR), addr, 1, 10, false).await?;
        cli.key(Some(NEIGHBOUR), "live").await
    }

    async fn ready(&self) -> Result<()> {
        let up = wait_until(Duration::from_secs(60), Duration::from_millis(20), async || {
            ensure!(proc::cpu(self.pid).is_some(), "the server ended:\n{}", self.log_tail());
            let Ok(mut conn) = Conn::open(self.target.addr).await else {
                return Ok(false);
            };
            Ok(conn.get("/readyz", "").await.is_ok_and(|reply| reply.status == 200))
        });
        ensure!(up.await?, "the server is not ready after a minute:\n{}", self.log_tail());
        Ok(())
    }

    pub(crate) fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.data.path().join("bench.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Returns the resident memory in MB: now, and its peak.
    pub(crate) fn memory_mb(&self) -> Result<(f64, f64)> {
        proc::memory_mb(self.pid).with_context(|| format!("the server died:\n{}", self.log_tail()))
    }

    /// Returns the CPU seconds so far of the server and of its database's processes, `None` if those are on another machine.
    pub(crate) fn cpu(&self) -> Result<(f64, Option<f64>)> {
        let own = proc::cpu(self.pid).context("the server died")?;
        let database = self.database.as_ref().map_or(Some(0.0), |(cluster, _)| cluster.cpu());
        Ok((own, database))
    }

    pub(crate) async fn counters(&self) -> Result<Counters> {
        let opened = Conn::open(self.target.addr).await;
        let mut conn = opened.with_context(|| format!("the server no longer accepts connections:\n{}", self.log_tail()))?;
        let reply = conn.get("/metrics", "").await?;
        ensure!(reply.status == 200, "GET /metrics: {}", reply.status);
        Ok(Counters::parse(&String::from_utf8_lossy(reply.body)))
    }

    /// Stops the server gracefully and deletes its data.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let asked = Command::new("kill").args(["-TERM", &self.pid.to_string()]).status().await?;
        ensure!(asked.success(), "the server was gone before it was stopped:\n{}", self.log_tail());
        let ended = tokio::time::timeout(Duration::from_secs(60), self.child.wait()).await;
        let status = match ended {
            Ok(status) => Some(status?),
            Err(_) => {
                self.child.kill().await?;
                None
            }
        };
        if let Some((cluster, name)) = &self.database {
            cluster.drop_database(name)?;
        }
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the server ended with {status}:\n{}", self.log_tail()),
            None => bail!("the server did not end within a minute:\n{}", self.log_tail()),
        }
    }
}

impl Counters {
    fn parse(text: &str) -> Self {
        let settled = |status: &str| {
            let label = format!("status=\"{status}\"");
            sum(text, "nuncio_messages_settled_total", &label)
        };
        Self {
            accepted: sum(text, "nuncio_messages_accepted_total", ""),
            delivered: settled("delivered"),
            sent: settled("sent"),
            failed: settled("failed"),
        }
    }
}

/// Returns the sum of a metric's samples whose labels contain `label`.
fn sum(text: &str, name: &str, label: &str) -> f64 {
    text.lines()
        .filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let (labels, value) = rest.rsplit_once(' ')?;
            let whole_name = labels.is_empty() || labels.starts_with('{');
            (whole_name && labels.contains(label)).then(|| value.parse::<f64>().ok())?
        })
        .sum()
}

/// Creates a database, named after the data directory.
fn create_database<'a>(cluster: &'a Cluster, data: &TempDir) -> Result<(&'a Cluster, String, String)> {
    let directory = data.path().file_name().unwrap_or_default().to_string_lossy();
    let suffix: String = directory.bytes().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("bench_{suffix}");
    let url = cluster.create(&name)?;
    Ok((cluster, name, url))
}

pub(crate) fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

struct Cli<'a> {
    program: &'a Path,
    data: &'a Path,
    database: Option<&'a str>,
}

impl Cli<'_> {
    fn command(&self, verb: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command.args(verb).arg("--data").arg(self.data);
        if let Some(url) = self.database {
            command.args(["--database", url]);
        }
        command
    }

    async fn run(&self, verb: &[&str], args: &[&str]) -> Result<Vec<u8>> {
        let output = self.command(verb).args(args).output().await;
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        if !output.status.success() {
            bail!("nuncio {verb:?} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output.stdout)
    }

    /// Creates an API key for an environment of a project; `None` means the first project.
    async fn key(&self, project: Option<&str>, env: &str) -> Result<String> {
        let mut args = vec!["--name", "bench", "--env", env, "--json"];
        args.extend(project.into_iter().flat_map(|project| ["--project", project]));
        let output = self.run(&["keys", "create"], &args).await?;
        let created: Value = serde_json::from_slice(&output).context("the JSON of a key")?;
        Ok(created["key"].as_str().context("no key in the JSON of a key")?.to_owned())
    }

    /// Sets up the environment; returns an API key.
    async fn prepare(&self, environment: Environment) -> Result<String> {
        let env = match environment {
            Environment::Test => "test",
            Environment::Smtp(addr) => {
                let settings = ["from=bench@example.org".to_owned(), "tls=none".to_owned()];
                self.connect(None, ["email", "smtp"], addr, &settings, &[]).await?;
                "live"
            }
            Environment::Smpp { addr, binds, window, receipts } => {
                self.connect_smpp(None, addr, binds, window, receipts).await?;
                "live"
            }
        };
        self.key(None, env).await
    }

    async fn connect_smpp(&self, project: Option<&str>, addr: SocketAddr, binds: usize, window: usize, receipts: bool) -> Result<()> {
        let receipts = if receipts { "final" } else { "none" };
        let settings = [
            format!("system_id={LOGIN}"),
            format!("from={FROM}"),
            format!("binds={binds}"),
            format!("window={window}"),
            format!("registered_delivery={receipts}"),
        ];
        self.connect(project, ["sms", "smpp"], addr, &settings, &[format!("password={LOGIN}")]).await
    }

    async fn connect(
        &self,
        project: Option<&str>,
        [channel, kind]: [&str; 2],
        addr: SocketAddr,
        settings: &[String],
        secrets: &[String],
    ) -> Result<()> {
        let place = [format!("host={}", addr.ip()), format!("port={}", addr.port())];
        let mut args = vec!["--env", "live", "--channel", channel, "--kind", kind];
        args.extend(place.iter().chain(settings).flat_map(|setting| ["--setting", setting]));
        args.extend(secrets.iter().flat_map(|secret| ["--secret", secret]));
        args.extend(project.into_iter().flat_map(|project| ["--project", project]));
        self.run(&["connections", "set"], &args).await.map(drop)
    }
}

/// Returns the version that a server program reports.
pub(crate) async fn version(program: &PathBuf) -> Result<String> {
    let output = Command::new(program).arg("--version").output().await;
    let output = output.with_context(|| format!("cannot run {}; build it first: cargo build --profile dist", program.display()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_over_labels() {
        let text = "# TYPE nuncio_messages_accepted_total counter\n\
            nuncio_messages_accepted_total 12\n\
            nuncio_messages_accepted_total_of_another 99\n\
            nuncio_messages_settled_total{status=\"delivered\",channel=\"sms\"} 4\n\
            nuncio_messages_settled_total{channel=\"email\",status=\"delivered\"} 3\n\
            nuncio_messages_settled_total{status=\"sent\"} 2\n";
        let counters = Counters::parse(text);
        let expected = Counters { accepted: 12.0, delivered: 7.0, sent: 2.0, failed: 0.0 };
        assert_eq!(counters, expected);
    }
}
