//! A cancel stops a broadcast within a second, however much of it is in flight.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use nuncio_domain::Environment;
use nuncio_testkit::{Backend, Database};
use serde_json::json;
use tempfile::TempDir;

use crate::http::Http;
use crate::server::Install;
use crate::sink::{BROADCAST, Sink};

const RECIPIENTS: usize = 20_000;
/// Emails accepted by the relay before the cancel.
const BEFORE: usize = 300;
/// Time after the response to the cancel.
const STOPS: Duration = Duration::from_secs(1);
const SETTLES: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

// holds: broadcasts.cancel.at_once
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute; ./test runs it"]
async fn heavy_cancel_sqlite() {
    stops_at_once(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes half a minute; ./test runs it"]
async fn heavy_cancel_postgres() {
    if Backend::all().contains(&Backend::Postgres) {
        stops_at_once(Backend::Postgres).await;
    }
}

async fn stops_at_once(backend: Backend) {
    let folder = TempDir::with_prefix("nuncio-cancel-").expect("a temporary folder");
    let database = Database::make(backend).await;
    let install = Install { data: folder.path().join("data"), database: database.url() };
    let sink = Sink::start().await;
    let keys = install.keys().await;
    install.connect_mail(sink.address).await;
    let server = install.start(&[]).await;
    let key = keys.of(Environment::Live);
    let mut http = Http::connect(server.address).await.expect("the server listens");
    let draft = json!({"name": "x", "channel": "email", "emailSubject": BROADCAST, "text": "Hello from Acme"});
    let made = http.ask(key, "POST /v1/broadcasts", &draft).await.expect("an answer");
    let path = format!("/v1/broadcasts/{}", made.json["broadcast"]["id"].as_str().expect("an id"));
    let mut file = "email\n".to_owned();
    for n in 0..RECIPIENTS {
        let _ = writeln!(file, "user{n}@example.org");
    }
    let added = http.post_csv(key, &format!("{path}/contacts/import"), &file).await.expect("an answer");
    assert_eq!(added.json["added"], RECIPIENTS, "{added:?}");
    http.ask(key, &format!("POST {path}/send"), &json!({})).await.expect("an answer");
    let begun = Instant::now();
    while sink.taken().len() < BEFORE {
        assert!(begun.elapsed() < PATIENCE, "the broadcast does not begin");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let cancelled = http.ask(key, &format!("POST {path}/cancel"), &json!({})).await.expect("an answer");
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let at_answer = sink.taken().len();
    tokio::time::sleep(STOPS).await;
    let stopped = sink.taken();
    tokio::time::sleep(SETTLES).await;
    assert_eq!(sink.taken().len(), stopped.len(), "mails went out more than a second after the cancel");
    assert!(stopped.len() < RECIPIENTS / 2, "nothing was left to cancel: {}", stopped.len());
    eprintln!("{at_answer} mails when the cancel was answered, {} in the end", stopped.len());
    let begun = Instant::now();
    loop {
        let shown = http.get(key, &path).await.expect("an answer").json["broadcast"].clone();
        let count = |name: &str| shown[name].as_u64().expect("a count") as usize;
        let (open, done) = (count("pendingCount") + count("sendingCount"), count("deliveredCount"));
        if open == 0 {
            assert_eq!((done, count("skippedCount")), (stopped.len(), RECIPIENTS - stopped.len()), "{shown}");
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{shown}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let twice: HashMap<_, _> = stopped.into_iter().filter(|(_, times)| *times != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
    server.kill().await;
}
