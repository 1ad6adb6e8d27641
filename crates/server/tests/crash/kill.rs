//! `kill -9` under load.

use std::sync::Arc;
use std::time::Duration;

use nuncio_testkit::{Backend, Database};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use tempfile::TempDir;

use crate::import::Import;
use crate::ledger::Ledger;
use crate::load::Load;
use crate::seed;
use crate::server::{Install, now};
use crate::sink::Sink;
use crate::verify::Case;
use crate::watch::Watch;

const KILLS: usize = 8;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute; ./test runs it"]
async fn heavy_crash_sqlite() {
    killed_again_and_again(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes a minute; ./test runs it"]
async fn heavy_crash_postgres() {
    if Backend::all().contains(&Backend::Postgres) {
        killed_again_and_again(Backend::Postgres).await;
    }
}

async fn killed_again_and_again(backend: Backend) {
    let (seed, since) = (seed(), now());
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let folder = TempDir::with_prefix("nuncio-crash-").expect("a temporary folder");
    let database = Database::make(backend).await;
    let install = Install { data: folder.path().join("data"), database: database.url() };
    let sink = Sink::start().await;
    let keys = install.keys().await;
    install.connect_mail(sink.address).await;
    let server = install.start(&[]).await;
    let mut watch = Watch::prepare(server.address, &keys).await;
    let mut import = Import::prepare(server.address, &keys).await;
    let mut ends = vec![server.kill().await];
    let ledger = Arc::new(Ledger::new(folder.path()));
    let load = Load::start(&keys, &ledger, seed);
    for _ in 0..KILLS {
        let server = install.start(&[]).await;
        load.serve(Some(server.address));
        watch.send(server.address, &keys).await;
        let sending = import.send(server.address);
        tokio::time::sleep(Duration::from_millis(300 + random.next_u64() % 1_200)).await;
        ends.push(server.kill().await);
        sending.await.expect("no panic");
        load.serve(None);
    }
    let server = install.start(&[]).await;
    load.serve(Some(server.address));
    load.finish().await;
    let case = Case { server: server.address, install: &install, keys: &keys, ledger: &ledger, sink: &sink, since, ends: &ends };
    import.is_whole(&case).await;
    watch.reaches_everybody(&case).await;
    let unknown = case.verify().await;
    let counted = case.http().await.counter("nuncio_attempts_unknown_total").await.expect("a counter");
    assert!(
        Some(counted) >= unknown.last().copied(),
        "{counted} of {unknown:?}: the newest process counts at least what the last kill left"
    );
    watch.everything_is_told(&case).await;
}
