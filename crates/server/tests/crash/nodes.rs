//! Two nodes on one PostgreSQL database under load: one is paused while it sends a broadcast, until it is declared dead, then continues; the
//! other is killed.

use std::sync::Arc;
use std::time::Duration;

use nuncio_testkit::{Backend, Database};
use tempfile::TempDir;

use crate::ledger::Ledger;
use crate::load::Load;
use crate::seed;
use crate::server::{Install, now};
use crate::sink::Sink;
use crate::verify::Case;
use crate::watch::Watch;

/// Longer than until a node is declared dead.
const PAUSE: Duration = Duration::from_secs(13);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute; ./test runs it"]
async fn heavy_two_nodes_paused_and_killed() {
    if !Backend::all().contains(&Backend::Postgres) {
        return;
    }
    let (seed, since) = (seed(), now());
    let folder = TempDir::with_prefix("nuncio-nodes-").expect("a temporary folder");
    let database = Database::make(Backend::Postgres).await;
    let install = |name: &str| Install { data: folder.path().join(name), database: database.url() };
    let (first, second) = (install("first"), install("second"));
    let sink = Sink::start().await;
    let keys = first.keys().await;
    first.connect_mail(sink.address).await;
    // Nodes of one database share the sealing key.
    std::fs::create_dir_all(&second.data).expect("a folder");
    std::fs::copy(first.data.join("encryption.keys"), second.data.join("encryption.keys")).expect("the key file is copied");
    let ledger = Arc::new(Ledger::new(folder.path()));
    let (mut at_first, at_second) = (Load::start(&keys, &ledger, seed), Load::start(&keys, &ledger, seed ^ 1));

    let (survivor, victim) = (first.start(&[]).await, second.start(&[]).await);
    let mut watch = Watch::prepare(victim.address, &keys).await;
    at_first.serve(Some(survivor.address));
    at_second.serve(Some(victim.address));
    tokio::time::sleep(Duration::from_secs(2)).await;
    watch.send(victim.address, &keys).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    victim.signal("STOP");
    let paused = now(); // not before: an attempt that started in between would be counted as one of the survivor
    tokio::time::sleep(PAUSE).await;
    at_first.every(|seen| seen.accepted >= 20).await;
    victim.signal("CONT");
    at_first.every(|seen| seen.accepted >= 20).await;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let killed = survivor.kill().await;
    at_first.serve(Some(victim.address));
    at_first.every(|seen| seen.accepted >= 20).await;
    at_first.finish().await;
    at_second.finish().await;
    let ends = [paused, killed];
    let case = Case { server: victim.address, install: &second, keys: &keys, ledger: &ledger, sink: &sink, since, ends: &ends };
    watch.reaches_everybody(&case).await;
    case.verify().await;
    watch.everything_is_told(&case).await;
}
