//! Restarts PostgreSQL under a running server, as after a power cut.

use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use crate::ledger::Ledger;
use crate::load::Load;
use crate::seed;
use crate::server::{Install, now};
use crate::sink::Sink;
use crate::verify::Case;
use crate::watch::Watch;

/// A private server. Stops when dropped.
#[derive(Debug)]
struct Cluster {
    state: PathBuf,
    url: String,
    programs: PathBuf,
}

impl Cluster {
    /// Starts a server; `None` with a notice if PostgreSQL is not installed.
    fn start(folder: &Path) -> Option<Self> {
        let state = folder.join("postgres");
        let Some(programs) = script(&state, "bindir") else {
            eprintln!("SKIPPED: PostgreSQL is not installed");
            return None;
        };
        let url = script(&state, "start").expect("PostgreSQL starts");
        Some(Self { state, url, programs: programs.into() })
    }

    /// Kills all processes of the server and starts it again; it recovers from its log.
    fn restart(&self) {
        let state = std::fs::read_to_string(&self.state).expect("its state");
        let data = Path::new(state.lines().next().expect("its folder")).join("data");
        let owner = std::fs::metadata(&data).expect("its data");
        let mut command = Command::new(self.programs.join("pg_ctl"));
        command
            .args(["restart", "--silent", "--wait", "--mode=immediate", "--pgdata"])
            .arg(&data)
            .arg("--log")
            .arg(data.with_file_name("log"));
        let status = command.uid(owner.uid()).gid(owner.gid()).current_dir("/").status().expect("pg_ctl runs");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        script(&self.state, "stop");
    }
}

fn script(state: &Path, action: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres.sh");
    let mut command = Command::new(path);
    command.arg(action).env("NUNCIO_PG_STATE", state).env("NUNCIO_PG_OWNER", std::process::id().to_string());
    let output = command.output().expect("the script runs");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute; ./test runs it"]
async fn heavy_postgres_restart() {
    let folder = TempDir::with_prefix("nuncio-restart-").expect("a temporary folder");
    let Some(cluster) = Cluster::start(folder.path()) else { return };
    let (seed, since) = (seed(), now());
    let install = Install { data: folder.path().join("data"), database: cluster.url.clone() };
    let sink = Sink::start().await;
    let keys = install.keys().await;
    install.connect_mail(sink.address).await;
    let ledger = Arc::new(Ledger::new(folder.path()));
    let server = install.start(&[]).await;
    let mut load = Load::start(&keys, &ledger, seed);
    let mut watch = Watch::prepare(server.address, &keys).await;
    load.serve(Some(server.address));
    for _ in 0..3 {
        load.every(|seen| seen.accepted >= 20).await;
        watch.send(server.address, &keys).await;
        tokio::task::block_in_place(|| cluster.restart());
    }
    load.every(|seen| seen.accepted >= 20).await;
    load.finish().await;
    let case = Case { server: server.address, install: &install, keys: &keys, ledger: &ledger, sink: &sink, since, ends: &[] };
    watch.reaches_everybody(&case).await;
    case.verify().await;
    watch.everything_is_told(&case).await;
}
