//! Power cuts, full disks and failing disks, simulated by `shim/power_cut.c`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::Timestamp;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use tempfile::TempDir;

use crate::ledger::Ledger;
use crate::load::Load;
use crate::seed;
use crate::server::{Install, Keys, Server, now};
use crate::sink::Sink;
use crate::verify::Case;
use crate::watch::Watch;

const ROUNDS: u64 = 5;
/// Exit code of a server whose disk failed during a commit.
const DISK_FAILED: i32 = 70;

/// An installation with SQLite, and the state of its disk after a power cut.
#[derive(Debug)]
struct Disk {
    _folder: TempDir,
    install: Install,
    keys: Keys,
    sink: Sink,
    ledger: Arc<Ledger>,
    since: Timestamp,
}

impl Disk {
    /// Creates an installation; everything is synced.
    async fn new() -> Self {
        let folder = TempDir::with_prefix("nuncio-disk-").expect("a temporary folder");
        // The library compares paths with those from the kernel.
        let root = folder.path().canonicalize().expect("a path");
        let install = Install { data: root.join("data"), database: String::new() };
        let (sink, since) = (Sink::start().await, now());
        let keys = install.keys().await;
        install.connect_mail(sink.address).await;
        copy(&install.data, &root.join("shadow"));
        std::fs::write(root.join("control"), "-").expect("a control file");
        compile(&root.join("power_cut.so"));
        let ledger = Arc::new(Ledger::new(&root));
        Self { _folder: folder, install, keys, sink, ledger, since }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.install.data.with_file_name(name)
    }

    /// Starts the server with the library preloaded.
    async fn start(&self, extra: &[(&str, &Path)]) -> Server {
        let [library, shadow, control] = ["power_cut.so", "shadow", "control"].map(|name| self.file(name));
        let mut environment: Vec<(&str, &Path)> = vec![
            ("LD_PRELOAD", &library),
            ("POWER_CUT_DIR", &self.install.data),
            ("POWER_CUT_SHADOW", &shadow),
            ("POWER_CUT_CONTROL", &control),
        ];
        environment.extend(extra);
        self.install.start(&environment).await
    }

    /// Makes writes (`F`), syncs (`E`), or syncs of all files except the log (`D`) fail from now on; `-` restores them.
    fn fails(&self, how: &str) {
        // In place: the server has mapped the file, and must not find it empty.
        let mut control = std::fs::OpenOptions::new().write(true).open(self.file("control")).expect("the control file");
        control.write_all(how.as_bytes()).expect("the control file is written");
    }

    /// Starts the server on the state after the power cut.
    async fn start_on_what_is_left(&self) -> (Install, Server) {
        let install = Install { data: self.file("shadow"), database: String::new() };
        let server = install.start(&[]).await;
        (install, server)
    }

    fn case<'a>(&'a self, server: &Server, install: &'a Install, ends: &'a [Timestamp]) -> Case<'a> {
        let Self { keys, ledger, sink, since, .. } = self;
        Case { server: server.address, install, keys, ledger, sink, since: *since, ends }
    }

    /// Restores power: starts the server on the state of the disk, and continues the clients.
    async fn power_returns(&self, load: Load, end: Timestamp, mut watch: Option<Watch>) {
        let (install, server) = self.start_on_what_is_left().await;
        load.serve(Some(server.address));
        load.finish().await;
        let ends = [end];
        let case = self.case(&server, &install, &ends);
        if let Some(watch) = &mut watch {
            watch.send(server.address, &self.keys).await;
            watch.reaches_everybody(&case).await;
        }
        case.verify().await;
        if let Some(watch) = &watch {
            watch.everything_is_told(&case).await;
        }
    }
}

fn compile(library: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim/power_cut.c");
    let mut command = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    command.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(library).arg(source).args(["-ldl", "-pthread"]);
    let output = command.output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Copies the files in a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a new folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("a copy");
        }
    }
}

/// Runs under load, with a broadcast, until the power is cut at a time derived from the seed.
async fn cut(disk: &Disk, seed: u64, extra: &[(&str, &Path)]) -> (Load, Timestamp, Watch) {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let mut load = Load::start(&disk.keys, &disk.ledger, seed);
    let server = disk.start(extra).await;
    let mut watch = Watch::prepare(server.address, &disk.keys).await;
    load.serve(Some(server.address));
    load.every(|seen| seen.accepted >= 3).await;
    watch.send(server.address, &disk.keys).await;
    tokio::time::sleep(Duration::from_millis(random.next_u64() % 1_500)).await;
    let end = server.kill().await;
    load.serve(None);
    (load, end, watch)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute; ./test runs it"]
async fn heavy_power_cut() {
    for round in 0..ROUNDS {
        let seed = seed().wrapping_add(round);
        let disk = Disk::new().await;
        // In every other round, the disk also writes some unsynced data, in any order.
        let (leak, number) = (PathBuf::from(if round % 2 == 0 { "0" } else { "30" }), PathBuf::from(seed.to_string()));
        let (load, end, watch) = cut(&disk, seed, &[("POWER_CUT_LEAK", &leak), ("POWER_CUT_SEED", &number)]).await;
        disk.power_returns(load, end, Some(watch)).await;
    }
}

/// The control: on a disk that ignores syncs, messages must be lost, or the test above would detect nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes some seconds; ./test runs it"]
async fn heavy_power_cut_is_seen_on_a_disk_that_lies() {
    let disk = Disk::new().await;
    let (_load, end, _watch) = cut(&disk, seed(), &[("POWER_CUT_IGNORE", Path::new("1"))]).await;
    let (install, server) = disk.start_on_what_is_left().await;
    let lost = disk.case(&server, &install, &[end]).lost().await.len();
    assert!(lost > 0, "nothing was synced, and nothing was lost");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes some seconds; ./test runs it"]
async fn heavy_disk_full() {
    let disk = Disk::new().await;
    let server = disk.start(&[]).await;
    let mut load = Load::start(&disk.keys, &disk.ledger, seed());
    load.serve(Some(server.address));
    load.every(|seen| seen.accepted >= 10).await;
    disk.fails("F");
    load.every(|seen| seen.refused >= 1).await;
    let accepted = load.accepted();
    load.every(|seen| seen.refused >= 20).await;
    assert_eq!(load.accepted(), accepted, "accepted on a full disk");
    let failures = server.logged("failed to write a batch");
    assert!((1..20).contains(&failures), "{failures} lines, fewer than failures");
    disk.fails("-");
    load.every(|seen| seen.accepted >= 10).await;
    load.finish().await;
    disk.case(&server, &disk.install, &[]).verify().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes some seconds; ./test runs it"]
async fn heavy_disk_fails_at_commits() {
    let disk = Disk::new().await;
    let mut server = disk.start(&[]).await;
    let mut load = Load::start(&disk.keys, &disk.ledger, seed());
    load.serve(Some(server.address));
    load.every(|seen| seen.accepted >= 10).await;
    disk.fails("E");
    assert_eq!(server.ended(Duration::from_secs(20)).await, Some(DISK_FAILED));
    let end = now();
    load.serve(None);
    disk.power_returns(load, end, None).await;
}

/// A checkpoint whose sync fails loses copied frames: only a restart from the log recovers them.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes some seconds; ./test runs it"]
async fn heavy_disk_fails_at_checkpoints() {
    let disk = Disk::new().await;
    let mut server = disk.start(&[]).await;
    let mut load = Load::start(&disk.keys, &disk.ledger, seed());
    load.serve(Some(server.address));
    load.every(|seen| seen.accepted >= 100).await;
    disk.fails("D");
    assert_eq!(server.ended(Duration::from_secs(30)).await, Some(DISK_FAILED));
    let end = now();
    load.serve(None);
    disk.power_returns(load, end, None).await;
}
