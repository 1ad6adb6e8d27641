use std::time::Instant;

use nuncio_domain::id::Id as _;
use nuncio_domain::message::NodeId;
use nuncio_domain::{AddressId, AddressKind, Recipient};
use nuncio_domain::{TenantId, Timestamp};
use nuncio_store::{DeliveryLog, Erasure, Store as _};
use sqlx::sqlite::SqlitePoolOptions;

use super::super::{SqliteStore, options};
use super::*;

/// A database with a log of more than this many frames, and its writer.
fn database(frames: i64) -> (tempfile::TempDir, std::path::PathBuf, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let writer = Connection::open(&path).unwrap();
    writer.busy_timeout(BUSY).unwrap();
    writer.execute_batch("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE a (b)").unwrap();
    writer.execute("INSERT INTO a VALUES (zeroblob(?1))", [frames * 4_096]).unwrap();
    (dir, path, writer)
}

/// Readers of it, all of them open.
async fn readers(path: &Path) -> SqlitePool {
    let readers = SqlitePoolOptions::new().max_connections(READERS).connect_with(options(path)).await.unwrap();
    let all = futures::future::join_all((0..READERS).map(|_| readers.acquire())).await;
    assert!(all.iter().all(Result::is_ok));
    readers
}

/// Frames in the log.
fn log(conn: &Connection) -> i64 {
    checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)").unwrap().0
}

#[test]
fn the_writer_waits_for_no_reader() {
    let (_dir, path, writer) = database(10);
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT b FROM a").unwrap();
    let checkpointer = Checkpointer::default();
    checkpointer.shared.restart.store(true, Ordering::Release);
    let began = Instant::now();
    checkpointer.after_commit(&writer);
    assert!(began.elapsed() < BUSY, "{:?}", began.elapsed());
    // It still waits for the lock of another process.
    assert_eq!(writer.query_row("PRAGMA busy_timeout", [], |row| row.get::<_, i64>(0)).unwrap(), BUSY.as_millis() as i64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_large_log_restarts_when_the_reads_under_way_have_ended() {
    let (_dir, path, writer) = database(2 * START);
    let readers = readers(&path).await;
    let others = Others { readers: readers.clone(), turn: Arc::default(), runtime: Handle::current() };
    let (conn, file) = (Connection::open(&path).unwrap(), DatabaseFile::open(&path).unwrap());
    let mut read = readers.begin().await.unwrap();
    sqlx::query("SELECT b FROM a").fetch_all(&mut *read).await.unwrap();
    // As in the server, the thread is none of the runtime's. On a slow machine it may have to try again.
    let restarting = std::thread::spawn(move || (0..5).any(|_| restart_alone(&conn, &file, &Commits::default(), &others)));
    // It has taken the others, and waits for this one.
    let all_taken = async {
        while readers.num_idle() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), all_taken).await.expect("it takes the readers");
    read.commit().await.unwrap();
    let restarted = tokio::task::spawn_blocking(|| restarting.join()).await.unwrap().expect("it gives the readers back");
    assert!(restarted);
    writer.execute("INSERT INTO a VALUES (1)", []).unwrap();
    assert!(log(&writer) < START, "it begins anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_read_that_takes_long_keeps_the_others_back_only_once() {
    let (_dir, path, writer) = database(1);
    let readers = readers(&path).await;
    let others = Others { readers: readers.clone(), turn: Arc::default(), runtime: Handle::current() };
    let mut read = readers.begin().await.unwrap();
    sqlx::query("SELECT COUNT(*) FROM a").fetch_all(&mut *read).await.unwrap();
    // What was written since then cannot be copied while it reads.
    writer.execute("INSERT INTO a VALUES (zeroblob(?1))", [(LARGE + START) * 4_096]).unwrap();
    let mut checkpointer = Checkpointer::start(&path, Arc::new(DatabaseFile::open(&path).unwrap()), others).unwrap();
    let ask = |checkpointer: &Checkpointer| (0..EVERY).for_each(|_| checkpointer.after_commit(&writer));
    let kept_back = async {
        while readers.num_idle() > 0 {
            ask(&checkpointer);
            tokio::task::yield_now().await;
        }
        while readers.num_idle() == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(60), kept_back).await.expect("it takes the readers and gives them back");
    ask(&checkpointer);
    while *checkpointer.shared.wanted.lock() {
        tokio::task::yield_now().await;
    }
    let stopping = tokio::task::spawn_blocking(move || checkpointer.stop());
    while !stopping.is_finished() {
        assert!(readers.num_idle() > 0, "a reader for who wants one");
        tokio::task::yield_now().await;
    }
    drop(read);
}

#[tokio::test]
async fn a_file_that_was_replaced_takes_no_more_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.begin().await.unwrap().commit().await.unwrap();
    std::fs::copy(&path, dir.path().join("b.db")).unwrap();
    std::fs::rename(dir.path().join("b.db"), &path).unwrap();
    let refused = store.begin().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("was replaced or deleted"), "{refused}");
    let log = DeliveryLog { tenant: TenantId(1), deliveries: Vec::new(), read: None, fence: 0 };
    let refused = store.log_deliveries(log).await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("was replaced or deleted"), "nor through the writer: {refused}");
}

/// Heartbeats, inbound messages and imports are written without the writer, which may have nothing to do for days.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn commits_outside_the_writer_keep_the_log_small() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let log = dir.path().join("a.db-wal");
    let frames = || std::fs::metadata(&log).map_or(0, |log| log.len() / 4_120);
    let mut commits = 0;
    while commits < 1_000 || frames() * 2 > commits {
        assert!(commits < 20_000, "{commits} commits, {} frames", frames());
        let mut tx = store.begin().await.unwrap();
        tx.insert_node(NodeId(commits as i64), Timestamp::default()).await.unwrap();
        tx.commit().await.unwrap();
        commits += 1;
    }
    store.close().await;
}

/// A log that restarts keeps its old pages behind its new end, until it grows as large again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_erased_leaves_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let log = || std::fs::read(dir.path().join("a.db-wal")).unwrap();
    let has_text = || log().windows(8).any(|bytes| bytes == b"walproof");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA secure_delete = ON; CREATE TABLE a (b); INSERT INTO a VALUES ('walproof'); DELETE FROM a").unwrap();
    assert!(has_text());
    let recipient = Recipient { kind: AddressKind::Phone, identifier: "+34600000000".to_owned() };
    let erasure = Erasure { tenant: TenantId(1), address: AddressId::from_uuid(uuid::Uuid::nil()), recipient };
    let mut commits = 0;
    while has_text() {
        assert!(commits < 20_000);
        let mut tx = store.begin().await.unwrap();
        if commits == 0 {
            tx.delete_erasure(&erasure).await.unwrap();
        }
        tx.insert_node(NodeId(commits), Timestamp::default()).await.unwrap();
        tx.commit().await.unwrap();
        commits += 1;
    }
    assert!(log().len() < START as usize * 4_120, "no other commit has overwritten it");
    store.close().await;
}
