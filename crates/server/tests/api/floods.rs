//! Too many requests at once: others are still served, and the log stays short.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt as _;
use nuncio_domain::limits;
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::json;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Concurrent readers of one environment.
const GREEDY: usize = 60;

// holds: reads.fair
#[tokio::test]
async fn many_readers_of_one_world_leave_room_for_another() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        for n in 0..100 {
            app.send_message(json!({"to": format!("+346001112{n:02}"), "text": "x"})).await;
        }
        app.drain().await;
        let (test, live) = (format!("Bearer {}", app.test_key), format!("Bearer {}", app.live_key));
        let done = Mutex::new(Vec::new());
        let read = async |key: &str, who: &'static str| {
            let answer = app.send("GET", "/v1/messages?limit=100", &[("authorization", key)], None).await.expect(200).json();
            done.lock().expect("no panic").push(who);
            answer["items"].as_array().map(Vec::len)
        };
        read(&live, "first").await; // the keys are cached
        let greedy = futures::future::join_all((0..GREEDY).map(|_| read(&test, "greedy")));
        let (greedy, other) = futures::future::join(greedy, read(&live, "other")).await;
        assert!(other == Some(0) && greedy.iter().all(|items| *items == Some(100)), "all are served: {greedy:?}");
        let before = done.lock().expect("no panic").iter().position(|who| *who == "other");
        assert!(before.is_some_and(|before| before < GREEDY / 2), "{backend:?}: {before:?} reads were before it");
    }
}

// holds: reads.fair
#[tokio::test]
async fn the_pages_of_an_export_wait_like_other_reads() {
    let app = TestApp::start().await;
    let made = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x"})).await.expect(201).json();
    let path = format!("/v1/broadcasts/{}/results", made["broadcast"]["id"].as_str().expect("an id"));
    let auth = format!("Bearer {}", app.test_key);
    let mut export = app.open("GET", &path, &[("authorization", &auth)], Vec::new()).await.into_body();
    export.frame().await.expect("the head").expect("read");
    let mut readers = Vec::new();
    for _ in 0..limits::READS {
        readers.push(app.store().read().await.expect("a reader"));
    }
    let begun = || app.faults.asked.load(Ordering::Acquire);
    let before = begun();
    let mut lists = std::pin::pin!(futures::future::join_all((0..limits::READS).map(|_| app.get("/v1/messages"))));
    while begun() < before + limits::READS as u32 {
        assert!(futures::poll!(&mut lists).is_pending(), "there is no reader left");
        tokio::task::yield_now().await;
    }
    assert!(futures::poll!(export.frame()).is_pending());
    assert_eq!(begun(), before + limits::READS as u32, "the export does not read beside the others");
    drop(readers);
    lists.await;
    while export.frame().await.is_some() {}
    assert!(begun() > before + limits::READS as u32);
}

/// Log lines about rejected requests.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut line = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                line = format!("{value:?}");
            }
        });
        if line.contains("was rejected") {
            self.0.lock().expect("no panic").push(line);
        }
    }
}

#[tokio::test]
async fn a_flood_of_refusals_writes_one_line_that_counts_them() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
    let app = TestApp::with(Backend::Sqlite, Options { max_in_flight_bytes: 0, ..Options::default() }).await;
    let refused = async || app.post("/v1/messages", json!({"to": "+34600111222", "text": "x"})).await.expect(503);
    for _ in 0..100 {
        refused().await;
    }
    let written = || lines.0.lock().expect("no panic").clone();
    assert_eq!(written().len(), 1, "{:?}", written());
    app.clock.advance(limits::LOG_INTERVAL - Duration::from_millis(1));
    refused().await;
    assert_eq!(written().len(), 1);
    app.clock.advance(Duration::from_millis(1));
    refused().await;
    assert!(written().len() == 2 && written()[1].ends_with("(100 similar ones not logged)"), "{:?}", written());
}
