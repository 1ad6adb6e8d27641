//! Provides PostgreSQL: the server in `NUNCIO_BENCH_PG` (a superuser's URL), or a private cluster that stops with this program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::proc;
use crate::shim::Shim;

#[derive(Debug)]
pub(crate) struct Cluster {
    url: String,
    psql: PathBuf,
    private: Option<Private>,
}

/// A private cluster, made by `scripts/postgres.sh`.
#[derive(Debug)]
struct Private {
    script: PathBuf,
    state: PathBuf,
    /// Directory of the cluster: `data/` and `log`.
    dir: PathBuf,
    port: String,
    programs: PathBuf,
}

impl Cluster {
    /// Starts PostgreSQL. `root` is the checkout; `work` holds the state of a private cluster.
    pub(crate) fn start(root: &Path, work: &Path) -> Result<Self> {
        if let Ok(url) = std::env::var("NUNCIO_BENCH_PG") {
            return Ok(Self { url, psql: "psql".into(), private: None });
        }
        let script = root.join("scripts/postgres.sh");
        let state = work.join("postgres");
        let url = call(&script, &state, "start")?;
        let text = fs::read_to_string(&state).context("the cluster's state file")?;
        let (dir, port) = text.trim().split_once('\n').context("an odd state file")?;
        let programs = PathBuf::from(call(&script, &state, "bindir")?);
        let psql = programs.join("psql");
        let private = Private { script, state, dir: dir.into(), port: port.into(), programs };
        Ok(Self { url, psql, private: Some(private) })
    }

    /// Creates an empty database; returns its URL.
    pub(crate) fn create(&self, name: &str) -> Result<String> {
        self.query(&format!("CREATE DATABASE {name}"))?;
        Ok(self.url(name))
    }

    /// Returns the URL of a database.
    pub(crate) fn url(&self, name: &str) -> String {
        let (server, options) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let authority = server.find("://").map_or(0, |at| at + 3);
        let end = server[authority..].find('/').map_or(server.len(), |at| authority + at);
        let question = if options.is_empty() { "" } else { "?" };
        format!("{}/{name}{question}{options}", &server[..end])
    }

    pub(crate) fn drop_database(&self, name: &str) -> Result<()> {
        self.query(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).map(drop)
    }

    pub(crate) fn version(&self) -> Result<String> {
        self.query("SHOW server_version")
    }

    /// Returns the data directory of a private cluster.
    pub(crate) fn dir(&self) -> Option<&Path> {
        self.private.as_ref().map(|private| &*private.dir)
    }

    /// Returns the CPU seconds of all its processes, if they run on this machine.
    pub(crate) fn cpu(&self) -> Option<f64> {
        let pid = match &self.private {
            Some(private) => fs::read_to_string(private.dir.join("data/postmaster.pid")).ok()?,
            None => self.query("SELECT pg_read_file('postmaster.pid')").ok()?,
        };
        let pid = pid.lines().next()?.trim().parse().ok()?;
        (proc::name(pid)?.starts_with("postgres")).then(|| proc::cpu_with_children(pid))?
    }

    /// Restarts the cluster, with or without a delay of each sync.
    ///
    /// # Errors
    /// Also fails if the cluster is not private.
    pub(crate) fn restart(&self, delay: Option<&Shim>) -> Result<()> {
        let private = self.private.as_ref().context("a foreign PostgreSQL is not restarted")?;
        private.pg_ctl(None, &["stop", "--mode=fast"])?;
        let port = format!("--options=-p {}", private.port);
        let log = format!("--log={}", private.log().display());
        private.pg_ctl(delay, &["start", &port, &log])
    }

    fn query(&self, sql: &str) -> Result<String> {
        let output = Command::new(&self.psql)
            .args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet"])
            .args(["--set=ON_ERROR_STOP=1", "--command", sql, &self.url])
            .output()
            .with_context(|| format!("cannot run {}", self.psql.display()))?;
        if !output.status.success() {
            bail!("{sql}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

impl Private {
    fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Runs `pg_ctl` as the owner of the data: PostgreSQL refuses to run as root.
    fn pg_ctl(&self, delay: Option<&Shim>, args: &[&str]) -> Result<()> {
        use std::os::unix::fs::MetadataExt as _;
        let data = self.dir.join("data");
        let owner = fs::metadata(&data)?;
        let ours = fs::metadata("/proc/self")?.uid() == owner.uid();
        let mut command = Command::new(if ours { "env" } else { "setpriv" });
        if !ours {
            command.arg(format!("--reuid={}", owner.uid())).arg(format!("--regid={}", owner.gid()));
            command.args(["--clear-groups", "env"]);
        }
        command.args(["-i", "PATH=/usr/bin:/bin", "LC_ALL=C"]);
        for (name, value) in delay.iter().flat_map(|shim| shim.environment()) {
            command.arg(format!("{name}={value}"));
        }
        let status = command
            .arg(self.programs.join("pg_ctl"))
            .args(args)
            .args(["--silent", "--wait", "--timeout=120"])
            .arg(format!("--pgdata={}", data.display()))
            .current_dir(&self.dir)
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.success(), "pg_ctl {args:?} failed, see {}", self.log().display());
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let Some(private) = &self.private else { return };
        // Without a state file, the script assumes that the cluster has stopped.
        let known = private.state.exists();
        match call(&private.script, &private.state, "stop") {
            Ok(_) if known => {}
            Ok(_) => eprintln!("the private PostgreSQL in {} was left", private.dir.display()),
            Err(e) => eprintln!("the private PostgreSQL was not stopped: {e:#}"),
        }
    }
}

fn call(script: &Path, state: &Path, verb: &str) -> Result<String> {
    let output = Command::new(script)
        .arg(verb)
        .env("NUNCIO_PG_STATE", state)
        .env("NUNCIO_PG_OWNER", std::process::id().to_string())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", script.display()))?;
    ensure!(output.status.success(), "{} {verb} failed", script.display());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
